// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Search in keys that rise with their index.

#include <cstddef>

namespace vitrine::profiler {

/// Index of the last key that is not above `limit`, in rising order; -1 when there is none.
template <class Number, class KeyAt> std::ptrdiff_t lastNotAbove(std::size_t size, Number limit, KeyAt keyAt) {
    std::size_t low = 0;
    std::size_t high = size;
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (keyAt(middle) <= limit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return static_cast<std::ptrdiff_t>(low) - 1;
}

} // namespace vitrine::profiler
