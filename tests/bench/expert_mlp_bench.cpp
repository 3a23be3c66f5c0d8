// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The expert MLP of gpt-oss-20b on a GPU, from routing to the weighted sum: expert_mlp_bench. Argument: tokens. Random
// weights, every token's experts drawn uniformly; the rate counts the two products. BM_DenseProduct is the ceiling.

#include <algorithm>
#include <benchmark/benchmark.h>
#include <memory>
#include <random>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/cuda_options.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/memory/resource.h"
#include "kernels/ops/fused/blocks.h"
#include "kernels/ops/linear/weights.h"

namespace {

using namespace vitrine;
using namespace vitrine::kernels;

constexpr std::int64_t kHidden = 2880, kWidth = 2880, kExperts = 32, kChosen = 4;

/// Device tensors filled with random values.
class Device {
public:
    Device() : context_(CudaOptions{}), memory_(context_.makeResource(base::MemorySpace::Device)) {}

    CudaContext& context() { return context_; }
    TensorView take(DType dtype, const Shape& shape) {
        buffers_.emplace_back(*memory_, bytesOf(dtype, shape.count()), Tag{});
        return {buffers_.back().data(), dtype, shape, 0};
    }
    TensorView random(DType dtype, const Shape& shape, float center, float deviation) {
        const TensorView view = take(dtype, shape);
        execute(context_, FillRandom{view, 1, stream_++, center, deviation});
        return view;
    }
    LinearView experts(std::int64_t out, std::int64_t in) {
        LinearView linear;
        const TensorView blocks = random(DType::U8, Shape{kExperts, out, in / 32, 16}, 0, 1);
        linear.weight =
            packedWeight(WeightFormat::Mxfp4, blocks, random(DType::U8, Shape{kExperts, out, in / 32}, 121, 0));
        linear.bias = random(DType::BF16, Shape{kExperts, out}, 0, 1);
        return linear;
    }
    TensorView ids(std::int64_t tokens) {
        std::mt19937 engine(1);
        std::vector<std::int32_t> all(kExperts), chosen;
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(kExperts); ++i) {
            all[static_cast<std::size_t>(i)] = i;
        }
        for (std::int64_t token = 0; token < tokens; ++token) {
            std::shuffle(all.begin(), all.end(), engine);
            chosen.insert(chosen.end(), all.begin(), all.begin() + kChosen);
        }
        const TensorView view = take(DType::I32, Shape{tokens, kChosen});
        context_.copyToDevice(chosen.data(), view.data, view.bytes());
        return view;
    }
    /// Seconds of `body` on the device, without the host's share.
    template <class Body> double seconds(const Body& body) {
        const CudaEvent begin = context_.record();
        body();
        const CudaEvent end = context_.record();
        return end.secondsSince(begin);
    }

private:
    CudaContext context_;
    std::unique_ptr<MemoryResource> memory_;
    std::vector<Buffer> buffers_;
    std::uint32_t stream_ = 0;
};

/// Runs `measure` with a device, or says why there is none.
template <class Measure> void withDevice(benchmark::State& state, const Measure& measure) {
    try {
        Device device;
        measure(device);
    } catch (const base::Error& error) {
        state.SkipWithError(error.what());
    }
}

void BM_ExpertMlp(benchmark::State& state) {
    withDevice(state, [&](Device& device) {
        const std::int64_t tokens = state.range(0);
        ExpertMlp op;
        op.x = device.random(DType::BF16, Shape{tokens, kHidden}, 0, 1);
        op.ids = device.ids(tokens);
        op.weights = device.random(DType::F32, Shape{tokens, kChosen}, 0.25F, 0.05F);
        op.gateUp = device.experts(2 * kWidth, kHidden);
        op.down = device.experts(kHidden, kWidth);
        op.activation = Activation::ClampedSwiglu;
        op.layout = GateLayout::Interleaved;
        op.residual = device.random(DType::BF16, Shape{tokens, kHidden}, 0, 1);
        op.out = device.take(DType::BF16, Shape{tokens, kHidden});
        op.scratch = device.take(DType::U8, Shape{static_cast<std::int64_t>(scratch(op, device.context().traits()))});
        check(op);
        execute(device.context(), op);
        device.context().synchronize();
        for (auto step : state) {
            state.SetIterationTime(device.seconds([&] { execute(device.context(), op); }));
        }
        const double flops = 2.0 * static_cast<double>(tokens * kChosen) * kHidden * 3 * kWidth;
        state.counters["flop"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
    });
}
BENCHMARK(BM_ExpertMlp)->Arg(512)->Arg(2048)->Arg(8192)->UseManualTime()->Unit(benchmark::kMicrosecond);

void BM_DenseProduct(benchmark::State& state) {
    withDevice(state, [&](Device& device) {
        const std::int64_t size = state.range(0);
        const TensorView x = device.random(DType::BF16, Shape{size, size}, 0, 1);
        const TensorView weight = device.random(DType::BF16, Shape{size, size}, 0, 1);
        const TensorView out = device.take(DType::BF16, Shape{size, size});
        CudaContext::DenseProduct product;
        product.x = x.data;
        product.weight = weight.data;
        product.out = out.data;
        product.m = product.n = product.k = size;
        product.xStride = product.weightStride = product.outStride = size;
        device.context().multiply(product);
        device.context().synchronize();
        for (auto step : state) {
            state.SetIterationTime(device.seconds([&] { device.context().multiply(product); }));
        }
        const double flops = 2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
        state.counters["flop"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
    });
}
BENCHMARK(BM_DenseProduct)->Arg(8192)->UseManualTime()->Unit(benchmark::kMicrosecond);

} // namespace
