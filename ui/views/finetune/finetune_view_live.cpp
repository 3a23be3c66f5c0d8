// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The page Live: from the run's events to lanes, marks and words.
#include <QCheckBox>
#include <QComboBox>
#include <QStackedWidget>
#include <QTableView>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/finetune/data_text.h"
#include "ui/models/finetune/training_text.h"
#include "ui/views/finetune/answer_table.h"
#include "ui/views/finetune/data_page.h"
#include "ui/views/finetune/finetune_form.h"
#include "ui/views/finetune/finetune_panel.h"
#include "ui/views/finetune/finetune_view.h"
#include "ui/views/finetune/live_lanes.h"
#include "ui/views/finetune/step_page.h"
#include "ui/widgets/plots/fact_strip.h"
#include "ui/widgets/timeline/lane_stack.h"

namespace vitrine::ui {

namespace {

constexpr double kFreeShare = 0.05; ///< of the axis, right of the newest value
constexpr std::int64_t kShownSteps = 100;
constexpr int kRoomForAnswers = 640; ///< height of the page from which on their rows are open
constexpr int kAnswerRows = 3;

base::TimeNs withAir(std::int64_t steps) {
    return static_cast<base::TimeNs>(
        std::ceil(static_cast<double>(std::max<std::int64_t>(steps, 1) * kStepLength) * (1 + kFreeShare)));
}

/// Grows in jumps of about a tenth. In between the axis stays, and new steps only add columns at its end.
std::int64_t inJumps(std::int64_t steps) {
    const std::uint64_t power = std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(steps, 1)));
    const auto jump = static_cast<std::int64_t>(std::max<std::uint64_t>(power / 8, 1));
    return (steps + jump - 1) / jump * jump;
}

/// A fine-tuning run other than this one, the newest; 0: there is none.
sessions::RunId otherTrainingRun(const std::vector<sessions::RunInfo>& runs, sessions::RunId shown) {
    sessions::RunId other = 0;
    for (const sessions::RunInfo& each : runs) {
        other = isTrainingRun(each) && each.id != shown ? each.id : other;
    }
    return other;
}

} // namespace

double FinetuneView::smoothing() const {
    return smoothing_->currentData().toDouble();
}

void FinetuneView::onRuns() {
    if (startedRun_ != 0 && runInfo(startedRun_) != nullptr) {
        document()->setRunA(std::exchange(startedRun_, 0));
    }
    reload();
}

void FinetuneView::refresh() {
    if (live(shownRun_) && runA() == shownRun_ && pace_.tooSoon()) {
        return;
    }
    const sessions::RunInfo* run = runInfo(runA());
    const bool trains = run != nullptr && isTrainingRun(*run);
    const sessions::RunId shown = trains ? run->id : 0;
    if (shown != shownRun_) {
        shownRun_ = shown;
        clear();
        if (shown != 0 && !form_->touched()) {
            form_->take(textOf(run->specJson), false);
        }
        if (shown != 0 && page() == Form && !form_->touched()) {
            showPage(Live); // somebody chose the run to look at it
        }
    }
    const TimelineState state = timelineOf(shownRun_);
    if (page() == Live) {
        showRunError();
    }
    if (!state.timeline) {
        job_.cancel();
        updateLive();
        return;
    }
    job_.start(
        [info = *run, timeline = state.timeline, share = smoothing()] {
            Built built{TrainingRun::make(info, *timeline, share), timeline, 0};
            if (const auto all = built.training->timesOf(0, (built.training->lastStep() + 1) * kStepLength)) {
                built.peak = timeline->memory().peak(all->begin, all->end).maxTotal;
            }
            return built;
        },
        ifStill(shownRun_, [this](Built built) { take(std::move(built)); }));
    updateLive();
}

/// Over the lanes; the form has errors of its own.
void FinetuneView::showRunError() {
    const sessions::RunInfo* run = page() == Live ? runInfo(shownRun_) : nullptr;
    const bool failed = run != nullptr &&
                        (run->status == sessions::RunStatus::Failed || run->status == sessions::RunStatus::OutOfMemory);
    const QString unread = run != nullptr ? timelineOf(shownRun_).error : QString();
    showError(!unread.isEmpty() ? unread : failed ? textOf(run->error) : QString());
}

void FinetuneView::clear() {
    training_.reset();
    timeline_.reset();
    peak_ = 0;
    lanes_->clear();
    placing_ = true;
    time_->reset({0, withAir(1)});
    placing_ = false;
    placed_ = true;
    follow_->setChecked(true);
}

void FinetuneView::take(Built built) {
    training_ = std::move(built.training);
    timeline_ = std::move(built.timeline);
    peak_ = built.peak;
    updateExtent();
    if (placed_ && (follow_->isChecked() || !live(shownRun_))) {
        applyRange();
    }
    updateLive();
}

