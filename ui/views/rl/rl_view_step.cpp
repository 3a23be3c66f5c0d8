// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// One step in the view: how it is chosen, what limits it, and its answers.
#include <QCheckBox>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPushButton>
#include <QStackedWidget>
#include <QTextDocumentFragment>
#include <algorithm>

#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/views/rl/rl_lanes.h"
#include "ui/views/rl/rl_panel.h"
#include "ui/views/rl/rl_samples_page.h"
#include "ui/views/rl/rl_step_pane.h"
#include "ui/views/rl/rl_view.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kSentenceHeight = 30;
constexpr std::int64_t kLongStride = 10;

} // namespace

QWidget* RlView::buildSentence(QWidget* parent) {
    sentenceRow_ = new Surface(Surface::Fill::Window, Surface::Bottom, parent);
    sentenceRow_->setFixedHeight(kSentenceHeight);
    auto* row = new QHBoxLayout(sentenceRow_);
    row->setContentsMargins(12, 0, 12, 0);
    row->setSpacing(12);
    sentence_ = new TextLabel({}, TypeRole::Body, TextColor::Text1, false, sentenceRow_);
    sentence_->setTextFormat(Qt::RichText);
    change_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, sentenceRow_);
    change_->setElide(true);
    change_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    try_ = new QPushButton(tr("Try"), sentenceRow_);
    setControlHeight(try_, 22);
    row->addWidget(sentence_);
    row->addWidget(change_, 1);
    row->addWidget(try_);
    connect(try_, &QPushButton::clicked, this, [this] {
        if (wanted_) {
            emit experimentWanted(textOf(wanted_->experimentJson));
        }
    });
    return sentenceRow_;
}

RlView::Page RlView::page() const {
    return static_cast<Page>(pages_->current());
}

void RlView::showPage(Page page) {
    pages_->setCurrent(page);
    content_->setCurrentIndex(page);
    header()->setTableShown(false);
    for (QWidget* control :
         {static_cast<QWidget*>(axes_), static_cast<QWidget*>(groups_), static_cast<QWidget*>(reference_)}) {
        control->setVisible(page == Curves);
    }
    emit inspectorWanted();
    emit availabilityChanged();
}

void RlView::showPage(const QString& page) {
    if (page == QLatin1String("samples")) {
        showPage(Samples);
    }
}

/// Of the chosen step of A.
void RlView::updateLimit() {
    const auto number = lanes_->chosenStep();
    const auto index = a_ != nullptr && number ? a_->run->indexOf(*number) : std::nullopt;
    const RlStepMemory* memory =
        step_->memory() != nullptr && number && step_->memory()->step == *number ? step_->memory().get() : nullptr;
    const auto limit = index ? rlLimit(*a_->run, *index, memory) : std::nullopt;
    const sessions::RunInfo* info = runInfo(runs_.a);
    wanted_ = limit && info != nullptr ? limitChange(*limit, info->specJson, info->metricsJson) : std::nullopt;
    sentence_->setText(limit ? limitSentence(*limit) : QString());
    change_->setText(wanted_ ? wanted_->words : QString());
    change_->setToolTip(change_->text());
    try_->setVisible(wanted_.has_value());
    sentenceRow_->setVisible(limit.has_value());
}

/// Goes through the results of all runs, so not while one of them goes on.
void RlView::updateReference() {
    const sessions::RunInfo* info = runInfo(runs_.a);
    const std::vector<sessions::RunInfo>& runs = document()->runs();
    const std::pair now{runs_.a, std::ranges::count_if(runs, [](const sessions::RunInfo& run) {
                            return run.status != sessions::RunStatus::Running;
                        })};
    if (info == nullptr || now == referredTo_) {
        return;
    }
    referredTo_ = now;
    referring_.start([runs, run = *info] { return rlReference(runs, run); },
                     [this](std::optional<RlReference> found) {
                         found_ = found;
                         updateBody();
                     });
}

QString RlView::sentenceText() const {
    return QTextDocumentFragment::fromHtml(sentence_->text()).toPlainText();
}

QString RlView::changeText() const {
    return change_->text();
}

void RlView::updateSamples() {
    const std::int64_t step = lanes_->chosenStep().value_or(-1);
    samplesOfB_ = samplesOfB_ && timelineB_ != nullptr;
    panel_->setSides(timelineB_ != nullptr, samplesOfB_);
    const TimelinePtr timeline = sampledRun();
    if (timeline == sampledOf_ && step == sampledStep_) {
        return;
    }
    // The answers of a step that has ended do not change while the run goes on.
    const bool known = samples_ != nullptr && samples_->hasTokens() && step == sampledStep_ && samplesOfB_ == sampledB_;
    sampledOf_ = timeline;
    sampledStep_ = step;
    sampledB_ = samplesOfB_;
    if (timeline == nullptr || step < 0) {
        sampling_.cancel();
        takeSamples({});
    } else if (!known) {
        sampling_.start(
            [timeline, step] {
                Sampled out{RlSamples::make(*timeline, step), std::nullopt};
                if (!out.samples->hasTokens()) {
                    out.nearest = RlSamples::nearestKept(*timeline, step);
                }
                return out;
            },
            [this](Sampled sampled) { takeSamples(std::move(sampled)); });
    }
}

