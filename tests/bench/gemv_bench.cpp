// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Products of one or few rows, as decoding makes them: bytes of weights per second and SIMD level, and the share of
// what the memory can read. Weights are larger than the caches.

#include <benchmark/benchmark.h>
#include <memory>
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

/// Weights (4096, 4096) of one format, enough of them in turn that none stays in a cache.
class SquareWeights {
public:
    static constexpr std::int64_t kSide = 4096;

    /// `element` has the bits of a weight. Packed ones have a scale of `scaleType` for a block of `rowGroup` by
    /// `group`.
    SquareWeights(CpuContext& context, WeightFormat format, DType element, DType scaleType, std::int64_t rowGroup,
                  std::int64_t group, bool zeros) {
        constexpr std::uint64_t kTotal = std::uint64_t{96} << 20;
        for (std::uint64_t bytes = 0; bytes < kTotal; bytes += views_.back().bytes()) {
            const bool dense = format == WeightFormat::Dense;
            const std::int64_t rowBytes = static_cast<std::int64_t>(bytesOf(element, kSide));
            WeightView view;
            view.format = format;
            view.data = tensor(context, dense ? element : DType::U8, Shape{kSide, dense ? kSide : rowBytes}, 1);
            if (!dense) {
                const Shape groups{kSide / rowGroup, kSide / group};
                view.scales = tensor(context, scaleType, groups, 0.01F);
                view.zeros = zeros ? tensor(context, DType::U8, groups, 0) : TensorView{};
                view.group = group;
                view.rowGroup = rowGroup;
            }
            view.shape = Shape{kSide, kSide};
            views_.push_back(view);
        }
    }

    const WeightView& next() {
        at_ = (at_ + 1) % views_.size();
        return views_[at_];
    }

private:
    /// Bytes with no deviation are 7 everywhere.
    TensorView tensor(CpuContext& context, DType type, const Shape& shape, float deviation) {
        memory_.push_back(std::make_unique<Bytes>(type, shape));
        fill(context, memory_.back()->view, type == DType::U8 && deviation == 0 ? 7.0F : 0.0F, deviation);
        return memory_.back()->view;
    }

    std::vector<std::unique_ptr<Bytes>> memory_;
    std::vector<WeightView> views_;
    std::size_t at_ = 0;
};

void matmulSquare(benchmark::State& state, WeightFormat format, DType element, DType scaleType, std::int64_t rowGroup,
                  std::int64_t group, bool zeros) {
    CpuContext context;
    if (!lowerTo(context, state.range(0))) {
        state.SkipWithError("this machine lacks the instructions");
        return;
    }
    const std::int64_t rows = state.range(1);
    SquareWeights weights(context, format, element, scaleType, rowGroup, group, zeros);
    Bytes x(DType::BF16, Shape{rows, SquareWeights::kSide});
    Bytes out(DType::BF16, Shape{rows, SquareWeights::kSide});
    fill(context, x.view, 0, 1);
    Matmul op;
    op.x = x.view;
    op.weight = weights.next();
    op.out = out.view;
    Bytes memory(DType::U8, Shape{static_cast<std::int64_t>(scratch(op, DeviceTraits{}))});
    op.scratch = memory.view;
    for (auto _ : state) {
        op.weight = weights.next();
        execute(context, op);
    }
    report(state, context, op.weight.bytes());
}
constexpr std::int64_t kSide = SquareWeights::kSide;
void squareRows(benchmark::internal::Benchmark* run) {
    run->ArgNames({"simd", "rows"})->ArgsProduct({{0, 1, 2}, {1, 8, 64}})->UseRealTime();
}
BENCHMARK_CAPTURE(matmulSquare, bf16, WeightFormat::Dense, DType::BF16, DType::None, 1, kSide, false)
    ->Apply(squareRows);
BENCHMARK_CAPTURE(matmulSquare, int4_32, WeightFormat::Int4, DType::Nf4, DType::BF16, 1, 32, false)->Apply(squareRows);
BENCHMARK_CAPTURE(matmulSquare, int4_128_zeros, WeightFormat::Int4, DType::Nf4, DType::F16, 1, 128, true)
    ->Apply(squareRows);
BENCHMARK_CAPTURE(matmulSquare, int8_row, WeightFormat::Int8, DType::U8, DType::BF16, 1, kSide, false)
    ->Apply(squareRows);
BENCHMARK_CAPTURE(matmulSquare, fp8_128, WeightFormat::Fp8, DType::U8, DType::F32, 128, 128, false)->Apply(squareRows);

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
