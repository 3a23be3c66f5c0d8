// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Training runs for tests: steps of a tenth of a second with a loss that falls, and the RunInfo that goes with them.

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "tests/ui/models/session/recorded_run.h"

namespace vitrine::test {

inline constexpr double kStepSeconds = 0.1;

struct TrainingScript {
    int steps = 0;
    int total = 0; ///< 0: as many
    int first = 1;
    int evalEvery = 0, saveEvery = 0, keep = 0;
    bool memory = false;    ///< each step holds gradients for its length, the run weights
    bool endsInNan = false; ///< the loss of the last step is no number
    double codes = 0;       ///< share of codes that the first step changes, the nth a nth of it; 0: not counted

    double loss(int step) const { return 1.2 + std::exp(-step / 20.0); }
    double beginOf(int step) const { return 1 + kStepSeconds * (step - first); }

    void record(RecordedRun& run) const {
        run.counter("training_steps", 0.5, total > 0 ? total : steps);
        run.counter("trained_parameters", 0.5, 1000);
        run.counter("model_parameters", 0.5, 100'000);
        if (memory) {
            run.alloc(base::MemoryCategory::Weights, "lm_head", 1 << 20, 0.25, -1);
        }
        if (first > 1) {
            run.record(base::TrainingMarkEvent{ns(0.75), ns(0.75), first - 1, base::TrainingMark::Resumed, 0});
        }
        for (int step = first; step < first + steps; ++step) {
            recordStep(run, step, step == first + steps - 1);
        }
    }

    /// A step of a run that goes on; `last`: its loss may be no number.
    void recordStep(RecordedRun& run, int step, bool last = false) const {
        const double begin = beginOf(step), end = begin + kStepSeconds * 0.9;
        if (memory) {
            run.alloc(base::MemoryCategory::Gradients, "grad", step % 2 == 0 ? 8192 : 4096, begin + 0.01, end - 0.01);
        }
        const double value = endsInNan && last ? std::numeric_limits<double>::quiet_NaN() : loss(step);
        run.record(base::TrainingStepEvent{ns(begin), ns(end), step, 100, value, 1e-4 * step, step == 2 ? 3.0 : 0.5});
        const auto mark = [&](base::TrainingMark kind, int at, double number) {
            run.record(base::TrainingMarkEvent{ns(end), ns(end + 0.005), at, kind, number});
        };
        if (codes > 0) {
            run.counter("codes_changed", end + 0.001, codes / (step - first + 1));
        }
        if (evalEvery > 0 && step % evalEvery == 0) {
            mark(base::TrainingMark::Evaluated, step, loss(step) + 0.1);
        }
        if (saveEvery > 0 && step % saveEvery == 0) {
            mark(base::TrainingMark::Saved, step, 0);
            if (keep > 0 && step > keep * saveEvery) {
                mark(base::TrainingMark::Dropped, step - keep * saveEvery, 0);
            }
        }
    }

    std::shared_ptr<const profiler::RunTimeline> timeline() const {
        RecordedRun run;
        record(run);
        return run.timeline();
    }

    sessions::RunInfo info(sessions::RunId id = 1, const std::string& options = {}) const {
        return runInfo(id, "finetune", "{}",
                       R"({"vitrine": 1, "workload": "finetune", "model": "m/tiny", "data": "rows.jsonl", "rank": 8,)"
                       R"( "output": "out")" +
                           (evalEvery > 0 ? ", \"eval_every\": " + std::to_string(evalEvery) : std::string()) +
                           options + "}");
    }
};

} // namespace vitrine::test
