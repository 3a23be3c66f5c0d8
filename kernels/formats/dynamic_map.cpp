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

CodeTable::CodeTable(const float* values) : map(values), borders() {
    for (int i = 0; i < 255; ++i) {
        borders[i] = 0.5F * (values[i] + values[i + 1]);
    }
}

std::uint8_t CodeTable::nearest(float x) const {
    return static_cast<std::uint8_t>(std::lower_bound(borders, borders + 255, x) - borders);
}

float packCodes(const CodeTable& table, const float* values, std::int64_t count, std::uint8_t* codes) {
    float absmax = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        absmax = std::max(absmax, std::fabs(values[i]));
    }
    for (std::int64_t i = 0; i < count; ++i) {
        codes[i] = table.nearest(absmax > 0 ? values[i] / absmax : 0.0F);
    }
    return absmax;
}

} // namespace vitrine::kernels
