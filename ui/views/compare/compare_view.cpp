// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/compare/compare_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHeaderView>
#include <QMenu>
#include <QPushButton>
#include <QRegularExpression>
#include <QTableView>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/compare/compare_text.h"
#include "ui/models/compare/op_change_table.h"
#include "ui/models/finetune/training_text.h"
#include "ui/views/compare/rl_compare_page.h"
#include "ui/views/compare/training_compare.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/compare_lane.h"
#include "ui/widgets/timeline/compare_ruler.h"
#include "ui/widgets/timeline/difference_lane.h"
#include "ui/widgets/timeline/lane_stack.h"

namespace vitrine::ui {

namespace {

constexpr int kLongestSetting = 260; ///< px of a column of values
constexpr int kShortestMetric = 120; ///< px of the names beside the numbers

/// Only numbers with their units are bold; run numbers and settings are not.
QString withStrongNumbers(const QString& words) {
    static const QRegularExpression kNumber(
        QStringLiteral("(?<![#\\w.,])(\\d[\\d,.]*[ \u00A0](?:[KMGT]iB|B|tok/s|tokens|ms|µs|s|%))(?!\\w)"));
    return words.toHtmlEscaped().replace(kNumber, QStringLiteral("<b>\\1</b>"));
}

void fitColumns(QTableView* view, int most) {
    view->resizeColumnsToContents();
    for (int i = 0; i < view->model()->columnCount(); ++i) {
        view->setColumnWidth(i, std::min(most, view->columnWidth(i)));
    }
}

} // namespace

CompareView::CompareView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("compare"), tr("Compare"), context, parent) {
    buildHeader();
    buildBody();
    buildInspector();
    makeTwin(tr("Bytes at the peak of both runs"));
    followDocument();
}

QWidget* CompareView::inspector() {
    return panel_;
}

QWidget* CompareView::inspectorHeader() {
    return panelHeader_;
}

QString CompareView::whyNot(const QString& action) const {
    if (action == QLatin1String("edit.copy-why") && comparedRuns().size() < 2) {
        return tr("Two runs are needed: A and B");
    }
    return DocumentView::whyNot(action);
}

QList<QWidget*> CompareView::bodyStops() const {
    return QList<QWidget*>{specView_, metricView_} + (training_->isVisibleTo(this)   ? training_->stops()
                                                      : policies_->isVisibleTo(this) ? policies_->stops()
                                                                                     : stack_->focusStops());
}

QList<LaneStack*> CompareView::laneStacks() const {
    return training_->isVisibleTo(this)   ? training_->laneStacks()
           : policies_->isVisibleTo(this) ? policies_->laneStacks()
                                          : QList<LaneStack*>{stack_};
}

TimeCursor* CompareView::ownAxis() const {
    return training_->isVisibleTo(this)   ? training_->stepCursor()
           : policies_->isVisibleTo(this) ? policies_->stepCursor()
                                          : time_;
}

bool CompareView::settled() const {
    return DocumentView::settled() && (!training_->isVisibleTo(this) || training_->settled()) &&
           (!policies_->isVisibleTo(this) || policies_->settled());
}

std::vector<sessions::RunInfo> CompareView::comparedRuns() const {
    std::vector<sessions::RunInfo> runs;
    if (a_ == 0 || b_ == 0 || a_ == b_) {
        return runs;
    }
    std::vector<sessions::RunId> ids = {a_, b_};
    for (const sessions::RunId id : extra_) {
        if (id != a_ && id != b_) {
            ids.push_back(id);
        }
    }
    for (const sessions::RunId id : ids) {
        if (const sessions::RunInfo* run = runInfo(id)) {
            runs.push_back(*run);
        }
    }
    return runs;
}

void CompareView::setExtraRuns(std::vector<sessions::RunId> runs) {
    extra_ = std::move(runs);
    updateTables();
}

