// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs made by scripts, with the RunInfo that goes with them.

#include <numeric>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "profiler/timeline/scope_facet.h"
#include "profiler/timeline/timeline_rows.h"
#include "sessions/session_file.h"
#include "tests/profiler/timeline/timeline_script.h"

namespace vitrine::test {

namespace detail {

struct Trainer {
    TimelineScript& t;
    static constexpr int kLayers = 24;
    static constexpr double kHidden = 2880, kVocabulary = 201088;
    using C = base::MemoryCategory;

    void forward(double tokens, double t0, double fw, double tb, double bw, bool oom, std::uint64_t phase) {
        for (int l = 0; l < kLayers; ++l) {
            const double a = t0 + fw * l / kLayers, d = fw / kLayers;
            const std::uint64_t layer = t.addScope(base::ScopeKind::Layer, "layer", a, a + d, phase, l);
            const std::uint64_t op = t.addScope(base::ScopeKind::Op, "ExpertMlp", a + d * 0.5, a + d, layer);
            const std::string p = "layers." + std::to_string(l) + ".";
            t.alloc(C::Activations, p + "input", tokens * kHidden * 2, a, oom ? -1 : tb + bw * (kLayers - l) / kLayers,
                    layer, {1, static_cast<std::int64_t>(tokens), 2880});
            t.alloc(C::Activations, p + "qkv", tokens * 5120 * 2, a + d * .05, a + d * .38, layer);
            t.alloc(C::Activations, p + "attention", tokens * 4096 * 2, a + d * .2, a + d * .45, layer);
            t.alloc(C::Activations, p + "gate_up", tokens * 4 * 5760 * 2, a + d * .5, a + d * .86, op);
            t.alloc(C::Activations, p + "swiglu", tokens * 4 * 2880 * 2, a + d * .68, a + d * .97, op);
            t.alloc(C::Workspace, p + "router_sort", tokens * 96, a + d * .46, a + d * .98, layer);
        }
    }

    void backward(double tokens, double tb, double bw, std::uint64_t phase) {
        for (int i = 0; i < kLayers; ++i) {
            const int l = kLayers - 1 - i;
            const double a = tb + bw * i / kLayers, d = bw / kLayers;
            const std::uint64_t layer = t.addScope(base::ScopeKind::Layer, "layer", a, a + d, phase, l);
            const std::string p = "layers." + std::to_string(l) + ".";
            t.alloc(C::Activations, p + "qkv", tokens * 5120 * 2, a + d * .02, a + d * .98, layer);
            t.alloc(C::Activations, p + "gate_up", tokens * 4 * 5760 * 2, a + d * .18, a + d * .66, layer);
            t.alloc(C::Activations, p + "swiglu", tokens * 4 * 2880 * 2, a + d * .26, a + d * .55, layer);
            t.alloc(C::Gradients, p + "grad_swiglu", tokens * 4 * 2880 * 2, a + d * .36, a + d * .6, layer);
            t.alloc(C::Gradients, p + "grad_gate_up", tokens * 4 * 5760 * 2, a + d * .42, a + d * .7, layer);
            t.alloc(C::Gradients, p + "grad_qkv", tokens * 5120 * 2, a + d * .72, a + d * .97, layer);
            t.alloc(C::Gradients, p + "grad_input", tokens * kHidden * 2, a + d * .64, a + d * 1.2, layer);
        }
    }

