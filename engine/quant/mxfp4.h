// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// MXFP4 on the host (OCP Microscaling Formats 1.0): groups of 32 E2M1 numbers along the contracted axis share one E8M0
// scale. A group is 16 bytes, the low nibble first, and value = e2m1[nibble] * 2^(scale - 127).
// Stateless; safe from any thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vitrine::engine {

inline constexpr std::size_t kMxfp4Group = 32;
inline constexpr std::size_t kMxfp4GroupBytes = kMxfp4Group / 2;
/// The scale that means "not a number".
inline constexpr std::uint8_t kMxfp4NanScale = 255;
/// E2M1 by nibble; bit 3 is the sign.
inline constexpr std::array<float, 16> kE2m1{0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                             -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

/// 2^(scale - 127); NaN for 255.
float e8m0Value(std::uint8_t scale);

/// Quantises groups of 32 as kernels::packMxfp4 does. REQUIRES values.size() a multiple of 32, blocks.size() half of it
/// and scales.size() one 32nd. Throws BadInput when a value is not finite.
void quantizeMxfp4(std::span<const float> values, std::span<std::uint8_t> blocks, std::span<std::uint8_t> scales);

/// Expands groups to floats; the reference for all kernels. Sizes are those of the function above. A scale of 255 gives
/// NaN.
void dequantizeMxfp4(std::span<const std::uint8_t> blocks, std::span<const std::uint8_t> scales,
                     std::span<float> values);

/// Throws BadInput "NAME: what" when one of the scales is 255. `name` is "FILE: TENSOR". `first` is the index in the
/// tensor of the first scale that is given.
void checkMxfp4Scales(std::span<const std::uint8_t> scales, const std::string& name, std::uint64_t first = 0);

} // namespace vitrine::engine
