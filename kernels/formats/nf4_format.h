// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// NF4, the 4-bit NormalFloat of QLoRA (Dettmers et al. 2023) as bitsandbytes stores it: 64 neighbours of the row-major
// matrix form a group and share a scale, their largest magnitude; an element is the number of one of 16 values. A byte
// holds two elements, the high nibble first. Scales may be packed too: the mean of all is taken away, and 256 of what
// is left share a scale, with the codes of the signed dynamic map.

#include <array>
#include <cstdint>
#include <span>

#include "kernels/formats/dynamic_map.h"
#include "kernels/formats/packed_format.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kNf4Group = 64;
inline constexpr std::int64_t kNf4ScaleGroup = 256;

inline constexpr std::array<float, 16> kNf4Values = {
    -1.0F,
    -0.6961928009986877F,
    -0.5250730514526367F,
    -0.39491748809814453F,
    -0.28444138169288635F,
    -0.18477343022823334F,
    -0.09105003625154495F,
    0.0F,
    0.07958029955625534F,
    0.16093020141124725F,
    0.24611230194568634F,
    0.33791524171829224F,
    0.44070982933044434F,
    0.5626170039176941F,
    0.7229568362236023F,
    1.0F,
};

/// What the code of a packed scale stands for.
const DynamicMap& nf4ScaleMap();

/// The scales of a matrix: floats, or codes with what unpacks them. Owns nothing.
struct Nf4Scales {
    const float* floats = nullptr;       ///< (groups), or null
    const std::uint8_t* codes = nullptr; ///< (groups), when floats is null
    const float* codeScales = nullptr;   ///< (groups / 256, rounded up)
    float offset = 0;

    float at(std::int64_t group) const;
};

/// The scales of a matrix of this format.
Nf4Scales nf4Scales(const PackedMatrix& matrix);

/// Data are U8 (out, in / 2), scales F32 (out, groups), or U8 of that shape with `scaleScales`, F32.
const PackedFormat& nf4Format();

/// Elements [begin, begin + count) of the row-major matrix as float32; both are even.
void expandNf4(const std::uint8_t* data, const Nf4Scales& scales, std::int64_t begin, std::int64_t count, float* out);

/// The code of the nearest value. Of two that are as near the lower one.
std::uint8_t nearestNf4(float value);

/// Quantises a matrix. REQUIRES values.size() a multiple of 64, data.size() half of it and scales.size() one 64th.
/// Throws BadInput when a value is not finite. A group of zeros has the scale 0.
void quantizeNf4(std::span<const float> values, std::span<std::uint8_t> data, std::span<float> scales);

/// Packs scales (double quantisation) and returns their mean, which is to be added to every unpacked scale. REQUIRES
/// codes.size() = scales.size(), codeScales.size() one 256th of it, rounded up.
float packNf4Scales(std::span<const float> scales, std::span<std::uint8_t> codes, std::span<float> codeScales);

} // namespace vitrine::kernels
