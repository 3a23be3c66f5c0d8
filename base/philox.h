// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Stateless random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// The same key and counter give the same numbers on every backend, whatever the batch.
// Key: (seed, request or layer). Counter: (position, index).

#include <array>
#include <cstdint>

namespace vitrine::base {

struct PhiloxKey {
    std::uint32_t seed = 0;
    std::uint32_t stream = 0; ///< request or layer
};

/// Folds a 64-bit seed into the key's 32 bits so that both halves matter.
constexpr PhiloxKey philoxKey(std::uint64_t seed, std::uint32_t stream) {
    return {static_cast<std::uint32_t>(seed ^ (seed >> 32)), stream};
}

/// Ten rounds over the counter (position low, position high, index low, index high).
constexpr std::array<std::uint32_t, 4> philox4x32(PhiloxKey key, std::uint64_t position, std::uint64_t index) {
    std::uint32_t c0 = static_cast<std::uint32_t>(position);
    std::uint32_t c1 = static_cast<std::uint32_t>(position >> 32);
    std::uint32_t c2 = static_cast<std::uint32_t>(index);
    std::uint32_t c3 = static_cast<std::uint32_t>(index >> 32);
    std::uint32_t k0 = key.seed;
    std::uint32_t k1 = key.stream;
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
        const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
        const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
        const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
        c1 = static_cast<std::uint32_t>(p1);
        c3 = static_cast<std::uint32_t>(p0);
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
}

/// Uniform in (0, 1): never 0, so its logarithm is finite.
constexpr float uniformOpen(std::uint32_t bits) {
    return (static_cast<float>(bits >> 9) + 0.5F) * 0x1.0p-23F;
}

} // namespace vitrine::base
