// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Synthetic models: the config of a known shape, changed field by field.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace vitrine::engine {

/// `config` with `overrides` applied: a field ("num_hidden_layers") or a field of a nested object
/// ("rope_scaling.factor") to a JSON value; what is no JSON value is taken as a text. A changed layer count cuts
/// layer_types, or drops it when it is too short, so that the family's rule makes it anew. Throws BadInput that names
/// `model` and the field when a config of this family has no such field.
nlohmann::json overriddenConfig(nlohmann::json config, const std::map<std::string, std::string>& overrides,
                                const std::string& model);

} // namespace vitrine::engine
