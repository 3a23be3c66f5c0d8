// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What becomes of each key of adapter_config.json that AdapterConfig has no field for: it is refused where it changes
// the arithmetic, passed over where it does not, and named where nobody knows.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/checkpoint/config_reader.h"

namespace vitrine::engine {

/// Null, false, or empty: the key does nothing.
bool meansNothing(const nlohmann::json& value);

/// Throws Unsupported for keys of methods that add something else than scale B A x, BadInput for values of wrong types.
void refuseForeignKeys(ConfigReader& reader);

/// The keys that `reader` was not asked for and that are not known to be harmless.
std::vector<std::string> unknownKeys(const nlohmann::json& object, const ConfigReader& reader);

} // namespace vitrine::engine
