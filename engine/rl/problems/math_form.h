// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One way to write a mathematical answer, so that answers can be compared as texts.

#include <cstddef>
#include <string>
#include <string_view>

namespace vitrine::engine {

/// Longer texts are no short answers: they are compared as they are.
inline constexpr std::size_t kLongestMath = 2000;

/// LaTeX without what only changes how it looks: signs of dollars, percents and degrees, sizes of brackets, spaces,
/// units in \text at its end. Other texts of \text stand by themselves. REQUIRES kLongestMath bytes at most.
std::string plainMath(std::string_view text);

/// Texts with the same form are equal. Numbers are exact fractions; "x = 5" is 5; items of "{1, 2}" and "1, 2" have no
/// order, those of "(1, 2)" and "[1, 2)" do; unions have none. Everything else is plainMath() without spaces.
/// REQUIRES the same.
std::string mathForm(std::string_view text);

} // namespace vitrine::engine