    void step(int k, double tokens, double t0, double duration, bool oom, double end) {
        const double fw = duration * .29, ls = duration * .10, bw = duration * .56, op = duration * .05;
        const double tb = t0 + fw + ls, a = t0 + fw;
        const std::uint64_t step = t.addScope(base::ScopeKind::Step, "step", t0, oom ? end : t0 + duration, 0, k,
                                              static_cast<std::int64_t>(tokens));
        const std::uint64_t forwardScope = t.addScope(base::ScopeKind::Phase, "forward", t0, a, step);
        t.alloc(C::BlockMask, "document_mask", 412 * 1024, t0, oom ? -1 : t0 + duration, step);
        forward(tokens, t0, fw, tb, bw, oom, forwardScope);
        const std::uint64_t loss = t.addScope(base::ScopeKind::Phase, "loss", a, oom ? end : a + ls, step);
        const std::uint64_t head = t.addScope(base::ScopeKind::Op, "LmHead", a, oom ? end : a + ls, loss);
        t.alloc(C::Activations, "final_norm", tokens * kHidden * 2, a, oom ? -1 : a + ls + bw * .01, head);
        const double made = oom ? a + (end - a) * .12 : a + ls * .12;
        t.alloc(C::Logits, "logits", tokens * kVocabulary * 2, made, oom ? -1 : a + ls * .97, head,
                {1, static_cast<std::int64_t>(tokens), 201088});
        if (oom) {
            return;
        }
        t.alloc(C::Logits, "grad_logits", tokens * kVocabulary * 2, a + ls * .42, a + ls * .97, head);
        backward(tokens, tb, bw, t.addScope(base::ScopeKind::Phase, "backward", tb, tb + bw, step));
        t.addScope(base::ScopeKind::Phase, "optimizer", tb + bw, tb + bw + op, step);
        t.alloc(C::Gradients, "lora_gradients", 30.4 * kMiB, tb, t0 + duration, step);
    }
};

} // namespace detail

inline std::shared_ptr<const profiler::RunTimeline> makeOutOfMemoryRun() {
    using C = base::MemoryCategory;
    TimelineScript t;
    const double end = 11.08;
    const std::uint64_t load = t.addScope(base::ScopeKind::Phase, "load", 0, 0.46);
    t.alloc(C::Untracked, "context", 0.81 * kGiB, 0, -1);
    for (int l = 0; l < 24; ++l) {
        const std::string p = "layers." + std::to_string(l) + ".";
        const double when = 0.02 + 0.44 * l / 24;
        t.alloc(C::Weights, p + "mlp.experts", 9.47 * kGiB / 24, when, -1, load, {32, 2880, 5760});
        t.alloc(C::Weights, p + "attention", 1.19 * kGiB / 24, when + 0.01, -1, load);
        t.alloc(C::Weights, p + "lora", 15.2 * kMiB / 24, 0.5, -1, load);
    }
    t.alloc(C::Weights, "embedding", 1.08 * kGiB, 0.03, -1, load, {201088, 2880});
    t.alloc(C::Weights, "lm_head", 1.08 * kGiB, 0.44, -1, load, {201088, 2880});
    t.alloc(C::Workspace, "cublaslt_workspace", 64 * kMiB, 0.05, -1, load);
    t.alloc(C::Workspace, "staging", 576 * kMiB, 0.05, -1, load);
    t.alloc(C::Optimizer, "adamw", 91.1 * kMiB, 0.52, -1, load);
    detail::Trainer trainer{t};
    trainer.step(1, 32768, .6, 2.05, false, end);
    trainer.step(2, 65536, 2.72, 5.2, false, end);
    trainer.step(3, 98304, 7.99, (10.78 - 7.99) / .29, true, end);
    t.addCounter("budget_bytes", 0, 80.0 * kGiB);
    t.finish(end);
    base::OutOfMemoryEvent oom;
    oom.time = seconds(end);
    oom.requested = static_cast<std::uint64_t>(98304) * 201088 * 2;
    oom.budget = 80 * kGiB;
    const auto before = t.timeline();
    const base::CategoryBytes held = before->memory().at(seconds(end));
    oom.reserved = std::accumulate(held.begin(), held.end(), std::uint64_t{0});
    oom.largestFree = oom.budget - oom.reserved;
    oom.category = C::Logits;
    oom.name.value = t.intern("grad_logits");
    for (const profiler::ScopeRow scope : before->scopes().all()) {
        if (before->text(scope.name) == "LmHead") {
            oom.scope.value = scope.id;
        }
    }
    t.add(oom);
    return t.timeline();
}

inline TimelineScript generateScript(int steps) {
    using C = base::MemoryCategory;
    TimelineScript t;
    const std::uint64_t load = t.addScope(base::ScopeKind::Phase, "load", 0, 0.4);
    for (int l = 0; l < 24; ++l) {
        t.alloc(C::Weights, "layers." + std::to_string(l) + ".mlp.experts", 430 * kMiB, 0.4 * l / 24, -1, load);
    }
    t.alloc(C::KvCache, "kv_pages", 48 * kMiB, 0.41, -1);
    double now = 0.42;
    for (int s = 0; s < steps; ++s) {
        const double length = s == 0 ? 0.2 : 0.004;
        const std::uint64_t phase =
            t.addScope(base::ScopeKind::Phase, s == 0 ? "prefill" : "decode", now, now + length);
        const std::uint64_t step =
            t.addScope(base::ScopeKind::Step, "step", now, now + length, phase, s, s == 0 ? 1024 : 1);
        t.alloc(C::Activations, "hidden", (s == 0 ? 900 : 9) * static_cast<double>(kMiB), now, now + length * 0.9,
                step);
        t.alloc(C::Logits, "logits", (s == 0 ? 80 : 1) * static_cast<double>(kMiB), now + length * 0.5,
                now + length * 0.95, step);
        now += length;
    }
    t.finish(now);
    return t;
}

inline std::shared_ptr<const profiler::RunTimeline> makeGenerateRun(int steps) {
    return generateScript(steps).timeline();
}

inline sessions::RunInfo runInfo(sessions::RunId id, const std::string& name, sessions::RunStatus status) {
    sessions::RunInfo run;
    run.id = id;
    run.name = name;
    run.workload = "generate";
    run.status = status;
    run.specJson =
        R"({"vitrine": 1, "workload": "generate", "model": "synthetic:gpt-oss-20b", "vram_budget": "80GiB"})";
    run.environmentJson = R"({"backend": "meta", "device": "H200", "vram_budget": 85899345920})";
    run.metricsJson = R"({"peak_bytes": 77942965985})";
    run.startedMs = 1'790'000'000'000;
    run.endedMs = 1'790'000'011'080;
    return run;
}

} // namespace vitrine::test
