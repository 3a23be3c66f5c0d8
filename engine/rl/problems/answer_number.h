// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Numbers in the text of an answer.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace vitrine::engine {

/// Where a number stands, with its sign: [begin, end).
struct NumberPlace {
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// The last number of a text: "1,234.5", "-7", ".5", "2e-3". A "-" is a sign where no operand stands before it, so the
/// last number of "5-3" is 3. Percent signs and units are no part of it. Takes linear time.
std::optional<NumberPlace> lastNumberPlace(std::string_view text);

/// The digits of a number as they are without separators: "-1234.5". The minus may be Unicode's.
std::string plainNumber(std::string_view number);

/// The value of the last number; none: there is no number, or none that a double can hold.
std::optional<double> lastNumber(std::string_view text);

} // namespace vitrine::engine
