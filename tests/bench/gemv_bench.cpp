// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Products of one or few rows, as decoding makes them: bytes of weights per second and SIMD level, and the share of
// what the memory can read. Weights are larger than the caches.

#include <benchmark/benchmark.h>
#include <vector>

#include "kernels/context/cpu_context.h"
#include "kernels/cpu/read_bandwidth.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/ops/experts/moe.h"
#include "kernels/ops/linear/matmul.h"
#include "kernels/ops/linear/weights.h"

namespace {

using namespace vitrine::kernels;

struct Bytes {
    Bytes(DType type, const Shape& dims) : memory(bytesOf(type, dims.count()) / 64 + 2) {
        const auto address = (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64;
        view = TensorView{reinterpret_cast<void*>(address), type, dims, 0};
    }
    struct alignas(64) Line {
        unsigned char bytes[64];
    };
    std::vector<Line> memory;
    TensorView view;
};

double ceilingOf(CpuContext& context) {
    static const double kBandwidth = measureReadBandwidth(context);
    return kBandwidth;
}

void report(benchmark::State& state, CpuContext& context, std::uint64_t bytes) {
    const double total = static_cast<double>(bytes) * static_cast<double>(state.iterations());
    state.counters["GB/s"] = benchmark::Counter(total * 1e-9, benchmark::Counter::kIsRate);
    state.counters["of_ceiling"] = benchmark::Counter(total / ceilingOf(context), benchmark::Counter::kIsRate);
}

bool lowerTo(CpuContext& context, std::int64_t level) {
    if (static_cast<std::int64_t>(context.simd()) < level) {
        return false;
    }
    ceilingOf(context);
    context.setSimd(static_cast<SimdLevel>(level));
    return true;
}

void fill(CpuContext& context, const TensorView& out, float center, float deviation) {
    execute(context, FillRandom{out, 1, 0, center, deviation});
}

/// gpt-oss-20b's gate_up stack, four experts for each token.
void expertMatmulMxfp4(benchmark::State& state) {
    CpuContext context;
    if (!lowerTo(context, state.range(0))) {
        state.SkipWithError("this machine lacks the instructions");
        return;
    }
    constexpr std::int64_t kExperts = 32, kOut = 5760, kIn = 2880, kChosen = 4;
    const std::int64_t tokens = state.range(1);
    Bytes blocks(DType::U8, Shape{kExperts, kOut, kIn / 32, 16});
    Bytes scales(DType::U8, Shape{kExperts, kOut, kIn / 32});
    fill(context, blocks.view, 0, 1);
    fill(context, scales.view, 120, 0);
    Bytes x(DType::F32, Shape{tokens, kIn});
    fill(context, x.view, 0, 1);
    Bytes out(DType::F32, Shape{tokens * kChosen, kOut});
    Bytes ids(DType::I32, Shape{tokens, kChosen});
    ExpertMatmul op{x.view, true, ids.view, {}, {}, out.view, {}};
    op.weight = packedWeight(WeightFormat::Mxfp4, blocks.view, scales.view);
    Bytes memory(DType::U8, Shape{static_cast<std::int64_t>(scratch(op, DeviceTraits{}))});
    op.scratch = memory.view;
    std::int32_t next = 0;
    for (auto _ : state) {
        // Other experts each time, so that no weight stays in a cache.
        for (std::int64_t i = 0; i < tokens * kChosen; ++i) {
            ids.view.as<std::int32_t>()[i] = next;
            next = (next + 1) % kExperts;
        }
        execute(context, op);
    }
    report(state, context, cost(op, DeviceTraits{}).bytesRead);
}
BENCHMARK(expertMatmulMxfp4)->ArgNames({"simd", "tokens"})->ArgsProduct({{0, 1, 2}, {1}})->UseRealTime();
BENCHMARK(expertMatmulMxfp4)->ArgNames({"simd", "tokens"})->ArgsProduct({{2}, {8, 64, 512}})->UseRealTime();

void matmulDense(benchmark::State& state, DType type) {
    CpuContext context;
    if (!lowerTo(context, state.range(0))) {
        state.SkipWithError("this machine lacks the instructions");
        return;
    }
    constexpr std::int64_t kOut = 40960, kIn = 2880;
    const std::int64_t rows = state.range(1);
    Bytes weight(type, Shape{kOut, kIn});
    Bytes x(DType::F32, Shape{rows, kIn});
    Bytes out(DType::F32, Shape{rows, kOut});
    fill(context, weight.view, 0, 1);
    fill(context, x.view, 0, 1);
    Matmul op;
    op.x = x.view;
    op.weight = denseWeight(weight.view);
    op.out = out.view;
    Bytes memory(DType::U8, Shape{static_cast<std::int64_t>(scratch(op, DeviceTraits{}))});
    op.scratch = memory.view;
    for (auto _ : state) {
        execute(context, op);
    }
    report(state, context, weight.view.bytes());
    const double flops = static_cast<double>(cost(op, DeviceTraits{}).flops) * static_cast<double>(state.iterations());
    state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(matmulDense, bf16, DType::BF16)
    ->ArgNames({"simd", "rows"})
    ->ArgsProduct({{0, 1, 2}, {1, 8}})
    ->UseRealTime();
BENCHMARK_CAPTURE(matmulDense, bf16, DType::BF16)
    ->ArgNames({"simd", "rows"})
    ->ArgsProduct({{1, 2}, {32, 64, 512}})
    ->UseRealTime();
BENCHMARK_CAPTURE(matmulDense, f32, DType::F32)
    ->ArgNames({"simd", "rows"})
    ->ArgsProduct({{2}, {1, 512}})
    ->UseRealTime();

/// gpt-oss BF16 experts are stored (in, out).
void expertMatmulTransposed(benchmark::State& state) {
    CpuContext context;
    if (!lowerTo(context, state.range(0))) {
        state.SkipWithError("this machine lacks the instructions");
        return;
    }
    constexpr std::int64_t kExperts = 8, kOut = 5760, kIn = 2880, kChosen = 4;
    Bytes weight(DType::BF16, Shape{kExperts, kIn, kOut});
    Bytes x(DType::F32, Shape{1, kIn});
    Bytes out(DType::F32, Shape{kChosen, kOut});
    Bytes ids(DType::I32, Shape{1, kChosen});
    fill(context, weight.view, 0, 1);
    fill(context, x.view, 0, 1);
    ExpertMatmul op{x.view, true, ids.view, {}, {}, out.view, {}};
    op.weight = denseWeight(weight.view, true);
    Bytes memory(DType::U8, Shape{static_cast<std::int64_t>(scratch(op, DeviceTraits{}))});
    op.scratch = memory.view;
    std::int32_t next = 0;
    for (auto _ : state) {
        for (std::int64_t i = 0; i < kChosen; ++i) {
            ids.view.as<std::int32_t>()[i] = next;
            next = (next + 1) % kExperts;
        }
        execute(context, op);
    }
    report(state, context, cost(op, DeviceTraits{}).bytesRead);
}
BENCHMARK(expertMatmulTransposed)->ArgName("simd")->DenseRange(0, 2)->UseRealTime();

void fillRandom(benchmark::State& state, DType type) {
    CpuContext context;
    Bytes out(type, Shape{1 << 27});
    for (auto _ : state) {
        fill(context, out.view, 0, 1);
    }
    const double total = static_cast<double>(out.view.bytes()) * static_cast<double>(state.iterations());
    state.counters["GB/s"] = benchmark::Counter(total * 1e-9, benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(fillRandom, bf16, DType::BF16)->UseRealTime();
BENCHMARK_CAPTURE(fillRandom, u8, DType::U8)->UseRealTime();
BENCHMARK_CAPTURE(fillRandom, f32, DType::F32)->UseRealTime();

void readBandwidth(benchmark::State& state) {
    CpuContext context;
    double best = 0;
    for (auto _ : state) {
        best = std::max(best, measureReadBandwidth(context));
    }
    state.counters["GB/s"] = best * 1e-9;
}
BENCHMARK(readBandwidth)->Iterations(1);

} // namespace
