// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How large a model is in parameters, as its authors count them: elements of weights, however they are stored.

#include <cstdint>

#include "engine/checkpoint/model_config.h"

namespace vitrine::engine {

struct ParameterCount {
    std::int64_t all = 0;
    std::int64_t active = 0; ///< those that one token passes: of a mixture of experts only the chosen ones
};

ParameterCount countParameters(const ModelConfig& config);

} // namespace vitrine::engine