void CompareView::refresh() {
    a_ = runA();
    b_ = runB();
    fillPickers();
    fillMore();
    const std::vector<sessions::RunInfo> runs = comparedRuns();
    QString error;
    if (runs.size() < 2) {
        sayWhyEmpty();
    } else {
        showEmpty({});
        for (const sessions::RunId id : {a_, b_}) {
            const QString said = timelineOf(id).error;
            error = said.isEmpty() ? error : said;
        }
        showComparable(compareText(runs[0], runs[1], document()->runs()));
    }
    showError(error);
    copy_->setEnabled(runs.size() >= 2);
    updateTables();
    updateLane();
    updateDeltas();
}

void CompareView::fillPickers() {
    filling_ = true;
    for (QComboBox* box : {pickA_, pickB_}) {
        box->clear();
        if (document() == nullptr) {
            continue;
        }
        const bool first = box == pickA_;
        if (!first) {
            box->addItem(tr("no baseline"), QVariant::fromValue<qlonglong>(0));
        }
        for (const sessions::RunInfo& run : document()->runs()) {
            // The number distinguishes runs of one name; how each ended is in its tool tip and in the words below.
            box->addItem(
                tr("%1 #%2 %3").arg(first ? QLatin1Char('A') : QLatin1Char('B')).arg(run.id).arg(textOf(run.name)),
                QVariant::fromValue<qlonglong>(run.id));
            box->setItemData(box->count() - 1, runTitle(run), Qt::ToolTipRole);
        }
        box->setCurrentIndex(box->findData(QVariant::fromValue<qlonglong>(first ? a_ : b_)));
        box->setToolTip(box->currentData(Qt::ToolTipRole).toString());
    }
    filling_ = false;
}

void CompareView::fillMore() {
    moreMenu_->clear();
    int count = 0;
    if (document() != nullptr) {
        for (const sessions::RunInfo& run : document()->runs()) {
            if (run.id == a_ || run.id == b_) {
                continue;
            }
            ++count;
            QAction* action = moreMenu_->addAction(QStringLiteral("#%1  %2").arg(run.id).arg(runTitle(run)));
            action->setCheckable(true);
            action->setChecked(std::find(extra_.begin(), extra_.end(), run.id) != extra_.end());
            connect(action, &QAction::toggled, this, [this, id = run.id](bool on) {
                std::vector<sessions::RunId> runs = extra_;
                std::erase(runs, id);
                if (on) {
                    runs.push_back(id);
                }
                setExtraRuns(std::move(runs));
            });
        }
    }
    more_->setEnabled(count > 0);
}

void CompareView::sayWhyEmpty() {
    const std::size_t count = document() != nullptr ? document()->runs().size() : 0;
    if (count >= 2 && a_ != 0) {
        // The run before A, of the same workload where there is one.
        sessions::RunId before = 0, other = 0;
        const sessions::RunInfo* mine = runInfo(a_);
        for (const sessions::RunInfo& run : document()->runs()) {
            if (run.id != a_ && mine != nullptr) {
                other = run.id;
                before = run.workload == mine->workload ? run.id : before;
            }
        }
        const sessions::RunId id = before != 0 ? before : other;
        const sessions::RunInfo* run = runInfo(id);
        showEmpty(tr("Two runs are needed: A and its baseline B. No baseline is chosen."),
                  tr("Compare with #%1, %2").arg(id).arg(run != nullptr ? textOf(run->name) : QString()),
                  [this, id] { document()->setRunB(id); });
        return;
    }
    showEmpty(count == 1 ? tr("Two runs are needed: A and B. This session holds one.")
                         : tr("Two runs are needed: A and B."),
              tr("Prepare a run"), [this] { emit openView(QStringLiteral("run")); });
}

