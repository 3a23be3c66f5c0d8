// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/training_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "engine/workload/experiment/experiment.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_events.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr std::int64_t kStepsBeforeForecast = 20;
constexpr std::size_t kForecastSteps = 50;

base::TimeNs placeOfStep(std::int64_t step) {
    return step * kStepLength;
}

double secondsOf(base::TimeNs length) {
    return static_cast<double>(length) / 1e9;
}

double medianOf(std::vector<double> values) {
    if (values.empty()) {
        return 0;
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

std::optional<std::uint64_t> lastCount(const profiler::RunTimeline& timeline, const char* counter) {
    const auto samples = timeline.counters().samples(counter);
    if (samples.empty() || !(samples.back().second >= 0) || samples.back().second > 1e18) {
        return std::nullopt;
    }
    return static_cast<std::uint64_t>(samples.back().second);
}

} // namespace

std::shared_ptr<const TrainingRun> TrainingRun::make(const sessions::RunInfo& info,
                                                     const profiler::RunTimeline& timeline, double smoothing) {
    auto run = std::make_shared<TrainingRun>();
    if (const auto spec = engine::Experiment::read(info.specJson)) {
        if (const double clip = spec->maybeReal("clip_norm").value_or(0); clip > 0) {
            run->clip_ = clip;
        }
        run->evalEvery_ = spec->maybeInteger("eval_every").value_or(0);
    }
    if (const auto total = lastCount(timeline, "training_steps")) {
        run->total_ = static_cast<std::int64_t>(*total);
    }
    run->trained_ = lastCount(timeline, "trained_parameters");
    run->parameters_ = lastCount(timeline, "model_parameters");
    run->takeSteps(timeline, std::clamp(smoothing, 0.0, 0.9999));
    run->takeMarks(timeline);
    return run;
}

void TrainingRun::takeSteps(const profiler::RunTimeline& timeline, double smoothing) {
    const std::span<const base::TrainingStepEvent> events = profiler::events<base::TrainingStepEvent>(timeline);
    steps_.assign(events.begin(), events.end());
    std::ranges::stable_sort(steps_, {}, &base::TrainingStepEvent::step);
    const auto [from, to] = std::ranges::unique(steps_, {}, &base::TrainingStepEvent::step);
    steps_.erase(from, to);
    for (PlotSeries* series : {&loss_, &smoothed_, &rate_, &norm_, &speed_}) {
        series->reserve(steps_.size());
    }
    double kept = 0, weight = 0; // divided by the weight, so that the first steps are not drawn to 0
    for (const base::TrainingStepEvent& step : steps_) {
        const base::TimeNs place = placeOfStep(step.step);
        loss_.add(place, step.loss);
        if (std::isfinite(step.loss)) {
            kept = smoothing * kept + (1 - smoothing) * step.loss;
            weight = smoothing * weight + (1 - smoothing);
        }
        smoothed_.add(place, std::isfinite(step.loss) ? kept / weight : step.loss);
        rate_.add(place, step.learningRate);
        norm_.add(place, step.gradientNorm);
        const double seconds = secondsOf(step.end - step.begin);
        speed_.add(place, seconds > 0 ? static_cast<double>(step.tokens) / seconds : 0);
        tokens_ += step.tokens;
        clipped_ += clip_ && step.gradientNorm > *clip_ ? 1 : 0;
    }
}

void TrainingRun::takeMarks(const profiler::RunTimeline& timeline) {
    std::map<std::int64_t, double> losses;
    std::map<std::int64_t, bool> saved; // whether it is kept
    for (const base::TrainingMarkEvent& mark : profiler::events<base::TrainingMarkEvent>(timeline)) {
        switch (mark.kind) {
        case base::TrainingMark::Evaluated:
            losses[mark.step] = mark.value;
            evaluationSeconds_.push_back(secondsOf(mark.end - mark.begin));
            break;
        case base::TrainingMark::Saved:
            saved[mark.step] = true;
            break;
        case base::TrainingMark::Dropped:
            if (const auto found = saved.find(mark.step); found != saved.end()) { // else one of an earlier run
                found->second = false;
            }
            break;
        case base::TrainingMark::Resumed:
            resumed_ = mark.step;
            break;
        }
    }
    for (const auto& [step, loss] : losses) {
        evaluations_.add(placeOfStep(step), loss);
    }
    TrainingCheckpoint *newest = nullptr, *best = nullptr;
    checkpoints_.reserve(saved.size());
    for (const auto& [step, kept] : saved) {
        TrainingCheckpoint& checkpoint = checkpoints_.emplace_back();
        checkpoint.step = step;
        checkpoint.kept = kept;
        if (const auto next = losses.upper_bound(step); next != losses.begin()) {
            checkpoint.evalLoss = std::prev(next)->second;
        }
        if (kept) {
            newest = &checkpoint;
            best =
                checkpoint.evalLoss && (best == nullptr || *checkpoint.evalLoss < *best->evalLoss) ? &checkpoint : best;
        }
    }
    if (newest != nullptr) {
        newest->newest = true;
    }
    if (best != nullptr) {
        best->best = true;
    }
}

bool TrainingRun::notFinite() const {
    return !empty() && (!std::isfinite(steps_.back().loss) || !std::isfinite(steps_.back().gradientNorm));
}

double TrainingRun::elapsedSeconds() const {
    return empty() ? 0 : secondsOf(steps_.back().end - steps_.front().begin);
}

std::optional<TrainingRest> TrainingRun::rest() const {
    if (!total_ || empty() || lastStep() >= *total_ ||
        static_cast<std::int64_t>(steps_.size()) < kStepsBeforeForecast) {
        return std::nullopt;
    }
    TrainingRest rest;
    rest.steps = *total_ - lastStep();
    std::vector<double> seconds;
    for (std::size_t i = steps_.size() - std::min(steps_.size(), kForecastSteps); i < steps_.size(); ++i) {
        seconds.push_back(secondsOf(steps_[i].end - steps_[i].begin));
    }
    rest.stepSeconds = medianOf(std::move(seconds));
    if (evalEvery_ > 0) {
        rest.evaluations = *total_ / evalEvery_ - lastStep() / evalEvery_ + (*total_ % evalEvery_ != 0 ? 1 : 0);
        rest.evaluationSeconds = medianOf(evaluationSeconds_);
    }
    rest.seconds = static_cast<double>(rest.steps) * rest.stepSeconds +
                   static_cast<double>(rest.evaluations) * rest.evaluationSeconds;
    return rest;
}

std::optional<std::size_t> TrainingRun::stepAt(base::TimeNs place) const {
    return loss_.nearest(place);
}

std::optional<TimeRange> TrainingRun::timesOf(base::TimeNs begin, base::TimeNs end) const {
    // Step k is shown half a step around its place.
    const auto numberAt = [](base::TimeNs place) { return (place + kStepLength / 2) / kStepLength; };
    const auto first = std::ranges::lower_bound(steps_, numberAt(begin), {}, &base::TrainingStepEvent::step);
    const auto last =
        std::ranges::upper_bound(steps_, numberAt(std::max(begin, end - 1)), {}, &base::TrainingStepEvent::step);
    if (first == last || begin < -kStepLength / 2) {
        return std::nullopt;
    }
    return TimeRange{first->begin, std::max(first->begin + 1, std::prev(last)->end)};
}

std::optional<base::TimeNs> TrainingRun::placeOf(base::TimeNs time) const {
    const auto next = std::ranges::lower_bound(steps_, time, {}, &base::TrainingStepEvent::end);
    if (next == steps_.end() || (next == steps_.begin() && time < next->begin)) {
        return std::nullopt;
    }
    return placeOfStep(next->step);
}

StackModelPtr trainingStack(const TrainingRun& run, const profiler::RunTimeline& timeline, const AxisMap& axis,
                            int columns) {
    auto model = std::make_shared<StackModel>();
    for (int i = 0; i < base::kCategoryCount; ++i) {
        model->layers.push_back({textOf(base::categoryName(static_cast<base::MemoryCategory>(i))), i, 0});
    }
    const auto count = static_cast<std::size_t>(std::max(columns, 0));
    model->columns.resize(count);
    model->values.assign(count * model->layers.size(), 0);
    TimeRange asked;
    profiler::MemoryColumn peak;
    for (std::size_t i = 0; i < count; ++i) {
        const double wide = axis.width() / static_cast<double>(count);
        const auto times =
            run.timesOf(axis.time(static_cast<double>(i) * wide), axis.time(static_cast<double>(i + 1) * wide));
        if (!times) {
            continue;
        }
        if (!(*times == asked)) { // neighbouring columns of a wide step show the same
            asked = *times;
            peak = timeline.memory().peak(asked.begin, asked.end);
        }
        StackColumn& column = model->columns[i];
        column.present = true;
        column.total = peak.maxTotal;
        column.time = peak.maxTime;
        std::ranges::copy(peak.atMax, model->values.begin() + static_cast<std::ptrdiff_t>(i * model->layers.size()));
    }
    return model;
}

} // namespace vitrine::ui
