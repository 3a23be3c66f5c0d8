// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/rl/rl_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/result_fields.h"
#include "engine/workload/experiment/results.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/run_events.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::ui {

namespace {

using engine::RlStep;

constexpr double kUnknownNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kMostStepSeconds = 1e7; ///< that are believed
constexpr double kMostStepTokens = 1e12;

RlStep unknownStep() {
    RlStep out;
    for (const engine::RlNumber& number : engine::rlNumbers()) {
        out.*number.value = kUnknownNumber;
    }
    return out;
}

base::TimeNs nanoseconds(double seconds) {
    return seconds > 0 && seconds < kMostStepSeconds ? static_cast<base::TimeNs>(seconds * 1e9) : 0;
}

/// The list of a number in results; null where there is none.
const nlohmann::json* listOfNumber(const nlohmann::json& results, const engine::RlNumber& number) {
    auto found = results.find(number.field->key);
    if (found == results.end()) {
        return nullptr;
    }
    const nlohmann::json* list = &*found;
    if (!number.part.empty()) {
        if (!list->is_object() || !list->contains(number.part)) {
            return nullptr;
        }
        list = &(*list)[std::string(number.part)];
    }
    return list->is_array() ? list : nullptr;
}

} // namespace

bool isRlRun(const sessions::RunInfo& run) {
    return run.workload == "rl";
}

RlRunPtr RlRun::make(const sessions::RunInfo& info, const profiler::RunTimeline& timeline) {
    auto run = std::make_shared<RlRun>();
    run->takeDemand(info.specJson);
    if (const auto total = timeline.counters().samples("training_steps"); !total.empty()) {
        run->total_ = static_cast<std::int64_t>(std::clamp(total.back().second, 0.0, 1e15));
    }
    for (const base::TrainingMarkEvent& mark : profiler::events<base::TrainingMarkEvent>(timeline)) {
        if (mark.kind == base::TrainingMark::Resumed) {
            run->first_ = mark.step + 1;
        }
    }
    run->takeCounters(timeline);
    if (run->empty()) {
        run->takeUpdates(timeline);
    }
    run->recorded_ = !run->empty();
    run->takeEvaluations(timeline);
    if (run->empty()) {
        run->takeResults(info.metricsJson);
    }
    run->countTokens();
    return run;
}

void RlRun::takeDemand(const std::string& specJson) {
    const auto spec = engine::Experiment::read(specJson);
    if (!spec) {
        return;
    }
    const auto numberOf = [&](const char* key) { return spec->maybeInteger(key).value_or(0); };
    demand_.updates = std::max<std::int64_t>(1, numberOf("updates"));
    if (spec->has("rollouts")) {
        return;
    }
    demand_.prompts = numberOf("prompts");
    demand_.samples = numberOf("samples");
    demand_.longest = numberOf("max_new_tokens");
    demand_.evalEvery = numberOf("eval_every");
    demand_.evalProblems = numberOf("eval_problems");
}

/// A step reports all its numbers together at its end, its length last.
void RlRun::takeCounters(const profiler::RunTimeline& timeline) {
    const auto lengths = timeline.counters().samples(engine::result::kStepSeconds.key);
    times_.reserve(lengths.size());
    for (const auto& [end, seconds] : lengths) {
        const base::TimeNs before = times_.empty() ? 0 : times_.back().end;
        times_.push_back({std::clamp<base::TimeNs>(end - nanoseconds(seconds), before, end), end});
    }
    steps_.assign(times_.size(), unknownStep());
    for (const engine::RlNumber& number : engine::rlNumbers()) {
        std::size_t step = 0;
        for (const auto& [time, value] : timeline.counters().samples(engine::rlNumberName(number))) {
            while (step < times_.size() && times_[step].end < time) {
                ++step;
            }
            if (step == times_.size()) {
                break; // of a step whose end is not known yet
            }
            steps_[step].*number.value = value;
        }
    }
}

/// Answers that were given: a step is an update, and reports after it.
void RlRun::takeUpdates(const profiler::RunTimeline& timeline) {
    const std::span<const base::TrainingStepEvent> updates = profiler::events<base::TrainingStepEvent>(timeline);
    if (updates.empty() || demand_.prompts > 0) {
        return; // steps of samples end later than their updates
    }
    first_ = updates.front().step;
    for (const base::TrainingStepEvent& update : updates) {
        RlStep step = unknownStep();
        step.loss = update.loss;
        step.seconds = step.updateSeconds = static_cast<double>(update.end - update.begin) * 1e-9;
        steps_.push_back(step);
        times_.push_back({update.begin, update.end});
    }
    for (const engine::RlNumber& number : engine::rlNumbers()) {
        std::size_t step = 0;
        for (const auto& [time, value] : timeline.counters().samples(engine::rlNumberName(number))) {
            while (step + 1 < times_.size() && times_[step + 1].end <= time) {
                ++step;
            }
            steps_[step].*number.value = value;
        }
    }
}

