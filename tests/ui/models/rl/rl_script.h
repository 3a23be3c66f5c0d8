// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs of reinforcement learning for tests: steps of ten seconds whose rewards rise, in which four of 32 seconds' worth
// of answers are waited for, and the RunInfo that goes with them.

#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/workload/rl/rl_numbers.h"
#include "tests/ui/models/session/recorded_run.h"

namespace vitrine::test {

struct RlScript {
    int steps = 0;
    int total = 0; ///< 0: as many
    int first = 1;
    int evalEvery = 0;
    bool memory = false;  ///< weights for the whole run, pages in rollouts, gradients in updates
    bool copies = false;  ///< and weights that only rollouts have
    bool scopes = true;   ///< phases and steps of the sampler
    bool answers = false; ///< four groups of eight in each step, of which two are trained on and kept
    int highest = 0;      ///< the step that says a higher peak than the others; 0: none
    double difference = 0.003;

    double late = 0; ///< seconds by which the numbers of a step come after it

    static constexpr double kStep = 10, kRollout = 6, kScoring = 1, kTail = 4;
    static constexpr int kAnswers = 32;

    double reward(int step) const { return 1 - std::exp(-step / 20.0); }
    double beginOf(int step) const { return 1 + kStep * (step - first); }

    engine::RlStep numbers(int step) const {
        engine::RlStep out;
        out.reward = reward(step);
        out.rewardLow = out.reward / 2;
        out.rewardHigh = (1 + out.reward) / 2;
        out.answerTokens = 50 + step;
        out.cutShare = 0.01;
        out.absDifference = difference;
        out.seconds = kStep - 0.5;
        out.rolloutSeconds = kRollout;
        out.logProbSeconds = kScoring;
        out.updateSeconds = out.seconds - kRollout - kScoring;
        out.rolloutRate = 100;
        out.rolloutPeak = step == highest ? 1 << 23 : 1 << 22;
        out.trainingPeak = 1 << 21;
        return out;
    }

    void record(RecordedRun& run) const {
        run.counter("training_steps", 0.5, total > 0 ? total : steps);
        run.counter("budget_bytes", 0.5, 1 << 23);
        if (memory) {
            run.alloc(base::MemoryCategory::Weights, "lm_head", 1 << 20, 0.25, -1);
        }
        if (first > 1) {
            run.record(base::TrainingMarkEvent{ns(0.75), ns(0.75), first - 1, base::TrainingMark::Resumed, 0});
        }
        for (int step = first; step < first + steps; ++step) {
            recordStep(run, step);
        }
    }

    /// A step of a run that goes on.
    void recordStep(RecordedRun& run, int step) const {
        const double begin = beginOf(step), end = begin + kStep - 0.5, train = begin + kRollout;
        if (memory && copies) {
            run.alloc(base::MemoryCategory::Weights, "lm_head (rollout)", 1 << 18, begin + 0.1, train - 0.1);
        }
        if (memory) {
            run.alloc(base::MemoryCategory::KvCache, "pages", 3 << 20, begin + 0.1, train - 0.1);
            run.alloc(base::MemoryCategory::Gradients, "grad", 1 << 20, train + kScoring + 0.1, end - 0.1);
        }
        if (scopes) {
            run.scope(base::ScopeKind::Phase, "rollout", begin - late, train, 0, step);
            run.scope(base::ScopeKind::Phase, "train", train, end, 0, step);
            recordSampling(run, step, begin);
        }
        run.record(base::TrainingStepEvent{ns(train + kScoring), ns(end - 0.05), step, 1000, 0.1, 1e-4, 0.5});
        if (answers) {
            recordAnswers(run, step, end - 0.01);
        }
        const engine::RlStep values = numbers(step);
        for (const engine::RlNumber& number : engine::rlNumbers()) {
            run.counter(engine::rlNumberName(number), end, values.*number.value);
        }
        if (evalEvery > 0 && step % evalEvery == 0) {
            run.record(base::TrainingMarkEvent{ns(end), ns(end + 0.4), step, base::TrainingMark::Evaluated,
                                               reward(step) + 0.1});
        }
    }

    /// All answers for two seconds, then the last one for four.
    void recordSampling(RecordedRun& run, int step, double begin) const {
        for (int i = 0; i < 6; ++i) {
            base::BatchStepEvent sampled;
            sampled.begin = ns(begin + i);
            sampled.end = ns(begin + i + 1);
            sampled.index = std::int64_t{6} * (step - first) + i;
            sampled.running = i < 2 ? kAnswers : 1;
            run.record(sampled);
        }
    }

    /// Groups 0 and 2 have two right answers of eight, the others none: their rows are left out. An answer is "7" and a
    /// token that ends it; in row r the trainer is r + 1 thousandths above the sampler at the first one.
    void recordAnswers(RecordedRun& run, int step, double time) const {
        std::int64_t row = 0;
        for (std::int64_t group = 0; group < 4; ++group) {
            for (std::int64_t place = 0; place < 8; ++place) {
                const bool trained = group % 2 == 0;
                base::RolloutAnswerEvent answer;
                answer.time = ns(time);
                answer.batch = step;
                answer.group = group;
                answer.place = place;
                answer.row = trained ? row : -1;
                answer.tokens = 2;
                answer.reward = trained && place < 2 ? 1 : 0.1;
                answer.judgeSeconds = 0.1 * static_cast<double>(group + 1) + 0.01 * static_cast<double>(place);
                answer.finish = run.word(place == 7 ? "length" : "stop_token");
                run.record(answer);
                if (trained) {
                    recordRow(run, step, row++, group, time);
                }
            }
        }
    }

    void recordRow(RecordedRun& run, int step, std::int64_t row, std::int64_t group, double time) const {
        const double none = std::nan("");
        run.record(base::RolloutEvent{ns(time), step, row, 2, row % 8 < 2 ? 1.5 : -0.5});
        const std::string words[] = {"2+", std::to_string(group), "7", "."};
        for (std::int64_t position = 0; position < 4; ++position) {
            const bool said = position >= 2;
            const double sampled = said ? -0.5 : none;
            const double more = position == 2 ? 0.001 * static_cast<double>(row + 1) : 0;
            run.record(base::RolloutTokenEvent{ns(time), step, row, position, static_cast<std::int32_t>(position),
                                               sampled + more, sampled, none,
                                               run.word(words[static_cast<std::size_t>(position)])});
        }
    }

    std::shared_ptr<const profiler::RunTimeline> timeline() const {
        RecordedRun run;
        record(run);
        return run.timeline();
    }

    /// Of a run that recorded none of its steps: the numbers are in its results alone, and so are made cheaply.
    std::string results() const {
        std::vector<engine::RlStep> all;
        for (int step = first; step < first + steps; ++step) {
            all.push_back(numbers(step));
        }
        nlohmann::json out = nlohmann::json::object();
        engine::addRlResults(out, all);
        return out.dump();
    }

    sessions::RunInfo info(sessions::RunId id = 1, const std::string& metrics = "{}") const {
        return runInfo(id, "rl", metrics,
                       R"({"vitrine": 1, "workload": "rl", "model": "m/tiny", "task": "sums", "prompts": 4,)"
                       R"( "samples": 8, "max_new_tokens": 64, "slots": 32, "eval_problems": 16, "eval_every": )" +
                           std::to_string(evalEvery) + "}");
    }
};

} // namespace vitrine::test
