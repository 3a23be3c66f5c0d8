// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sums of products in sixteen fixed partial sums: they vectorise, and are the same for every row count.

#include <cstdint>

namespace vitrine::kernels {

template <class C> class LaneSum {
public:
    void add(const C* a, const C* b, std::int64_t count) {
        std::int64_t i = 0;
        for (; i + kLanes <= count; i += kLanes) {
            for (std::int64_t lane = 0; lane < kLanes; ++lane) {
                lanes_[lane] += a[i + lane] * b[i + lane];
            }
        }
        for (; i < count; ++i) {
            lanes_[0] += a[i] * b[i];
        }
    }
    C total() const {
        C sum = 0;
        for (const C lane : lanes_) {
            sum += lane;
        }
        return sum;
    }

private:
    static constexpr std::int64_t kLanes = 16;
    C lanes_[kLanes] = {};
};

} // namespace vitrine::kernels
