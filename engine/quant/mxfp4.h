// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// MXFP4 of checkpoints; kernels/formats/mxfp4_format.h says what it is. Stateless; safe from any thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vitrine::engine {

/// The scale that means "not a number".
inline constexpr std::uint8_t kMxfp4NanScale = 255;

/// Quantises groups of 32 as kernels::packMxfp4 does. REQUIRES values.size() a multiple of 32, blocks.size() half of it
/// and scales.size() one 32nd. Throws BadInput when a value is not finite.
void quantizeMxfp4(std::span<const float> values, std::span<std::uint8_t> blocks, std::span<std::uint8_t> scales);

/// Throws BadInput "NAME: what" when one of the scales is 255. `name` is "FILE: TENSOR". `first` is the index in the
/// tensor of the first scale that is given.
void checkMxfp4Scales(std::span<const std::uint8_t> scales, const std::string& name, std::uint64_t first = 0);

} // namespace vitrine::engine
