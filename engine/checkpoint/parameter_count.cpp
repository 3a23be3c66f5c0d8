// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/parameter_count.h"

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {

ParameterCount countParameters(const ModelConfig& config) {
    ModelConfig dense = config;
    dense.packings.clear();
    dense.fusedExperts = true; // a stack is one tensor instead of hundreds
    ParameterCount count;
    std::int64_t experts = 0;
    for (const TensorSpec& spec : expectedTensors(dense)) {
        const std::int64_t elements = kernels::Shape(spec.shape).count();
        count.all += elements;
        experts += spec.part == ModelPart::Experts ? elements : 0;
    }
    count.active = count.all;
    if (config.experts > 0) {
        count.active -= experts / config.experts * (config.experts - config.expertsPerToken);
    }
    return count;
}

} // namespace vitrine::engine
