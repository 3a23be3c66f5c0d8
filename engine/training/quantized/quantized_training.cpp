// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/quantized/quantized_training.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/quant/conversion_target.h"

namespace vitrine::engine {

namespace {

bool isExperts(const Parameter& parameter) {
    return parameter.role == ParameterRole::ExpertGateUp || parameter.role == ParameterRole::ExpertDown;
}

} // namespace

std::string QuantizedTraining::usualWeights(std::span<const Parameter> parameters) {
    return std::ranges::any_of(parameters, isExperts) ? "experts" : "all-linear";
}

QuantizedTraining::QuantizedTraining(WeightPacking packing, const std::string& weights,
                                     std::span<const Parameter> parameters)
    : packing_(packing), choice_(weights.empty() ? usualWeights(parameters) : weights, "qat_weights") {
    const auto covered = [this](const Parameter& parameter) { return covers(parameter); };
    if (std::ranges::none_of(parameters, covered)) {
        throw base::BadInput(fmt::format("qat_weights: {} names no weight that can be quantized; routers, the "
                                         "embedding and the head never are",
                                         choice_.text()));
    }
    if (packing_.scheme == StorageScheme::GptOss) {
        const auto matrix = std::ranges::find_if(parameters, [&](const Parameter& parameter) {
            return covers(parameter) && parameter.view.shape.rank() != 3;
        });
        if (matrix != parameters.end()) {
            throw base::BadInput(fmt::format("qat_weights: {} is no stack of experts, and {} packs only those; choose "
                                             "experts of a model that has some, or another format",
                                             matrix->name, formatName(packing_.format)));
        }
    }
}

bool QuantizedTraining::covers(const Parameter& parameter) const {
    return choice_.contains(parameter) && isLinear(parameter) && parameter.role != ParameterRole::Router &&
           parameter.role != ParameterRole::Head && parameter.role != ParameterRole::Embedding;
}

} // namespace vitrine::engine
