// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A small run on a GPU for tests: a prefill of one step with two kernels, a decode of two steps of two layers.

#include <nlohmann/json.hpp>

#include "profiler/timeline/run_timeline_builder.h"
#include "tests/ui/models/session/recorded_run.h"

namespace vitrine::test {

/// 14 kernels: two of prefill, twelve of decode. `slower` stretches the kernels of ExpertMlp.
inline std::shared_ptr<const profiler::RunTimeline> makeKernelRun(double slower = 1) {
    RecordedRun run;
    const auto prefill = run.scope(base::ScopeKind::Phase, "prefill", 0, 1);
    const auto first = run.scope(base::ScopeKind::Step, "prefill", 0, 1, prefill, 0);
    const auto gemm = run.scope(base::ScopeKind::Op, "Matmul", 0.1, 0.2, first);
    run.span("Kernels", "nvjet_tst", 0.3, 0.6, 0, gemm);
    run.span("Kernels", "nvjet_tst", 0.6, 0.9, 0, gemm);
    const auto decode = run.scope(base::ScopeKind::Phase, "decode", 1, 3);
    for (int s = 0; s < 2; ++s) {
        const double at = 1 + s;
        const auto step = run.scope(base::ScopeKind::Step, "decode", at, at + 1, decode, s + 1);
        for (int l = 0; l < 2; ++l) {
            const double begin = at + 0.5 * l;
            const auto layer = run.scope(base::ScopeKind::Layer, "layer", begin, begin + 0.4, step, l);
            const auto qkv = run.scope(base::ScopeKind::Op, "QkvProject", begin, begin + 0.01, layer, -1, 850'000'000,
                                       1'700'000'000);
            const auto mlp = run.scope(base::ScopeKind::Op, "ExpertMlp", begin + 0.01, begin + 0.02, layer, -1,
                                       400'000'000, 800'000'000);
            run.span("Kernels", "qkv_project", begin + 0.1, begin + 0.101, 0, qkv);
            run.span("Kernels", "mxfp4_gate_up", begin + 0.1005, begin + 0.1005 + 0.01 * slower, 0, mlp);
            run.span("Kernels", "mxfp4_down", begin + 0.3, begin + 0.3 + 0.01 * slower, 0, mlp);
        }
        run.span("Copies", "device to host", at + 0.95, at + 0.951, 4, step);
        run.span("Sync", "wait for a stream", at + 0.94, at + 0.96, 0, step);
    }
    run.counter("gpu.dram_read_bytes_per_second", 0.5, 1e12);
    run.counter("gpu.dram_write_bytes_per_second", 0.5, 1e11);
    run.counter("gpu.sm_active", 0.5, 0.8);
    run.counter("gpu.tensor_active", 0.5, 0.1);
    const auto tensor = run.scope(base::ScopeKind::Op, "LmHead", 2.99, 3, decode);
    run.alloc(base::MemoryCategory::Logits, "logits", 1 << 20, 2.99, 3, tensor);
    return run.timeline();
}

/// The same kind of run on a processor: ops, no kernels.
inline std::shared_ptr<const profiler::RunTimeline> makeCpuRun() {
    RecordedRun run;
    const auto decode = run.scope(base::ScopeKind::Phase, "decode", 0, 1);
    const auto step = run.scope(base::ScopeKind::Step, "decode", 0, 1, decode, 1);
    const auto op = run.scope(base::ScopeKind::Op, "ExpertMlp", 0, 0.6, step);
    run.scope(base::ScopeKind::Op, "Matmul", 0.1, 0.3, op); // inside: counted once
    run.scope(base::ScopeKind::Op, "LmHead", 0.6, 1, step);
    run.alloc(base::MemoryCategory::Activations, "hidden", 1 << 20, 0, 1, op);
    return run.timeline();
}

inline sessions::RunInfo kernelRunInfo(sessions::RunId id, const std::string& expertGemm) {
    const auto row = [](const char* family, const std::string& variant, int registers, int calls) {
        return nlohmann::json{{"family", family},
                              {"variant", variant},
                              {"pack", "builtin"},
                              {"arch", "sm_90a"},
                              {"specialization", "dim=2880"},
                              {"reason", "highest priority that fits"},
                              {"origin", "cubin cache"},
                              {"calls", calls},
                              {"registers", registers},
                              {"spill_bytes", 0},
                              {"shared_bytes", 384},
                              {"cubin_bytes", 50'000}};
    };
    const nlohmann::json metrics = {
        {"dtype", "bfloat16"},
        {"kernels",
         nlohmann::json::array({row("qkv_project", "stream", 94, 8), row("mxfp4_gemv", "token", 84, 8),
                                row("expert_gemm", expertGemm, 168, 24), row("expert_gemm", expertGemm, 120, 24)})}};
    sessions::RunInfo run = runInfo(id, "generate", metrics.dump(),
                                    R"({"vitrine": 1, "workload": "generate", "model": "synthetic:gpt-oss-20b",
                                        "kernel": ["Route=builtin/block", "expert_gemm=builtin/hopper"]})");
    run.environmentJson = R"({"backend": "cuda", "device": {"id": "h200", "name": "NVIDIA H200",
                              "memory_bandwidth": 4.25e12}})";
    return run;
}

} // namespace vitrine::test
