// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/step_page.h"

#include <QCheckBox>
#include <QComboBox>
#include <QPushButton>
#include <QSignalBlocker>
#include <QStackedWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/views/finetune/step_panel.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/timeline/copy_lane.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/part_strip.h"
#include "ui/widgets/timeline/step_lane.h"

namespace vitrine::ui {

namespace {

constexpr int kStepSentenceHeight = 78, kDetailHead = 24;
constexpr int kStepPlot = 144, kLeastStepPlot = 72, kDetailPlot = 165, kLeastDetailPlot = 84;
// Heights of the two stacks of lanes with all their strips: they share what is left in this proportion.
constexpr int kOverviewShare = 430, kDetailShare = 245;
constexpr int kRoomForBoth = 640; ///< height of the page from which on B and the detail have a place each

} // namespace

StepPage::StepPage(ViewHeader* header, QWidget* parent)
    : QWidget(parent), time_(new TimeCursor(this)), closerTime_(new TimeCursor(this)), panel_(new StepPanel),
      job_(this), listing_(this), advising_(this) {
    buildControls(header);
    pages_ = new QStackedWidget(this);
    auto* body = new Surface(Surface::Fill::Canvas, Surface::None, pages_);
    auto* column = new QVBoxLayout(body);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    buildWords(body);
    buildOverview(body);
    buildDetail(body);
    nothing_ = new EmptyState(pages_);
    pages_->addWidget(body);
    pages_->addWidget(nothing_);
    auto* whole = new QVBoxLayout(this);
    whole->setContentsMargins(0, 0, 0, 0);
    whole->addWidget(pages_);
    connect(time_, &TimeCursor::cursorChanged, this, [this] {
        closerTime_->setCursor(time_->cursor());
        updateReadout();
    });
    connect(closerTime_, &TimeCursor::cursorChanged, this, [this] { time_->setCursor(closerTime_->cursor()); });
    connect(time_, &TimeCursor::measuredChanged, this, [this] {
        if (!placing_ && pair_ != nullptr) {
            // A click clears the measured range; the detail keeps its own.
            setDetail(time_->measured() && time_->measured()->length() > 0 ? *time_->measured() : detailRange_);
        }
    });
    connect(closerTime_, &TimeCursor::rangeChanged, this, [this] {
        if (!placing_ && pair_ != nullptr) {
            setDetail(closerTime_->range(), false);
        }
    });
}

void StepPage::buildControls(ViewHeader* header) {
    steps_ = header->addCombo(tr("Step that is shown"));
    align_ = header->addSegments({tr("Phase"), tr("Time")}, tr("How B is laid over A"));
    align_->button(0)->setToolTip(tr("B is drawn in A's phases and layers"));
    align_->button(1)->setToolTip(tr("Both are drawn over seconds"));
    sameScale_ = header->addCheck(tr("Same scale"), true);
    copies_ = header->addCheck(tr("Copies"), true);
    memory_ = new QPushButton(tr("Open in Memory"), header);
    memory_->setToolTip(tr("The Memory view at the peak of this step"));
    setControlHeight(memory_, 24);
    header->addRightControl(memory_);
    connect(steps_, &QComboBox::currentIndexChanged, this, [this] {
        if (!filling_ && steps_->currentIndex() >= 0) {
            openStep(steps_->currentData().toLongLong());
        }
    });
    connect(align_, &SegmentedControl::currentChanged, this, &StepPage::showPair);
    connect(sameScale_, &QCheckBox::toggled, this, &StepPage::showPair);
    connect(copies_, &QCheckBox::toggled, this, &StepPage::showPair);
    connect(memory_, &QPushButton::clicked, this, [this] {
        if (pair_ != nullptr) {
            const profiler::StepAnatomy& a = pair_->a.anatomy;
            emit memoryWanted(a.begin, a.end,
                              a.begin + time_->cursor().value_or(std::max(a.peak.maxTime, a.begin) - a.begin));
        }
    });
}

void StepPage::showControls(bool shown) {
    for (QWidget* control :
         {static_cast<QWidget*>(steps_), static_cast<QWidget*>(align_), static_cast<QWidget*>(sameScale_),
          static_cast<QWidget*>(copies_), static_cast<QWidget*>(memory_)}) {
        control->setVisible(shown);
    }
}

void StepPage::buildWords(QWidget* body) {
    words_ = new Surface(Surface::Fill::Panel, Surface::None, body);
    words_->setMinimumHeight(kStepSentenceHeight);
    auto* column = new QVBoxLayout(words_);
    column->setContentsMargins(12, 5, 12, 6);
    column->setSpacing(2);
    sentence_ = new TextLabel({}, TypeRole::Sentence, TextColor::Text1, false, words_);
    sentence_->setTextFormat(Qt::RichText);
    sentence_->setWordWrap(true);
    second_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, words_);
    second_->setWordWrap(true);
    auto* row = new QHBoxLayout;
    row->setContentsMargins(0, 0, 0, 0);
    row->addWidget(sentence_, 1);
    more_ = new QPushButton(tr("More"), words_);
    more_->setCheckable(true);
    setControlHeight(more_, 22);
    row->addWidget(more_, 0, Qt::AlignTop);
    column->addLayout(row);
    column->addWidget(second_);
    column->addStretch(1);
    body->layout()->addWidget(words_);
    connect(more_, &QPushButton::toggled, this, &StepPage::updateNarrow);
}

