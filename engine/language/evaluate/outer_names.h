// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Names that no namespace of the texts has.

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/language/values/values.h"

namespace vitrine::engine {

struct OuterNames {
    /// What a name means that neither the texts nor the builtins define. None: unknown.
    std::function<std::optional<PyValue>(std::string_view name)> find;
    /// All names that the texts and `find` know, for "did you mean".
    std::function<std::vector<std::string_view>()> known;
};

} // namespace vitrine::engine
