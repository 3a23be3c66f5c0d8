// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/recording/run_rates.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <system_error>
#include <utility>

#include "app/runner/recording/stored_timeline.h"
#include "base/log.h"
#include "base/output_file.h"
#include "engine/quant/format_options.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/workload_table.h"
#include "kernels/core/backend.h"
#include "kernels/core/device_traits.h"
#include "kernels/cuda/cuda_context.h"
#include "profiler/analysis/op_calls.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

constexpr std::uint64_t kMostRows = 3'000'000; ///< of events: about a second to read

kernels::LaunchCost launchCostOf(const profiler::StepCost& cost) {
    return {cost.gap, cost.host, cost.step, cost.first, static_cast<double>(cost.steps), cost.layers};
}

/// Of the device that the run takes; nothing where no profile describes it, or other kernels than ours run.
std::optional<kernels::DeviceTraits> measuredDevice(const engine::Experiment& experiment) {
    const bool ownKernels = (!experiment.has("kernel_pack") || experiment.texts("kernel_pack").empty()) &&
                            (!experiment.has("kernel") || experiment.texts("kernel").empty());
    const kernels::Backend backend = engine::backendOf(experiment);
    if (experiment.isPlan() || !ownKernels || backend == kernels::Backend::Meta) {
        return std::nullopt;
    }
    if (backend == kernels::Backend::Cpu) {
        return kernels::cpuTraits(static_cast<int>(experiment.integer("threads")));
    }
    for (const kernels::CudaDeviceInfo& device : kernels::cudaDevices()) {
        if (device.ordinal == experiment.integer("device")) {
            const std::string profile = kernels::profileOfDevice(device.name);
            return profile.empty() ? std::nullopt : std::optional(kernels::loadDeviceProfile(profile));
        }
    }
    return std::nullopt;
}

/// Requests of one prompt stay copies of one as long as nothing is drawn; plans ask the same.
bool repeatsPrompt(const engine::Experiment& experiment) {
    return experiment.workload().name == "generate" && experiment.maybeInteger("batch").value_or(1) > 1 &&
           experiment.real("temperature") <= 0;
}

kernels::DType cacheType(const engine::Experiment& experiment) {
    const std::string name = experiment.has("kv_dtype") ? experiment.text("kv_dtype") : std::string();
    return name == "fp8" ? kernels::DType::F8E4M3 : name == "int8" ? kernels::DType::I8 : kernels::DType::BF16;
}

/// The format in which a run holds the weights whose names have `part` in them, as the files or the options say;
/// nothing where it loads both kinds and multiplies by either.
std::optional<kernels::WeightFormat> heldFormat(const engine::Experiment& experiment, const engine::ModelConfig& config,
                                                std::string_view part, bool experts) {
    const std::string weights = experiment.has("weights") ? experiment.text("weights") : std::string();
    const auto found = std::ranges::find_if(config.packings, [&](const auto& weight) {
        const bool ofExperts = weight.first.find(".experts.") != std::string::npos;
        return ofExperts == experts && weight.first.find(part) != std::string::npos;
    });
    if (found == config.packings.end()) {
        // At load only the linears of a dense model are packed.
        return experts ? kernels::WeightFormat::Dense : engine::formatNamed(weights);
    }
    return weights == "both"          ? std::nullopt
           : weights == "dequantized" ? std::optional(kernels::WeightFormat::Dense)
                                      : found->second.format;
}

kernels::RateClass weightsOf(const engine::Experiment& experiment, const engine::ModelConfig& config,
                             std::string_view part) {
    const auto format = heldFormat(experiment, config, part, false);
    return format ? kernels::weightRateClass(*format) : kernels::RateClass::Any;
}

kernels::RateClass expertsOf(const engine::Experiment& experiment, const engine::ModelConfig& config) {
    const auto format = heldFormat(experiment, config, ".experts.", true);
    return format ? kernels::expertRateClass(*format, repeatsPrompt(experiment)) : kernels::RateClass::Any;
}

} // namespace

kernels::RunRateClasses rateClassesOf(const engine::Experiment& experiment) {
    constexpr std::int64_t kHeadDimWithoutModel = 128; // such runs have heads of their own sizes; they count as wide
    if (!experiment.has("model")) {
        return {kernels::attentionRateClass(kHeadDimWithoutModel, cacheType(experiment))};
    }
    json metrics;
    const engine::WorkloadSinks sinks;
    const engine::ModelConfig config = engine::openSource(engine::Run{experiment, sinks, {}, metrics}).config;
    return {kernels::attentionRateClass(config.headDim, cacheType(experiment)), expertsOf(experiment, config),
            weightsOf(experiment, config, ".self_attn."), weightsOf(experiment, config, ".mlp.")};
}

kernels::OpRates ratesOf(const profiler::RunTimeline& timeline, const kernels::RunRateClasses& classes) {
    const profiler::MeasuredOps measured = profiler::measuredOps(timeline);
    kernels::OpRates rates;
    for (const profiler::OpCalls& calls : measured.calls) {
        rates.add(kernels::rateFamily(calls.op, classes.of(calls.op)),
                  {static_cast<double>(calls.bytes), static_cast<double>(calls.flops), calls.seconds,
                   static_cast<double>(calls.calls)});
    }
    for (const profiler::OpWake& wake : measured.wakes) {
        rates.addWake(kernels::rateFamily(wake.op, classes.of(wake.op)), wake.seconds);
    }
    for (const auto& [kind, cost] : {std::pair(kernels::LaunchKind::Launched, &measured.launched),
                                     std::pair(kernels::LaunchKind::Replayed, &measured.replayed),
                                     std::pair(kernels::LaunchKind::Trained, &measured.trained)}) {
        if (cost->steps > 0) {
            rates.addSteps(kind, launchCostOf(*cost));
        }
    }
    return rates;
}

void keepOpRates(const engine::Experiment& experiment, const std::string& sessionFile, sessions::RunId run) {
    try {
        const std::optional<kernels::DeviceTraits> traits = measuredDevice(experiment);
        const std::string file = traits ? kernels::ownRatesFile(*traits) : std::string();
        if (file.empty()) {
            return;
        }
        const auto session = sessions::SessionFile::open(sessionFile, sessions::OpenMode::ReadOnly);
        const auto timeline = loadShortTimeline(*session, run, kMostRows);
        if (timeline == nullptr) {
            return;
        }
        kernels::OpRates rates = kernels::OpRates::read(file);
        rates.join(ratesOf(*timeline, rateClassesOf(experiment)));
        if (rates.empty()) {
            return;
        }
        std::error_code error;
        std::filesystem::create_directories(std::filesystem::path(file).parent_path(), error);
        base::writeOutput(file, [&](std::ostream& out) { out << rates.toJson().dump() << '\n'; });
    } catch (const std::exception& error) {
        base::logInfo(fmt::format("the run's times are not kept for later plans: {}", error.what()));
    }
}

} // namespace vitrine::app
