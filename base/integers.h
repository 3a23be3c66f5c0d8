// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstddef>
#include <cstdint>

namespace vitrine::base {

/// How many parts of size b, at least one, hold a things; a is not negative.
constexpr std::int64_t ceilDivide(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

/// A signed position, which is not negative, as the standard containers take it.
constexpr std::size_t toIndex(std::int64_t position) {
    return static_cast<std::size_t>(position);
}

} // namespace vitrine::base
