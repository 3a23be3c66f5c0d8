// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The softmax of one row on the CPU.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace vitrine::kernels {

template <class C> void softmaxInPlace(C* values, std::int64_t count) {
    C maximum = -std::numeric_limits<C>::infinity();
    for (std::int64_t i = 0; i < count; ++i) {
        maximum = std::max(maximum, values[i]);
    }
    C sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        values[i] = std::exp(values[i] - maximum);
        sum += values[i];
    }
    for (std::int64_t i = 0; i < count; ++i) {
        values[i] /= sum;
    }
}

} // namespace vitrine::kernels
