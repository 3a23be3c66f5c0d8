// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The dynamic maps of bitsandbytes (Dettmers 2016): 256 ascending floats up to 1, dense around zero, that an 8-bit code
// numbers. Each of seven decades below 1 is cut into a power of two of equal pieces, whose centres are values.

#include <array>
#include <cstdint>

namespace vitrine::kernels {

using DynamicMap = std::array<float, 256>;

DynamicMap signedDynamicMap();   ///< from just above -1 to 1; as fine on both sides, and 0 is a value
DynamicMap unsignedDynamicMap(); ///< from 0 to 1

/// A map and the borders between neighbours: a number at a border gets the lower code.
struct CodeTable {
    explicit CodeTable(const float* values);
    std::uint8_t nearest(float x) const;

    const float* map; ///< 256 values, ascending; not owned
    float borders[255];
};

/// Numbers as codes of their share of the largest magnitude, which it returns.
float packCodes(const CodeTable& table, const float* values, std::int64_t count, std::uint8_t* codes);

} // namespace vitrine::kernels