void StepPage::buildOverview(QWidget* body) {
    auto* column = static_cast<QVBoxLayout*>(body->layout());
    overview_ = new LaneStack(time_, LaneStack::WithRuler, body);
    overview_->setKeptOpen(3);
    bands_ = new PartStrip(tr("Phases and layers"), time_, overview_);
    overview_->addStrip(bands_, false);
    laneA_ = new StepLane(tr("A"), time_, overview_);
    laneA_->setBadge(QLatin1Char('A'));
    copiesA_ = new CopyLane(tr("Copies of A"), time_, overview_);
    laneB_ = new StepLane(tr("B"), time_, overview_);
    laneB_->setBadge(QLatin1Char('B'));
    for (StepLane* lane : {laneA_, laneB_}) {
        lane->setPlotHeight(kLeastStepPlot, kStepPlot);
        lane->setSpoken([this, lane] { return lane->title() + QStringLiteral(". ") + readout_; });
        connect(lane, &StepLane::peakClicked, this, &StepPage::showPeak);
    }
    for (Lane* lane : {static_cast<Lane*>(laneA_), static_cast<Lane*>(copiesA_), static_cast<Lane*>(laneB_)}) {
        overview_->addLane(lane);
    }
    column->addWidget(overview_, kOverviewShare);
    noBaseline_ = new Surface(Surface::Fill::Canvas, Surface::Top, body);
    auto* row = new QHBoxLayout(noBaseline_);
    row->setContentsMargins(12, 8, 12, 8);
    row->addStretch(1);
    row->addWidget(new TextLabel(tr("No baseline. Choose another fine-tuning run as B, or:"), TypeRole::Table,
                                 TextColor::Text2, false, noBaseline_));
    baselineButton_ = new QPushButton(noBaseline_);
    setControlHeight(baselineButton_, 24);
    row->addWidget(baselineButton_);
    row->addStretch(1);
    column->addWidget(noBaseline_);
    connect(overview_, &LaneStack::hovered, this, &StepPage::updateReadout);
    connect(bands_, &PartStrip::partClicked, this, [this](int band, int part) {
        const TimeRange range =
            bands_->rows()[static_cast<std::size_t>(band)].parts[static_cast<std::size_t>(part)].range;
        setDetail(range == detailRange_ ? detailBefore_ : range);
    });
    connect(baselineButton_, &QPushButton::clicked, this, [this] {
        if (const auto other = stepBaseline(spec_)) {
            emit experimentWanted(textOf(other->experiment));
        }
    });
}

void StepPage::buildDetail(QWidget* body) {
    auto* column = static_cast<QVBoxLayout*>(body->layout());
    detailHead_ = new Surface(Surface::Fill::Panel, Surface::Top, body);
    detailHead_->setFixedHeight(kDetailHead);
    auto* row = new QHBoxLayout(detailHead_);
    row->setContentsMargins(8, 1, 12, 0);
    row->setSpacing(8);
    lower_ = new SegmentedControl({tr("B"), tr("Detail")}, detailHead_);
    lower_->setAccessibleName(tr("What stands below A"));
    lower_->setFixedHeight(20);
    lower_->setCurrent(1);
    detailTitle_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, true, detailHead_);
    detailNote_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, detailHead_);
    detailNote_->setElide(true);
    detailNote_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    row->addWidget(lower_);
    row->addWidget(detailTitle_);
    row->addWidget(new TextLabel(tr("the range on the ruler"), TypeRole::Table, TextColor::Text3, false, detailHead_));
    row->addWidget(detailNote_, 1);
    column->addWidget(detailHead_);
    closer_ = new LaneStack(closerTime_, LaneStack::WithRuler, body);
    closer_->setKeptOpen(2);
    parts_ = new PartStrip(tr("Parts of the range"), closerTime_, closer_);
    closer_->addStrip(parts_, false);
    detail_ = new StepLane(tr("Detail"), closerTime_, closer_);
    detail_->setHeader(false);
    detail_->setPlotHeight(kLeastDetailPlot, kDetailPlot);
    detail_->setSpoken([this] { return readout_; });
    copiesDetail_ = new CopyLane(tr("Copies of A in the range"), closerTime_, closer_);
    closer_->addLane(detail_);
    closer_->addLane(copiesDetail_);
    column->addWidget(closer_, kDetailShare);
    connect(closer_, &LaneStack::hovered, this, &StepPage::updateReadout);
    connect(lower_, &SegmentedControl::currentChanged, this, &StepPage::updateNarrow);
}

