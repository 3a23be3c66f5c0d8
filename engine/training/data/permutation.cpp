// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/permutation.h"

#include <cstddef>
#include <numeric>
#include <utility>

namespace vitrine::engine {

std::vector<std::int64_t> randomPermutation(std::int64_t count, base::PhiloxKey key, std::uint64_t number) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    // Fisher and Yates. Of 64 random bits the remainder of a small number is uniform as far as anyone could see.
    for (std::size_t i = order.size(); i > 1; --i) {
        const auto bits = base::philox4x32(key, i, number);
        const std::uint64_t wide = (std::uint64_t{bits[0]} << 32) | bits[1];
        std::swap(order[i - 1], order[static_cast<std::size_t>(wide % i)]);
    }
    return order;
}

} // namespace vitrine::engine
