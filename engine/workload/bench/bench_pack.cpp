// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// bench pack: the update of quantization-aware training, masters to packed weights, beside the bytes that it moves.

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <string_view>
#include <vector>

#include "engine/quant/conversion_target.h"
#include "engine/quant/format_options.h"
#include "engine/training/quantized/packed_targets.h"
#include "engine/workload/bench/bench.h"
#include "engine/workload/experiment/results.h"
#include "kernels/ops/linear/pack_weight.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::PackWeight;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

constexpr std::int64_t kMostWeights = 20'000'000'000;
constexpr std::int64_t kHostWeights = 8'000'000;
constexpr std::int64_t kBytesOfWeight = 5; ///< of what a row has in memory: BF16 twice, and the codes
constexpr std::int64_t kGroup = 32, kRank = 16;
constexpr int kWarmUps = 1, kTimes = 5;

/// What a row packs.
struct PackCase {
    const char* name;
    bool values = false;  ///< writes what the codes stand for too
    bool adapter = false; ///< merges an adapter
    double share = 1;     ///< of the weights that fit
};

/// Weights of one format in one arena.
class PackedModel {
public:
    PackedModel(const Run& run, kernels::Context& context, const WeightPacking& packing, const PackCase& what,
                std::int64_t weights)
        : context_(context) {
        const bool host = context.can().runsOnHost;
        const Shape shape = host ? Shape{2, 512, 1024} : Shape{8, 4096, 2048};
        const auto count = std::max<std::int64_t>(weights / shape.count(), 1);
        PackedTarget target{"bench", std::nullopt, std::nullopt, packing, packing.rule, DType::BF16};
        const TensorView dense{nullptr, DType::BF16, shape, {}};
        Parameter parameter;
        parameter.view = kernels::denseWeight(dense);
        PackWeight one;
        one.x = parameter.view;
        one.out = packedLayout(target, parameter, ModelConfig());
        one.type = DType::BF16;
        one.rule = packing.rule;
        if (what.values) {
            one.values = dense;
        }
        if (what.adapter) {
            one.adapter.a = {nullptr, DType::BF16, Shape{shape[0], kRank, shape[2]}, {}};
            one.adapter.b = {nullptr, DType::BF16, Shape{shape[0], shape[1], kRank}, {}};
        }
        weights_.assign(static_cast<std::size_t>(count), one);
        allocate(run.seed());
    }

    std::int64_t count() const {
        return static_cast<std::int64_t>(weights_.size()) * weights_.front().out.shape.count();
    }
    kernels::PackWeights op() const { return {weights_, changed_.view()}; }

private:
    static std::vector<TensorView*> tensorsOf(PackWeight& weight) {
        return {&weight.x.data,    &weight.out.data,  &weight.out.scales,
                &weight.adapter.a, &weight.adapter.b, &weight.values};
    }

    void allocate(std::uint64_t seed) {
        std::uint64_t bytes = kernels::alignedBytes(sizeof(std::int64_t));
        for (const TensorView* view : tensorsOf(weights_.front())) {
            bytes += weights_.size() * kernels::alignedBytes(view->bytes());
        }
        arena_ = context_.memory().reserveArena(bytes, "bench.pack");
        std::uint32_t stream = 0;
        for (PackWeight& weight : weights_) {
            for (TensorView* view : tensorsOf(weight)) {
                if (view->shape.rank() == 0) {
                    continue;
                }
                tensors_.emplace_back(*arena_, base::MemoryCategory::Workspace, "bench", view->dtype, view->shape);
                *view = tensors_.back().view();
                fillRandom(context_, *view, seed, stream++);
            }
            weight.x = kernels::denseWeight(weight.x.data);
        }
        changed_ = Tensor(*arena_, base::MemoryCategory::Other, "codes_changed", DType::I64, Shape{1});
        fillRandom(context_, {changed_.view().data, DType::U8, Shape{sizeof(std::int64_t)}, {}}, seed, stream);
    }

    kernels::Context& context_;
    std::unique_ptr<kernels::Arena> arena_;
    std::vector<Tensor> tensors_;
    std::vector<PackWeight> weights_;
    Tensor changed_;
};

nlohmann::json measure(const Run& run, kernels::Context& context, const Quantization& target, const PackCase& what,
                       std::int64_t weights, double ceiling) {
    const PackedModel model(run, context, target.packing, what,
                            static_cast<std::int64_t>(static_cast<double>(weights) * what.share));
    std::vector<double> times = secondsOfRuns(context, kWarmUps + kTimes, [&](std::int64_t) {
        context.throwIfStopped();
        context.run(model.op());
    });
    times.erase(times.begin(), times.begin() + kWarmUps);
    const double seconds = median(std::move(times));
    const double bytes = static_cast<double>(kernels::cost(model.op(), context.traits()).bytes());
    nlohmann::json row = benchRow(conversionTitle(target) + what.name, bytes / seconds * 1e-9, "GB/s", ceiling * 1e-9);
    row["weights"] = model.count();
    row["ms"] = seconds * 1e3;
    return row;
}

} // namespace

void benchPack(const Run& run) {
    const RunDevices context = makeContext(run);
    addContextMetrics(run, *context);
    run.metrics.erase(result::kModel.key);
    const Ceiling copy = measureCopy(*context, run.seed());
    const auto fits = static_cast<std::int64_t>(context->memory().general().largestFree() / kBytesOfWeight / 10 * 9);
    const std::int64_t weights = std::min(context->can().runsOnHost ? kHostWeights : kMostWeights, fits);
    nlohmann::json rows = nlohmann::json::array({ceilingRow("copy", copy)});
    constexpr PackCase kCases[] = {{" of BF16"}, {", and values", true}, {", adapter of rank 16", false, true, 0.25}};
    for (const auto& part : std::views::split(kQatChoices, '|')) {
        const std::string name(part.begin(), part.end());
        if (name == "none") {
            continue;
        }
        const auto target = conversionTarget(name, hasGroups(name) ? std::optional(kGroup) : std::nullopt, std::nullopt,
                                             hasGroups(name) ? kQatInt4Rule : std::string_view());
        for (const PackCase& what : kCases) {
            rows.push_back(measure(run, *context, *target, what, weights, copy.rate));
            run.metrics[result::kRows.key] = rows; // a run that is stopped keeps what was measured
        }
    }
    addMemoryMetrics(run.metrics, *context);
}

} // namespace vitrine::engine
