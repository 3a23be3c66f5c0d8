// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The MLPs of experts on a GPU, from sorting to the weighted sum: expert_mlp_bench. Rows are shapes of models, formats
// of weights and numbers of tokens. Weights are random, and so are choices. Counters: `flop`, the rate of the products;
// `floor`, how many seconds the bytes of the chosen experts take at 3.35 TB/s (an H100's memory); `share`, that time
// over ours. Launches lie in a graph, each with choices of its own, so that neither the host nor the second-level cache
// helps. BM_DenseProduct is the ceiling of many tokens.

#include <algorithm>
#include <array>
#include <benchmark/benchmark.h>
#include <memory>
#include <random>
#include <set>
#include <string>
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

struct ExpertShape {
    const char* name;
    std::int64_t hidden, width, experts, chosen;
    Activation activation = Activation::Silu;
    GateLayout layout = GateLayout::Halves;
    bool biased = false;
};

constexpr std::array<ExpertShape, 3> kShapes{{
    {"gpt-oss-20b", 2880, 2880, 32, 4, Activation::ClampedSwiglu, GateLayout::Interleaved, true},
    {"qwen3-30b-a3b", 2048, 768, 128, 8},
    {"deepseek-v3/4", 7168, 512, 256, 8}, // what each of four devices has
}};

struct ExpertFormat {
    const char* name;
    WeightFormat format;
    std::int64_t group = 0; ///< of INT4; blocks of FP8 have as many rows
};

constexpr std::array<ExpertFormat, 5> kFormats{{
    {"MXFP4", WeightFormat::Mxfp4},
    {"INT4 g128", WeightFormat::Int4, 128},
    {"INT4 g32", WeightFormat::Int4, 32},
    {"FP8", WeightFormat::Fp8, 128},
    {"BF16", WeightFormat::Dense},
}};

constexpr int kLaunches = 8; ///< of a graph
constexpr double kMemoryRate = 3.35e12;

std::int64_t blocksOf(std::int64_t axis, const ExpertFormat& form) {
    return (axis + form.group - 1) / form.group;
}

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
    LinearView experts(const ExpertShape& shape, const ExpertFormat& form, std::int64_t out, std::int64_t in) {
        const std::int64_t experts = shape.experts;
        LinearView linear;
        switch (form.format) {
        case WeightFormat::Mxfp4:
            linear.weight = packedWeight(form.format, random(DType::U8, Shape{experts, out, in / 32, 16}, 0, 1),
                                         random(DType::U8, Shape{experts, out, in / 32}, 121, 0));
            break;
        case WeightFormat::Int4:
            linear.weight.format = form.format;
            linear.weight.data = random(DType::U8, Shape{experts, out, in / 2}, 0, 1);
            linear.weight.scales =
                random(DType::BF16, Shape{experts, out, (in + form.group - 1) / form.group}, 0.01F, 0.001F);
            linear.weight.group = form.group;
            linear.weight.shape = Shape{experts, out, in};
            break;
        case WeightFormat::Fp8:
            linear.weight.format = form.format;
            linear.weight.data = random(DType::U8, Shape{experts, out, in}, 8, 1); // no NaN without this bit
            linear.weight.scales =
                random(DType::F32, Shape{experts, blocksOf(out, form), blocksOf(in, form)}, 0.01F, 0.001F);
            linear.weight.group = linear.weight.rowGroup = form.group;
            linear.weight.shape = Shape{experts, out, in};
            break;
        default:
            linear.weight = denseWeight(random(DType::BF16, Shape{experts, out, in}, 0, 0.02F));
        }
        if (shape.biased) {
            linear.bias = random(DType::BF16, Shape{experts, out}, 0, 1);
        }
        return linear;
    }
    TensorView ids(const std::vector<std::int32_t>& chosen, std::int64_t tokens) {
        const TensorView view = take(DType::I32, Shape{tokens, static_cast<std::int64_t>(chosen.size()) / tokens});
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

/// Choices of launches one after the other. Each token's experts are drawn uniformly; those of a launch's first token
/// are not those of the launches before, as long as there are others.
class Choices {
public:
    explicit Choices(const ExpertShape& shape) : shape_(shape) {}

    std::vector<std::int32_t> next(std::int64_t tokens) {
        std::vector<std::int32_t> all = fresh(), chosen;
        for (std::int64_t token = 0; token < tokens; ++token) {
            if (token == 0 && static_cast<std::int64_t>(deck_.size()) < shape_.chosen) {
                deck_ = all;
            }
            std::vector<std::int32_t>& from = token == 0 ? deck_ : all;
            if (token > 0) {
                std::shuffle(all.begin(), all.end(), engine_);
            }
            chosen.insert(chosen.end(), from.end() - shape_.chosen, from.end());
            if (token == 0) {
                deck_.resize(deck_.size() - static_cast<std::size_t>(shape_.chosen));
            }
        }
        return chosen;
    }

private:
    std::vector<std::int32_t> fresh() {
        std::vector<std::int32_t> all;
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(shape_.experts); ++i) {
            all.push_back(i);
        }
        std::shuffle(all.begin(), all.end(), engine_);
        return all;
    }

    const ExpertShape& shape_;
    std::mt19937 engine_{1};
    std::vector<std::int32_t> deck_;
};