void CompareView::updateTables() {
    const std::vector<sessions::RunInfo> runs = comparedRuns();
    if (runs.size() < 2) {
        specModel_->setTree(std::make_shared<FlatTree>());
        metricModel_->setTree(std::make_shared<FlatTree>());
        return;
    }
    specModel_->setTree(specTable(runs[0], runs[1], changedOnly_->isChecked()));
    specTitle_->setText(specModel_->rowCount() == 0 ? tr("Set differently: nothing") : tr("Set differently"));
    metricModel_->setTree(
        metricTable(runs, document()->runs(), changedOnly_->isChecked() && !nothingComparable_, !nothingComparable_));
    fitColumns(specView_, kLongestSetting);
    fitColumns(metricView_, kLongestSetting);
    // Values of settings share what is left; names of metrics take it, so that numbers stay at the right edge. With
    // many runs there is more than the width holds: then the table scrolls.
    for (int i = 1; i < specModel_->columnCount(); ++i) {
        specView_->horizontalHeader()->setSectionResizeMode(i, QHeaderView::Stretch);
    }
    int numbers = 0;
    for (int i = 1; i < metricModel_->columnCount(); ++i) {
        metricView_->setColumnWidth(i, metricView_->columnWidth(i) + 12);
        numbers += metricView_->columnWidth(i);
    }
    const bool room = numbers + kShortestMetric <= metricView_->width();
    metricView_->horizontalHeader()->setSectionResizeMode(0, room ? QHeaderView::Stretch : QHeaderView::Interactive);
    metricView_->setHorizontalScrollBarPolicy(room ? Qt::ScrollBarAlwaysOff : Qt::ScrollBarAsNeeded);
}

void CompareView::updateLane() {
    if (updateTraining()) {
        return;
    }
    const TimelinePtr a = timelineOf(a_).timeline, b = timelineOf(b_).timeline;
    const QString reading = readingText();
    if (!a || !b || a_ == b_ || nothingComparable_ || a->memory().events() == 0 || b->memory().events() == 0) {
        lane_->setRuns(nullptr, nullptr, nullptr);
        difference_->setRuns(nullptr, nullptr, nullptr);
        rulerA_->setRun(a_, nullptr, 0);
        rulerB_->setRun(b_, nullptr, 0);
        const bool none = a_ != 0 && b_ != 0 && a_ != b_ && settled();
        const auto lacks = [](const TimelinePtr& timeline) { return !timeline || timeline->memory().events() == 0; };
        lane_->setFacts(!reading.isEmpty() ? reading
                        : none             ? tr("no events in #%1").arg(lacks(a) ? a_ : b_)
                                           : QString());
        stack_->bands()->setRows({});
        return;
    }
    const auto by = static_cast<profiler::AlignBy>(align_->current());
    const auto alignment = std::make_shared<const profiler::Alignment>(profiler::align(*a, *b, by));
    updateBands(*alignment);
    const TimeRange extent{0, std::max<base::TimeNs>(1000, alignment->length())};
    if (!(time_->extent() == extent)) {
        time_->reset(extent);
    }
    lane_->setRuns(a, b, alignment);
    difference_->setRuns(a, b, alignment);
    rulerA_->setRun(a_, alignment, a->end());
    rulerB_->setRun(b_, alignment, b->end());
    const auto peakOf = [](const TimelinePtr& timeline) {
        const profiler::MemoryColumn peak = timeline->memory().peak(timeline->begin(), timeline->end());
        return peakText(peak.maxTotal, peak.incomplete);
    };
    const QString peaks = tr("peak A %1, B %2").arg(peakOf(a), peakOf(b));
    lane_->setFacts(reading.isEmpty() ? peaks : reading + QStringLiteral(" · ") + peaks);
}

void CompareView::updateBands(const profiler::Alignment& alignment) {
    BandRow rowA{tr("A"), {}}, rowB{tr("B"), {}};
    for (const profiler::AlignedSegment& segment : alignment.segments()) {
        if (segment.name.empty() || segment.length <= 0) {
            continue;
        }
        // A band is as wide as its curve; its own time stands in its label.
        const auto band = [&](const std::optional<profiler::TimeStretch>& stretch) {
            const QString label =
                stretch ? QStringLiteral("%1 %2").arg(textOf(segment.name), durationText(stretch->end - stretch->begin))
                        : tr("%1: none").arg(textOf(segment.name));
            return BandRow::Band{{segment.position, segment.position + segment.length}, label, 0};
        };
        rowA.bands.push_back(band(segment.a));
        rowB.bands.push_back(band(segment.b));
    }
    stack_->bands()->setRows({std::move(rowA), std::move(rowB)});
}