QString FinetuneView::whyNothing() const {
    const sessions::RunInfo* run = runInfo(shownRun_);
    if (run == nullptr) {
        const bool any = document() != nullptr && std::ranges::any_of(document()->runs(), isTrainingRun);
        return any ? tr("The chosen run is no fine-tuning run.") : tr("No fine-tuning run in this session.");
    }
    if (training_ != nullptr && !training_->empty()) {
        return {};
    }
    if (run->status == sessions::RunStatus::Running) {
        return timeline_ ? QString() : tr("The run begins."); // axes wait for their values
    }
    if (!timelineOf(shownRun_).complete || job_.busy()) {
        return tr("Reading the events of this run.");
    }
    return run->error.empty()
               ? tr("This run recorded no steps: it was recorded by an earlier version, on Meta, or with "
                    "the profile off.")
               : tr("The run ended before its first step: %1").arg(textOf(run->error));
}

QString FinetuneView::liveText() const {
    return live_->currentWidget() == nothing_ ? nothing_->text() : QString();
}

void FinetuneView::updateLive() {
    const sessions::RunInfo* run = runInfo(shownRun_);
    const QString nothing = whyNothing();
    live_->setCurrentIndex(nothing.isEmpty() ? 0 : 1);
    const sessions::RunId other = document() != nullptr ? otherTrainingRun(document()->runs(), shownRun_) : 0;
    if (run == nullptr && other != 0) {
        nothing_->set(nothing, tr("Open a fine-tuning run"), [this, other] { document()->setRunA(other); });
    } else {
        nothing_->set(nothing, tr("Open the form"), [this] { showPage(Form); });
    }
    facts_->setVisible(run != nullptr);
    if (run != nullptr) {
        facts_->setFacts(trainingFacts(*run));
    }
    panel_->setRun(run, training_, document() != nullptr ? document()->runs() : std::vector<sessions::RunInfo>(),
                   peak_);
    answers_->setVisible(run != nullptr);
    answers_->setRun(training_);
    updateAnswers();
    if (nothing.isEmpty() && run != nullptr) {
        lanes_->setRun({*run, training_, timeline_, peak_, smoothing(), live(shownRun_)});
    }
    updateHeader();
    updateStep();
    updateFacts();
    updateTwin();
    updateButtons();
    emit availabilityChanged();
}

void FinetuneView::updateHeader() {
    const std::optional<std::int64_t> total = training_ ? training_->totalSteps() : std::nullopt;
    ranges_->button(All)->setText(total ? tr("All %1").arg(countText(*total)) : tr("All"));
    ranges_->updateGeometry();
}

/// From the step before the first one to the last one of the run, if that is known, with room for the newest values.
void FinetuneView::updateExtent() {
    if (training_->empty()) {
        placing_ = true;
        time_->setExtent({0, withAir(training_->totalSteps().value_or(1))});
        placing_ = false;
        return;
    }
    const base::TimeNs begin = (training_->firstStep() - 1) * kStepLength;
    const std::int64_t last = std::max(training_->lastStep(), training_->totalSteps().value_or(0));
    const std::int64_t steps = last - training_->firstStep() + 1;
    placing_ = true;
    time_->setExtent({begin, begin + withAir(live(shownRun_) && !training_->totalSteps() ? inJumps(steps) : steps)});
    placing_ = false;
}

void FinetuneView::applyRange() {
    if (training_ == nullptr || training_->empty()) {
        return;
    }
    placing_ = placed_ = true;
    const std::int64_t first = ranges_->current() == Last100
                                   ? std::max(training_->firstStep() - 1, training_->lastStep() - kShownSteps)
                                   : training_->firstStep() - 1;
    if (ranges_->current() == All) {
        time_->setRange(time_->extent(), false);
    } else {
        const std::int64_t steps = training_->lastStep() - first;
        const bool grows = live(shownRun_) && ranges_->current() != Last100;
        const base::TimeNs end = first * kStepLength + withAir(grows ? inJumps(steps) : steps);
        time_->setRange({first * kStepLength, std::min(end, time_->extent().end)}, false);
    }
    placing_ = false;
}

/// Where the page is low, the answers give way to the lanes.
void FinetuneView::updateAnswers() {
    answers_->setMostRows(body_->height() >= kRoomForAnswers ? kAnswerRows : 0);
}

void FinetuneView::updateFacts() {
    if (page() != Live) {
        return;
    }
    const auto step = lanes_->shownStep();
    const QString memory = lanes_->updateFacts();
    setReadout(step ? trainingStepText(*training_, *step) + memory : QString());
}

void FinetuneView::updateTwin() {
    if (!header()->tableShown()) {
        return;
    }
    if (page() == Data && data_->hasData()) {
        twinModel()->setTree(rowsTable(*data_->data(), data_->filter()));
        twin()->resizeColumnsToContents();
    } else if (page() != Data && training_ != nullptr) {
        twinModel()->setTree(page() == Step ? step_->table() : trainingStepTable(*training_));
        twin()->resizeColumnsToContents();
    }
}

/// The other views go to the peak of the step, which is what one wants to see of it there.
void FinetuneView::shareCursor() {
    const auto step = time_->cursor() && isVisible() ? lanes_->shownStep() : std::nullopt;
    if (step && context().time != nullptr && timeline_) {
        const base::TrainingStepEvent& at = training_->steps()[*step];
        const profiler::MemoryColumn peak = timeline_->memory().peak(at.begin, std::max(at.begin + 1, at.end));
        context().time->setCursor(peak.maxTotal > 0 ? peak.maxTime : at.begin);
    }
}

} // namespace vitrine::ui
