// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Random orders that depend on numbers alone.

#include <cstdint>
#include <vector>

#include "base/philox.h"

namespace vitrine::engine {

/// The streams of the seed of a training run: each use of the seed has its own, so that they do not depend on each
/// other.
enum class SeedStream : std::uint32_t { DataSplit = 0x5350'4C49, DataOrder = 0x4F52'4445 };

inline base::PhiloxKey seedKey(std::uint64_t seed, SeedStream stream) {
    return base::philoxKey(seed, static_cast<std::uint32_t>(stream));
}

/// 0 to count - 1 in a random order. `number` tells permutations of the same key apart.
std::vector<std::int64_t> randomPermutation(std::int64_t count, base::PhiloxKey key, std::uint64_t number);

} // namespace vitrine::engine
