// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Patterns for names of modules, as quantization configs have them. They come from files: matching one does a bounded
// amount of work, whatever it says.

#include <string>
#include <string_view>

namespace vitrine::engine {

/// Whether the pattern means the module: "re:REGEX" that matches from the beginning of the name, the whole name, its
/// first or last parts ("lm_head", "model.layers.3"), or parts inside ("self_attn"). A regular expression that is
/// broken, or takes too many steps, means none.
bool matchesModule(const std::string& pattern, std::string_view module);

/// Throws BadInput "PATTERN: what" for a pattern that means none whatever the modules are called: a broken regular
/// expression, or one that is too long. For patterns that a person gives.
void requireModulePattern(const std::string& pattern);

} // namespace vitrine::engine