void CompareView::chooseRun(bool first, sessions::RunId id) {
    if (document() != nullptr && !document()->chooseRun(first, id)) {
        fillPickers(); // the picker shows what is chosen again
        setReadout(tr("#%1 is A: no run is its own baseline. Choose another run as B.").arg(id));
    }
}

QString CompareView::readingText() const {
    for (const sessions::RunId id : {a_, b_}) {
        if (id != 0 && !read(id) && !live(id)) {
            const TimelineState state = timelineOf(id);
            return state.chunksTotal > 0
                       ? tr("Reading run %1, %2 %").arg(id).arg(100 * state.chunksRead / state.chunksTotal)
                       : tr("Reading run %1").arg(id);
        }
    }
    return {};
}

void CompareView::showWords(const CompareText& words) {
    sentence_->setText(withStrongNumbers(words.sentence));
    cause_->setText(words.cause);
    cause_->setVisible(!words.cause.isEmpty());
    answers_->setText(words.answers);
    answers_->setVisible(!words.answers.isEmpty());
}

/// What of the page is shown: all of it, or where nothing may be compared the settings and what else there is.
void CompareView::showComparable(const CompareText& words) {
    nothingComparable_ = words.nothing;
    showWords(words);
    notice_->setTone(words.nothing ? ErrorStrip::Tone::Bad : ErrorStrip::Tone::Warn);
    notice_->setError(words.nothing ? tr("Not comparable: no change is shown.") : words.notComparable,
                      words.surroundings);
    const sessions::RunInfo* again = words.runAgain ? runInfo(b_) : nullptr;
    notice_->setAction(
        again != nullptr ? tr("Run B again") : QString(),
        [this, spec = again != nullptr ? again->specJson : std::string()] { emit experimentWanted(textOf(spec)); });
    partnerRun_ = 0;
    const sessions::RunInfo* mine = runInfo(a_);
    for (const sessions::RunInfo& run : document()->runs()) {
        const bool other = mine != nullptr && run.id != a_ && run.id != b_;
        if (words.nothing && other &&
            !engine::allIncomparable(engine::whyIncomparable(comparedRun(*mine), comparedRun(run)))) {
            partnerRun_ = run.id;
        }
    }
    partner_->setText(tr("Compare #%1 with #%2").arg(a_).arg(partnerRun_));
    partner_->setVisible(partnerRun_ != 0);
    anyway_->setVisible(words.nothing);
    metricBox_->setVisible(!words.nothing || showNumbers_->isChecked());
}

void CompareView::updateDeltas() {
    static constexpr profiler::GroupBy kGroups[] = {profiler::GroupBy::Category, profiler::GroupBy::Layer,
                                                    profiler::GroupBy::Op};
    const bool two = a_ != 0 && b_ != 0 && a_ != b_ && !nothingComparable_;
    const TimelinePtr a = two ? timelineOf(a_).timeline : nullptr, b = two ? timelineOf(b_).timeline : nullptr;
    const auto by = kGroups[std::clamp(groupBy_->currentIndex(), 0, 2)];
    const FlatTreePtr table = peakTable(a.get(), b.get(), by);
    deltas_->setTable(table, QStringLiteral(" AB "));
    const std::vector<sessions::RunInfo> runs = comparedRuns();
    const FlatTreePtr ops = two && runs.size() >= 2 ? prefillOpTable(runs[0], a.get(), runs[1], b.get()) : nullptr;
    const bool timed = ops && !ops->nodes.empty();
    opTimes_->setVisible(timed);
    if (timed) {
        opTimes_->setTable(ops, QStringLiteral(" AB "));
    }
    twinModel()->setTree(table);
    fitColumns(twin(), kLongestSetting);
}

QString CompareView::asText() const {
    const std::vector<sessions::RunInfo> runs = comparedRuns();
    return runs.size() < 2
               ? QString()
               : compareText(runs, document()->runs(), timelineOf(a_).timeline.get(), timelineOf(b_).timeline.get());
}

void CompareView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    updateTables();
    showTables();
}

} // namespace vitrine::ui
