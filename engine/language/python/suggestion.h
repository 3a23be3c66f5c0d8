// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a text that names something unknown may have meant.

#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

/// The known name that is most like `name`, as "; did you mean 'x'?", or "" when none is near.
std::string suggestion(std::string_view name, const std::vector<std::string_view>& known);

} // namespace vitrine::engine
