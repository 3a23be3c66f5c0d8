// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/dynamic_map.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace vitrine::kernels {

namespace {

/// Decade d of seven, 0 the smallest, has 2^(d + extraBits) values on each side.
DynamicMap makeDynamicMap(int extraBits, bool bothSides) {
    DynamicMap map{};
    std::size_t count = 0;
    const auto add = [&](double value) { map.at(count++) = static_cast<float>(value); };
    constexpr int kDecades = 7;
    for (int decade = 0; decade < kDecades; ++decade) {
        const int pieces = 1 << (decade + extraBits);
        for (int piece = 0; piece < pieces; ++piece) {
            const double centre = 0.1 + 0.9 * (piece + 0.5) / pieces;
            const double value = centre * std::pow(10.0, decade - (kDecades - 1));
            add(value);
            if (bothSides) {
                add(-value);
            }
        }
    }
    add(0);
    add(1);
    std::sort(map.begin(), map.end());
    return map;
}

} // namespace

DynamicMap signedDynamicMap() {
    return makeDynamicMap(0, true);
}

DynamicMap unsignedDynamicMap() {
    return makeDynamicMap(1, false);
}

} // namespace vitrine::kernels
