// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Token numbers in config.json and generation_config.json: an integer, a list of integers, or null.

#include <cstdint>
#include <vector>

#include "engine/checkpoint/config_reader.h"

namespace vitrine::engine {

/// One number; `defaultValue` for a missing key, -1 (none) for null, the first of a list.
std::int32_t parseTokenId(ConfigReader& reader, const char* key, std::int32_t defaultValue);

/// All numbers that are not negative; {defaultValue} for a missing key unless it is -1.
std::vector<std::int32_t> parseTokenIds(ConfigReader& reader, const char* key, std::int32_t defaultValue);

} // namespace vitrine::engine
