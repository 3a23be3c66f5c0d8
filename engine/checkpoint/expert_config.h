// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Part of parseModelConfig: how many experts a model has and how many of them a token uses.

#include <cstdint>

#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/model_config.h"

namespace vitrine::engine {

/// What a config calls its experts.
struct ExpertKeys {
    const char* count = "num_experts";
    const char* olderCount = "num_local_experts"; ///< wins where both are there
};

/// Sets experts and expertsPerToken. Throws BadInput when two names of a number disagree, or when there are fewer
/// experts than a token uses.
void parseExperts(ConfigReader& reader, const ExpertKeys& keys, std::int64_t defaultExperts,
                  std::int64_t defaultPerToken, ModelConfig& config);

} // namespace vitrine::engine
