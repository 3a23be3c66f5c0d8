// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A training step as the engine reports it: weights that stay, layers forward, the loss, layers backward, the
// optimizer.

#include "tests/profiler/analysis/scripted_run.h"

namespace vitrine::profiler::testing {

struct TrainingStepScript {
    int layers = 3;
    int chunks = 1;
    int passes = 1;
    int tiles = 1;
    bool recompute = true; ///< false: all activations are kept
    bool offload = false;
    bool optimizer = true;
    bool adapter = false; ///< a small optimizer and small gradients
    std::string last{};   ///< a scope after the optimizer: "merge", "quantize"
    base::TimeNs unit = 100;

    void record(ScriptedRun& run, std::int32_t step = 1) const {
        using Category = base::MemoryCategory;
        run.begin(base::ScopeKind::Step, "train", step, 4096);
        for (int pass = 0; pass < passes; ++pass) {
            std::vector<std::uint64_t> inputs;
            for (int layer = 0; layer < layers; ++layer) {
                run.begin(base::ScopeKind::Layer, "forward layer", layer);
                const std::uint64_t id = run.allocate("hidden", Category::Activations, 10 * kMiB);
                inputs.push_back(id);
                run.time += unit;
                if (offload) {
                    run.free(id);
                }
                run.end();
            }
            for (int chunk = 0; chunk < chunks; ++chunk) {
                run.begin(base::ScopeKind::Layer, "loss chunk", chunk);
                const std::uint64_t logits = run.allocate("logits", Category::Logits, 240 * kMiB / chunks);
                run.time += unit;
                run.free(logits);
                run.end();
            }
            for (int layer = layers - 1; layer >= 0; --layer) {
                backward(run, layer, inputs);
            }
        }
        if (optimizer) {
            run.begin(base::ScopeKind::Layer, "optimizer");
            run.time += unit / 2;
            run.end();
        }
        if (!last.empty()) {
            run.begin(base::ScopeKind::Layer, last);
            run.time += unit;
            run.end();
        }
        run.end();
    }

    std::shared_ptr<const RunTimeline> timeline() const {
        ScriptedRun run;
        run.allocate("w", base::MemoryCategory::Weights, (adapter ? 20 : 50) * kMiB);
        run.time = 1000;
        record(run);
        return run.timeline();
    }

private:
    void backward(ScriptedRun& run, int layer, std::vector<std::uint64_t>& inputs) const {
        using Category = base::MemoryCategory;
        std::uint64_t back = inputs[static_cast<std::size_t>(layer)];
        if (offload) {
            back = run.allocate("checkpoint", Category::Activations, 10 * kMiB);
        }
        if (recompute) {
            run.begin(base::ScopeKind::Layer, "recompute", layer);
            run.time += unit / 2;
            run.end();
        }
        run.begin(base::ScopeKind::Layer, "backward layer", layer);
        for (int tile = 0; tile < tiles; ++tile) {
            const std::uint64_t id = run.allocate("mlp.normed.gradient", Category::Gradients, 60 * kMiB / tiles);
            run.time += unit / tiles;
            run.free(id);
        }
        const std::uint64_t id = run.allocate("attention.gradient", Category::Gradients, 20 * kMiB);
        run.time += unit;
        run.free(id);
        run.free(back);
        run.end();
    }
};

/// A run of so many such steps, with what training reports of each. `memory`: it holds weights before the first one.
inline std::shared_ptr<const RunTimeline> trainingRun(
    const TrainingStepScript& script, int steps, bool memory = true, double (*loss)(int) = [](int) { return 1.25; }) {
    ScriptedRun run;
    if (memory) {
        run.allocate("w", base::MemoryCategory::Weights, 50 * kMiB);
    }
    for (int step = 1; step <= steps; ++step) {
        run.time += 1000;
        const base::TimeNs begin = run.time;
        script.record(run, step);
        run.record(base::TrainingStepEvent{begin, run.time, step, 4096, loss(step), 1e-4, 0.5});
    }
    return run.timeline();
}

} // namespace vitrine::profiler::testing