ExpertMlp makeOp(Device& device, const ExpertShape& shape, const ExpertFormat& form, std::int64_t tokens) {
    ExpertMlp op;
    op.x = device.random(DType::BF16, Shape{tokens, shape.hidden}, 0, 1);
    op.ids = TensorView{nullptr, DType::I32, Shape{tokens, shape.chosen}, 0};
    op.weights = device.random(DType::F32, Shape{tokens, shape.chosen}, 0.25F, 0.05F);
    op.gateUp = device.experts(shape, form, 2 * shape.width, shape.hidden);
    op.down = device.experts(shape, form, shape.hidden, shape.width);
    op.activation = shape.activation;
    op.layout = shape.layout;
    op.residual = device.random(DType::BF16, Shape{tokens, shape.hidden}, 0, 1);
    op.out = device.take(DType::BF16, Shape{tokens, shape.hidden});
    op.scratch = device.take(DType::U8, Shape{static_cast<std::int64_t>(scratch(op, device.context().traits()))});
    return op;
}

void measureExpertMlp(benchmark::State& state, const ExpertShape& shape, const ExpertFormat& form) {
    withDevice(state, [&](Device& device) {
        const std::int64_t tokens = state.range(0);
        ExpertMlp op = makeOp(device, shape, form, tokens);
        Choices choices(shape);
        std::vector<TensorView> ids;
        double hit = 0; // experts of a launch
        for (int i = 0; i < kLaunches; ++i) {
            const std::vector<std::int32_t> chosen = choices.next(tokens);
            hit += static_cast<double>(std::set<std::int32_t>(chosen.begin(), chosen.end()).size()) / kLaunches;
            ids.push_back(device.ids(chosen, tokens));
        }
        op.ids = ids[0];
        check(op);
        execute(device.context(), op); // compiles
        device.context().synchronize();
        device.context().beginCapture();
        for (const TensorView& some : ids) {
            op.ids = some;
            execute(device.context(), op);
        }
        const CudaGraph graph = device.context().endCapture();
        device.context().replay(graph);
        device.context().synchronize();
        double seconds = 0;
        for (auto step : state) {
            const double once = device.seconds([&] { device.context().replay(graph); }) / kLaunches;
            state.SetIterationTime(once);
            seconds += once;
        }
        const auto bytes = static_cast<double>(op.gateUp.weight.bytes() + op.down.weight.bytes());
        const double floor = bytes / static_cast<double>(shape.experts) * hit / kMemoryRate;
        state.counters["floor"] = floor;
        state.counters["share"] = floor * static_cast<double>(state.iterations()) / seconds;
        const double flops =
            2.0 * static_cast<double>(tokens * shape.chosen) * static_cast<double>(shape.hidden * 3 * shape.width);
        state.counters["flop"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
    });
}

[[maybe_unused]] const bool kRegistered = [] {
    for (const ExpertShape& shape : kShapes) {
        for (const ExpertFormat& form : kFormats) {
            const std::string name = std::string("BM_ExpertMlp/") + shape.name + "/" + form.name;
            auto* row = benchmark::RegisterBenchmark(
                name.c_str(), [&shape, &form](benchmark::State& state) { measureExpertMlp(state, shape, form); });
            for (const std::int64_t tokens : {1, 4, 16, 64, 256, 1024, 4096, 8192}) {
                row->Arg(tokens);
            }
            row->UseManualTime()->Unit(benchmark::kMicrosecond);
        }
    }
    return true;
}();

void measureDenseProduct(benchmark::State& state) {
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
BENCHMARK(measureDenseProduct)->Name("BM_DenseProduct")->Arg(8192)->UseManualTime()->Unit(benchmark::kMicrosecond);

} // namespace