void RlView::takeSamples(Sampled sampled) {
    samples_ = std::move(sampled.samples);
    nearestKept_ = sampled.nearest;
    const bool any = samples_ != nullptr && !samples_->groups.empty();
    if (any && (group_ >= samples_->groups.size() || !samples_->groups[group_].hasTexts())) {
        // One that has something to read, where there is one.
        const auto read = std::ranges::find_if(samples_->groups, &RlSampleGroup::hasTexts);
        group_ = read == samples_->groups.end() ? 0 : static_cast<std::size_t>(read - samples_->groups.begin());
    }
    samplesPage_->setSamples(any ? samples_ : nullptr, whyNoSamples(sampledStep_));
    showGroup();
}

QString RlView::whyNoSamples(std::int64_t step) const {
    if (a_ == nullptr || a_->run->empty()) {
        return {};
    }
    const RlCurvesPtr& curves = samplesOfB_ ? b_ : a_;
    if (curves == nullptr || !curves->run->indexOf(step)) {
        return tr("%1 has no step %2.").arg(QLatin1Char(samplesOfB_ ? 'B' : 'A')).arg(countText(step));
    }
    return samplesOfB_ ? tr("B kept no samples of step %1.").arg(countText(step))
                       : tr("The answers of step %1 were not kept.").arg(countText(step));
}

void RlView::showGroup() {
    const bool any = samples_ != nullptr && !samples_->groups.empty();
    std::size_t place = 0;
    if (any) {
        const std::vector<std::size_t> order = samples_->ordered(samplesPage_->order());
        place = static_cast<std::size_t>(std::ranges::find(order, group_) - order.begin());
        samplesPage_->setGroup(group_);
    }
    panel_->setSamples(any ? samples_ : nullptr, group_, place, whyNoSamples(sampledStep_));
    panel_->setOtherStep(nearestKept_);
}

void RlView::groupBy(int direction) {
    if (samples_ == nullptr || samples_->groups.empty()) {
        return;
    }
    const std::vector<std::size_t> order = samples_->ordered(samplesPage_->order());
    const auto at = std::ranges::find(order, group_) - order.begin() + direction;
    if (at >= 0 && at < static_cast<std::ptrdiff_t>(order.size())) {
        group_ = order[static_cast<std::size_t>(at)];
        showGroup();
    }
}

void RlView::chooseStep(std::int64_t step) {
    if (const auto place = lanes_->placeOf(step)) {
        time_->setCursor(place);
    }
}

void RlView::stepBy(std::int64_t steps) {
    if (const auto now = lanes_->chosenStep()) {
        const std::int64_t first =
            std::min(a_ != nullptr ? a_->run->firstStep() : *now, b_ != nullptr ? b_->run->firstStep() : *now);
        const std::int64_t last =
            std::max(a_ != nullptr ? a_->run->lastStep() : *now, b_ != nullptr ? b_->run->lastStep() : *now);
        chooseStep(std::clamp(*now + steps, first, last));
    }
}

void RlView::nextEvaluation() {
    const auto now = lanes_->chosenStep();
    if (!now || a_ == nullptr) {
        return;
    }
    const auto& all = a_->run->evaluations();
    const std::int64_t from = time_->cursor() ? *now : 0;
    const auto next = std::ranges::find_if(all, [&](const RlEvaluation& each) { return each.step > from; });
    if (next != all.end()) {
        chooseStep(next->step);
    }
}

/// False: the key does nothing here.
bool RlView::takeKey(const QKeyEvent& event) {
    const Qt::KeyboardModifiers modifiers = event.modifiers() & ~Qt::KeypadModifier;
    const bool shift = modifiers == Qt::ShiftModifier;
    if (page() != Curves || (modifiers != Qt::NoModifier && !shift)) {
        return false;
    }
    const int key = event.key();
    if (key == Qt::Key_Left || key == Qt::Key_Right) {
        stepBy((key == Qt::Key_Right ? 1 : -1) * (shift ? kLongStride : 1));
    } else if (key == Qt::Key_E && !shift) {
        nextEvaluation();
    } else {
        return false;
    }
    return true;
}

void RlView::keyPressEvent(QKeyEvent* event) {
    if (!takeKey(*event)) {
        DocumentView::keyPressEvent(event);
    }
}

bool RlView::eventFilter(QObject* watched, QEvent* event) {
    return event->type() == QEvent::KeyPress ? takeKey(*static_cast<QKeyEvent*>(event))
                                             : DocumentView::eventFilter(watched, event);
}

} // namespace vitrine::ui