QList<QWidget*> StepPage::stops() const {
    return QList<QWidget*>{bands_} + overview_->focusStops() + QList<QWidget*>{parts_} + closer_->focusStops();
}

void StepPage::setRuns(const TimelinePtr& a, const std::string& specJson, const QString& device, const TimelinePtr& b,
                       const QString& nothing) {
    const bool other = specJson != spec_ || (a == nullptr) != (timelineA_ == nullptr);
    const bool grown = a != timelineA_, baseline = b != timelineB_, words = nothing != why_;
    why_ = nothing;
    timelineA_ = a;
    timelineB_ = b;
    if (other) {
        spec_ = specJson;
        device_ = device;
        pair_.reset();
        step_ = 0;
        steps_->clear();
    }
    if (grown || other) {
        fillSteps();
    }
    // A step that is shown stays as it is while its run goes on.
    if (other || baseline || (grown && pair_ == nullptr)) {
        load();
    }
    if (other || words || pair_ == nullptr) {
        showPair();
    }
}

void StepPage::openStep(std::int64_t step) {
    if (step != step_ || pair_ == nullptr) {
        step_ = step;
        fillSteps();
        load();
    }
}

void StepPage::load() {
    if (timelineA_ == nullptr) {
        job_.cancel();
        return;
    }
    job_.start([a = timelineA_, b = timelineB_,
                step = step_] { return stepPair(a, step > 0 ? step : highestStep(*a).value_or(0), b); },
               [this, of = timelineA_](StepPairPtr pair) {
                   if (of == timelineA_) {
                       take(std::move(pair));
                   }
               });
}

void StepPage::take(StepPairPtr pair) {
    const bool sameStep = pair_ != nullptr && pair != nullptr && pair_->a.anatomy.begin == pair->a.anatomy.begin &&
                          detailRange_.length() > 0;
    pair_ = std::move(pair);
    if (pair_ != nullptr) {
        step_ = pair_->a.values.step;
        fillSteps();
        if (!sameStep) {
            placing_ = true;
            time_->reset({0, pair_->a.length()});
            placing_ = false;
            detailBefore_ = firstDetail(pair_->a.anatomy);
            setDetail(detailBefore_, false);
        }
        advise();
    }
    showPair();
    emit pairChanged();
}

void StepPage::advise() {
    if (advisedFor_ == spec_) {
        return;
    }
    advisedFor_ = spec_;
    advice_.reset();
    advising_.start(
        [spec = spec_, device = device_, tokens = pair_->a.values.tokens] { return stepAdvice(spec, device, tokens); },
        [this, of = spec_](std::optional<StepAdvice> advice) {
            if (of == spec_) {
                advice_ = std::move(advice);
                showPair();
                emit pairChanged();
            }
        });
}

void StepPage::fillSteps() {
    if (timelineA_ == nullptr) {
        return;
    }
    listing_.start([a = timelineA_] { return offeredSteps(*a); },
                   [this](std::vector<std::int64_t> offered) {
                       if (step_ > 0 && std::ranges::find(offered, step_) == offered.end()) {
                           offered.insert(std::ranges::lower_bound(offered, step_), step_);
                       }
                       filling_ = true;
                       steps_->clear();
                       for (const std::int64_t step : offered) {
                           steps_->addItem(tr("Step %1").arg(countText(step)), QVariant::fromValue<qlonglong>(step));
                       }
                       steps_->setCurrentIndex(steps_->findData(QVariant::fromValue<qlonglong>(step_)));
                       filling_ = false;
                   });
}

QString StepPage::emptyText() const {
    return pages_->currentWidget() == nothing_ ? nothing_->text() : QString();
}

void StepPage::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    updateNarrow();
}

/// Where B and the detail have no room below each other they share one place, and the second text is folded.
void StepPage::updateNarrow() {
    narrow_ = height() < kRoomForBoth;
    const bool both = pair_ != nullptr && pair_->b.has_value();
    const bool detail = !narrow_ || !both || lower_->current() == 1;
    lower_->setVisible(narrow_ && both);
    laneB_->setVisible(both && (!narrow_ || !detail));
    closer_->setVisible(detail);
    noBaseline_->setVisible(!both && !narrow_ && stepBaseline(spec_).has_value());
    more_->setVisible(narrow_ && !second_->text().isEmpty());
    second_->setVisible(!second_->text().isEmpty() && (!narrow_ || more_->isChecked()));
    words_->setMinimumHeight(narrow_ ? 0 : kStepSentenceHeight);
}

QString StepPage::whyText() const {
    if (pair_ == nullptr) {
        return {};
    }
    QString sentence = sentence_->text();
    sentence.remove(QStringLiteral("<b>")).remove(QStringLiteral("</b>"));
    return QStringList{sentence, second_->text(), panel_->asText()}.join(QStringLiteral("\n\n"));
}

FlatTreePtr StepPage::table() const {
    return pair_ != nullptr ? stepItemTable(*pair_) : std::make_shared<FlatTree>();
}

} // namespace vitrine::ui
