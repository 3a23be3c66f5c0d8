// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vitrine::base {

/// "1 step", "2 steps": a count with its noun, whose plural ends in s.
std::string countText(std::int64_t count, std::string_view noun);

} // namespace vitrine::base
