// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tables of keys that no reader reads: those that change nothing, and those that would change the numbers.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/model_config.h"

namespace vitrine::engine {

/// Keys of config.json that change nothing at inference, whatever they say or with this value.
bool isHarmlessKey(std::string_view key, const nlohmann::json& value);

/// Throws Unsupported for keys of other model families that change the arithmetic; null, or the value that changes
/// nothing, is fine.
void refuseForeignFields(ConfigReader& reader, const ModelConfig& config);

/// Keys of generation_config.json that are known: those that change no answer, and others with the value that does not.
/// Older models have them in config.json.
bool isNeutralGenerationKey(std::string_view key, const nlohmann::json& value);

} // namespace vitrine::engine