void RlRun::takeResults(const std::string& metricsJson) {
    const nlohmann::json results = base::parsedObject(metricsJson);
    if (results.empty()) {
        return;
    }
    for (const engine::RlNumber& number : engine::rlNumbers()) {
        const nlohmann::json* list = listOfNumber(results, number);
        if (list == nullptr) {
            continue;
        }
        if (steps_.size() < list->size()) {
            steps_.resize(list->size(), unknownStep());
        }
        for (std::size_t i = 0; i < list->size(); ++i) {
            steps_[i].*number.value = (*list)[i].is_number() ? (*list)[i].get<double>() : kUnknownNumber;
        }
    }
    first_ = 1; // results have the steps before a checkpoint too
    base::TimeNs now = 0;
    for (const RlStep& step : steps_) {
        const base::TimeNs begin = now;
        now += nanoseconds(step.seconds);
        times_.push_back({begin, now});
    }
    if (!empty()) {
        total_ = lastStep();
    }
    const auto rewards = results.find(engine::result::kEvalRewards.key);
    const auto at = results.find(engine::result::kRlEvalSteps.key);
    if (rewards == results.end() || at == results.end() || !rewards->is_array() || !at->is_array()) {
        return;
    }
    evaluations_.clear();
    for (std::size_t i = 0; i < std::min(rewards->size(), at->size()); ++i) {
        if ((*rewards)[i].is_number() && (*at)[i].is_number_integer()) {
            const auto step = (*at)[i].get<std::int64_t>();
            const auto index = indexOf(step);
            evaluations_.push_back({step, (*rewards)[i].get<double>(), index ? times_[*index].end : 0});
        }
    }
}

void RlRun::takeEvaluations(const profiler::RunTimeline& timeline) {
    std::map<std::int64_t, RlEvaluation> found; // a step that was done again after a checkpoint counts once
    for (const base::TrainingMarkEvent& mark : profiler::events<base::TrainingMarkEvent>(timeline)) {
        if (mark.kind == base::TrainingMark::Evaluated) {
            found[mark.step] = {mark.step, mark.value, mark.end};
        }
    }
    for (const auto& [step, evaluation] : found) {
        evaluations_.push_back(evaluation);
    }
}

void RlRun::countTokens() {
    double sum = 0;
    tokens_.reserve(size());
    for (const RlStep& step : steps_) {
        const double sampled = step.rolloutRate * step.rolloutSeconds;
        sum += sampled > 0 && sampled < kMostStepTokens ? sampled : 0;
        tokens_.push_back(std::llround(sum));
    }
}

std::optional<std::size_t> RlRun::indexOf(std::int64_t number) const {
    if (empty() || number < first_ || number > lastStep()) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(number - first_);
}

const RlEvaluation* RlRun::evaluationAt(std::int64_t step) const {
    const auto next = std::ranges::upper_bound(evaluations_, step, {}, &RlEvaluation::step);
    return next == evaluations_.begin() ? nullptr : &*std::prev(next);
}

const RlEvaluation* RlRun::bestEvaluation() const {
    const auto best = std::ranges::max_element(evaluations_, {}, &RlEvaluation::reward);
    return best == evaluations_.end() ? nullptr : &*best;
}

base::TimeNs RlRun::place(std::size_t index, RlAxis axis) const {
    switch (axis) {
    case RlAxis::Tokens:
        return tokens_[index] * kSampledTokenLength;
    case RlAxis::Time:
        return times_[index].end - times_.front().begin;
    case RlAxis::Steps:
        break;
    }
    return number(index) * kStepLength;
}

base::TimeNs RlRun::placeOf(const RlEvaluation& evaluation, RlAxis axis) const {
    if (axis == RlAxis::Steps) {
        return evaluation.step * kStepLength;
    }
    const auto index = indexOf(evaluation.step);
    return index ? place(*index, axis) : 0;
}

std::optional<std::size_t> RlRun::stepAt(base::TimeNs at, RlAxis axis) const {
    if (empty()) {
        return std::nullopt;
    }
    if (axis == RlAxis::Steps) {
        const std::int64_t number = std::clamp((at + kStepLength / 2) / kStepLength, first_, lastStep());
        return indexOf(number);
    }
    std::size_t low = 0, high = size();
    while (low < high) { // the first one that does not lie before it
        const std::size_t middle = low + (high - low) / 2;
        place(middle, axis) < at ? low = middle + 1 : high = middle;
    }
    const bool before = low == size() || (low > 0 && at - place(low - 1, axis) < place(low, axis) - at);
    return before ? low - 1 : low;
}

} // namespace vitrine::ui
