// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The search of planning: the largest number that fits a budget, in few tries.

#include <cstdint>
#include <functional>
#include <optional>

namespace vitrine::engine {

/// What a try of size n reserves, in bytes; nothing where it does not fit.
using FitProbe = std::function<std::optional<std::uint64_t>(std::int64_t n)>;

/// The largest n in [1, limit] that fits; 0: none does. `first` is tried first. What once did not fit must never fit
/// again as n grows. `budget` is called after a try and gives the bytes that may be reserved. Throws what `reserves`
/// throws.
std::int64_t largestFit(std::int64_t first, std::int64_t limit, const FitProbe& reserves,
                        const std::function<std::uint64_t()>& budget);

} // namespace vitrine::engine
