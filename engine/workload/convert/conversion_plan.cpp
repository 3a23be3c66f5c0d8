// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/convert/conversion_plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "engine/checkpoint/model_config.h"
#include "engine/quant/conversion_target.h"
#include "engine/quant/matrix_packer.h"
#include "engine/quant/module_pattern.h"
#include "engine/quant/storage_scheme.h"
#include "engine/workload/experiment/option_value.h"

namespace vitrine::engine {
namespace {

/// Whether weights of this kind can be packed so: stacks have a layout of their own, and routers stay exact.
bool canPack(const Quantization& quantization, const PackableWeight& weight) {
    if (weight.part == ModelPart::Router) {
        return false;
    }
    const bool stack = weight.shape.size() == 3;
    const bool single = weight.part == ModelPart::Experts && !stack;
    return quantization.allLinears ? !stack && (!single || canStack(quantization.packing)) : stack;
}

/// One scale for rows of two experts has no place when experts become one stack.
void checkBlocks(const WeightPacking& packing, const PackableWeight& weight, std::int64_t out) {
    const std::int64_t rows = rowGroupOf(packing, out);
    if (weight.part == ModelPart::Experts && out % rows != 0) {
        throw base::BadInput(
            fmt::format("{}: has {} outputs, which are no whole blocks of {}; choose group_size -1, or "
                        "leave it out with ignore",
                        weight.name, out, rows));
    }
}

void choosePackings(ModelConfig& config, const Quantization& quantization, std::vector<std::string>& kept) {
    for (const PackableWeight& weight : packableWeights(config)) {
        if (!canPack(quantization, weight) || !quantization.packs(weight.name)) {
            kept.emplace_back(moduleOf(weight.name));
            continue;
        }
        const MatrixSize size{weight.shape[weight.shape.size() - 2], weight.shape.back()};
        checkPackable(quantization.packing, weight.name, size);
        checkBlocks(quantization.packing, weight, size.out);
        config.packings[weight.name] = quantization.packing;
    }
}

} // namespace

void checkIgnored(const Experiment& experiment, const std::string& name) {
    for (const std::string& pattern : experiment.texts("ignore")) {
        try {
            requireModulePattern(pattern);
        } catch (const base::BadInput& error) {
            failOption(name, "ignore", error.message());
        }
    }
}

void warnOfIgnored(const ModelSource& source, const std::vector<std::string>& patterns) {
    std::vector<std::string> modules{"lm_head"}; // which stays dense in every model, tied or not
    ModelConfig config = source.config;
    // Experts have names of their own where they are packed one by one.
    for (const bool fused : {source.config.fusedExperts, false}) {
        config.fusedExperts = fused;
        for (const TensorSpec& spec : expectedTensors(config)) {
            modules.emplace_back(moduleOf(spec.packed() ? spec.weight : spec.name));
        }
    }
    for (const std::string& pattern : patterns) {
        if (std::ranges::none_of(modules, [&](const std::string& module) { return matchesModule(pattern, module); })) {
            base::logWarning(fmt::format("--ignore {} matches no tensor of {}", pattern, source.name));
        }
    }
}

ConversionPlan planConversion(const ModelSource& source, const ConversionRules& rules) {
    ConversionPlan plan;
    plan.config = source.config;
    plan.config.packings.clear();
    nlohmann::json config = nlohmann::json::parse(source.configText);
    config.erase("quantization_config");
    if (!rules.quantization) {
        plan.convertsAll = true;
        config[config.contains("torch_dtype") ? "torch_dtype" : "dtype"] = "bfloat16";
        plan.configText = config.dump(2) + "\n";
        return plan;
    }
    Quantization quantization = *rules.quantization;
    quantization.ignored = rules.ignored;
    if (quantization.allLinears && canStack(quantization.packing)) {
        plan.config.fusedExperts = false; // experts are packed by themselves
    }
    // Other programs do not know all patterns, so the config names each module that stays dense.
    std::vector<std::string> kept{"lm_head"};
    choosePackings(plan.config, quantization, kept);
    if (plan.config.packings.empty()) {
        throw base::Unsupported(fmt::format(
            "{}: no weight of it can be packed as {}{}", source.name, formatName(quantization.packing.format),
            quantization.allLinears ? "; ignore leaves all of them out" : ", which is for stacks of experts"));
    }
    quantization.ignored = std::move(kept);
    config["quantization_config"] = quantizationConfig(quantization);
    knownConfigFields(config, source.name); // throws for a format that the family is not read in
    plan.configText = config.dump(2) + "\n";
    return plan;
}

} // namespace vitrine::engine
