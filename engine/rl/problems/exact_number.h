// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Exact numbers out of mathematical text.

#include <optional>
#include <string>
#include <string_view>

namespace vitrine::engine {

/// The number that the whole text is, in lowest terms: "-7/2", "3". Read are decimals and thousands separators
/// ("1,234.50"), "\frac{a}{b}", "a/b", and mixed numbers ("1\frac{1}{2}", "1 1/2"). The text has the form that
/// plainMath() makes. None: it is no number, or one that 128 bits do not hold.
std::optional<std::string> exactNumber(std::string_view text);

} // namespace vitrine::engine
