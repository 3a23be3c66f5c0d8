// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/planned_rate.h"

#include <algorithm>

#include "base/error.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/convert/conversion_plan.h"
#include "kernels/context/context.h"
#include "kernels/context/context_options.h"

namespace vitrine::engine {
namespace {

/// The model as `convert` would write it, without files.
std::optional<ModelSource> convertedSource(const ModelSource& source, const PrecisionFormat& format,
                                           const std::vector<std::string>& ignored) {
    ModelSource converted = source;
    try {
        ConversionPlan plan = planConversion(source, {format.quantization, ignored, nullptr});
        converted.config = std::move(plan.config);
        converted.configText = std::move(plan.configText);
    } catch (const base::BadInput&) {
        return std::nullopt;
    } catch (const base::Unsupported&) {
        return std::nullopt;
    }
    converted.checkpoint = nullptr;
    return converted;
}

} // namespace

std::optional<PlannedRate> plannedRate(const ModelSource& source, const PrecisionFormat& format,
                                       const std::vector<std::string>& ignored, const kernels::DeviceTraits& traits,
                                       const ModelOptions& options, const KvCacheOptions& cache,
                                       const base::StopToken& stop) {
    const std::optional<ModelSource> converted = convertedSource(source, format, ignored);
    if (!converted) {
        return std::nullopt;
    }
    kernels::ContextOptions meta;
    meta.backend = kernels::Backend::Meta;
    meta.traits = traits;
    meta.memory.deviceBudget = std::uint64_t{1} << 50; // the rate counts, not whether it fits
    meta.stop = stop;
    kernels::Context context(meta);
    ModelOptions packed = options;
    packed.dequantize = false;
    Model model(context, *converted, packed, nullptr);
    KvCache tokens(context, model.config(), cache);
    const int sequence = tokens.addSequence();
    const std::int64_t limit = contextLimit(model.config());
    const std::int64_t before = limit > 0 ? std::min(kPlannedContext, limit - 1) : kPlannedContext;
    const std::int64_t chunk = prefillChunk(traits, 0);
    const std::vector<std::int32_t> ids(static_cast<std::size_t>(std::max<std::int64_t>(before, 1)), 0);
    const auto step = [&](std::string_view name, std::int64_t count, std::int64_t prompt) {
        StepBatch batch;
        batch.name = name;
        batch.sequences.push_back({sequence, std::span(ids).first(static_cast<std::size_t>(count)), true, prompt});
        model.step(batch, tokens);
    };
    const base::TimeNs start = context.clock().now();
    for (std::int64_t begin = 0; begin < before; begin += chunk) {
        step("prefill", std::min(chunk, before - begin), before);
    }
    const base::TimeNs read = context.clock().now();
    step("decode", 1, 0);
    const auto seconds = [](base::TimeNs from, base::TimeNs to) { return static_cast<double>(to - from) * 1e-9; };
    const double prefill = seconds(start, read), decode = seconds(read, context.clock().now());
    if (prefill <= 0 || decode <= 0) {
        return std::nullopt;
    }
    return PlannedRate{static_cast<double>(before) / prefill, 1 / decode};
}

} // namespace vitrine::engine
