// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Finds out where a model's numbers stop being numbers, once a step has given logits that are not finite.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/model/model.h"

namespace vitrine::engine {

/// What to tell a person: "model: layer 7: ... in decode step 12 ...". Runs the last of the tokens through the model
/// once more, without a cache, and looks at every layer; where memory does not suffice the layer stays unknown.
/// REQUIRES that no step is launched.
std::string brokenNumbers(Model& model, std::span<const std::int32_t> tokens, std::string_view step,
                          std::int64_t index);

} // namespace vitrine::engine
