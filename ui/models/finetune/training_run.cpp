// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/training_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/result_fields.h"
#include "engine/workload/experiment/results.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/run_events.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr std::int64_t kStepsBeforeForecast = 20;
constexpr std::size_t kForecastSteps = 50;
constexpr double kMostSteps = 1e9; ///< of a run whose results are believed

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

/// The numbers of a list; what is no number is not finite.
std::vector<double> listOf(const nlohmann::json& results, const engine::ResultField& field) {
    std::vector<double> numbers;
    if (const auto list = results.find(field.key); list != results.end() && list->is_array()) {
        for (const nlohmann::json& item : *list) {
            numbers.push_back(item.is_number() ? item.get<double>() : std::numeric_limits<double>::quiet_NaN());
        }
    }
    return numbers;
}

std::vector<base::TrainingStepEvent> stepsOfResults(const nlohmann::json& results) {
    const std::vector<double> losses = listOf(results, engine::result::kLosses);
    const std::vector<double> rates = listOf(results, engine::result::kLearningRates);
    const std::vector<double> norms = listOf(results, engine::result::kGradNorms);
    const std::vector<double> seconds = listOf(results, engine::result::kStepSeconds);
    const std::size_t count = std::min({losses.size(), rates.size(), norms.size(), seconds.size()});
    const std::uint64_t all = engine::countOf(results, engine::result::kSteps).value_or(count);
    const std::uint64_t before = all > count && all < kMostSteps ? all - count : 0; // of the run that it went on from
    const std::uint64_t tokens =
        engine::countOf(results, engine::result::kTokens).value_or(0) / std::max<std::uint64_t>(1, count);
    std::vector<base::TrainingStepEvent> steps(count);
    base::TimeNs now = 0;
    for (std::size_t i = 0; i < count; ++i) {
        base::TrainingStepEvent& step = steps[i];
        step.step = static_cast<std::int64_t>(before + i + 1);
        step.begin = now;
        now += static_cast<base::TimeNs>(1e9 * (seconds[i] > 0 && seconds[i] < 1e6 ? seconds[i] : 0));
        step.end = now;
        step.tokens = static_cast<decltype(step.tokens)>(tokens);
        step.loss = losses[i];
        step.learningRate = rates[i];
        step.gradientNorm = norms[i];
    }
    return steps;
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
        run->keep_ = spec->maybeInteger("keep_checkpoints").value_or(0);
        run->sampleEvery_ = spec->maybeInteger("sample_every").value_or(0);
        run->asks_ = info.workload == "finetune" && !spec->texts("sample_prompts").empty();
    }
    if (const auto total = lastCount(timeline, "training_steps")) {
        run->total_ = static_cast<std::int64_t>(*total);
    }
    run->trained_ = lastCount(timeline, "trained_parameters");
    run->parameters_ = lastCount(timeline, "model_parameters");
    const std::span<const base::TrainingStepEvent> recorded = profiler::events<base::TrainingStepEvent>(timeline);
    const nlohmann::json results =
        recorded.empty() ? nlohmann::json::parse(info.metricsJson, nullptr, false) : nlohmann::json();
    run->takeSteps(results.is_object() ? stepsOfResults(results)
                                       : std::vector<base::TrainingStepEvent>(recorded.begin(), recorded.end()),
                   std::clamp(smoothing, 0.0, 0.9999));
    run->takeMarks(timeline);
    run->takeCodes(timeline);
    run->answers_ = TrainingAnswers::read(info.metricsJson);
    if (results.is_object() && !run->empty()) {
        run->total_ = run->lastStep();
        run->trained_ = engine::countOf(results, engine::result::kTrainedParameters);
        const std::vector<double> losses = listOf(results, engine::result::kEvalLosses);
        const std::vector<double> steps = listOf(results, engine::result::kEvalSteps);
        for (std::size_t i = 0; i < std::min(losses.size(), steps.size()); ++i) {
            run->evaluations_.add(placeOfStep(static_cast<std::int64_t>(std::clamp(steps[i], 0.0, kMostSteps))),
                                  losses[i]);
        }
        const std::vector<double> codes = listOf(results, engine::result::kCodesChanged);
        for (std::size_t i = 0; i < std::min(codes.size(), run->steps_.size()); ++i) {
            run->codes_.add(placeOfStep(run->steps_[i].step), codes[i]);
        }
    }
    return run;
}

void TrainingRun::takeSteps(std::vector<base::TrainingStepEvent> steps, double smoothing) {
    steps_ = std::move(steps);
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
        case base::TrainingMark::Answered:
            answerSeconds_.push_back(secondsOf(mark.end - mark.begin));
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

/// A step says how many codes it changed after its end and before the next one begins.
void TrainingRun::takeCodes(const profiler::RunTimeline& timeline) {
    for (const auto& [time, share] : timeline.counters().samples("codes_changed")) {
        const auto next = std::ranges::upper_bound(steps_, time, {}, &base::TrainingStepEvent::begin);
        if (next == steps_.begin()) {
            continue;
        }
        const base::TimeNs place = placeOfStep(std::prev(next)->step);
        if (codes_.empty() || codes_.place(codes_.size() - 1) < place) {
            codes_.add(place, share);
        }
    }
}

std::optional<double> TrainingRun::codesChanged(std::size_t step) const {
    const base::TimeNs place = placeOfStep(steps_[step].step);
    const auto found = codes_.nearest(place);
    return found && codes_.place(*found) == place ? std::optional(codes_.value(*found)) : std::nullopt;
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
    rest.stepSeconds = stepSeconds();
    if (evalEvery_ > 0) {
        rest.evaluations = *total_ / evalEvery_ - lastStep() / evalEvery_ + (*total_ % evalEvery_ != 0 ? 1 : 0);
        rest.evaluationSeconds = medianOf(evaluationSeconds_);
    }
    if (asks_) {
        rest.answerSets = 1; // after the last step
        if (sampleEvery_ > 0) {
            rest.answerSets += (*total_ - 1) / sampleEvery_ - lastStep() / sampleEvery_;
        }
        rest.answerSeconds = medianOf(answerSeconds_);
    }
    rest.seconds = static_cast<double>(rest.steps) * rest.stepSeconds +
                   static_cast<double>(rest.evaluations) * rest.evaluationSeconds +
                   static_cast<double>(rest.answerSets) * rest.answerSeconds;
    return rest;
}

double TrainingRun::stepSeconds() const {
    std::vector<double> seconds;
    for (std::size_t i = steps_.size() - std::min(steps_.size(), kForecastSteps); i < steps_.size(); ++i) {
        seconds.push_back(secondsOf(steps_[i].end - steps_[i].begin));
    }
    return medianOf(std::move(seconds));
}

std::optional<std::int64_t> TrainingRun::nextAnswers() const {
    if (!asks_ || !total_ || lastStep() >= *total_) {
        return std::nullopt;
    }
    const std::int64_t next = sampleEvery_ > 0 ? (lastStep() / sampleEvery_ + 1) * sampleEvery_ : *total_;
    return std::min(next, *total_);
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

} // namespace vitrine::ui
