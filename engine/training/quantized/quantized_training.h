// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which weights are quantized while a model trains, and how.

#include <span>
#include <string>

#include "engine/model/parameters.h"
#include "engine/quant/packing.h"
#include "engine/training/parameters/parameter_choice.h"

namespace vitrine::engine {

class QuantizedTraining {
public:
    /// `weights` as a ParameterChoice, or empty: the experts of a model that has some, else all linears. Throws
    /// BadInput that begins with "qat_weights".
    QuantizedTraining(WeightPacking packing, const std::string& weights, std::span<const Parameter> parameters);

    /// Whether a parameter is quantized. Routers, the embedding, the head, norms and biases never are.
    bool covers(const Parameter& parameter) const;
    const WeightPacking& packing() const { return packing_; }
    /// The weights that are quantized where the option names none, as a ParameterChoice.
    static std::string usualWeights(std::span<const Parameter> parameters);

private:
    WeightPacking packing_;
    ParameterChoice choice_;
};

} // namespace vitrine::engine
