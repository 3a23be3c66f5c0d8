// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rounds values to E4M3 with a float32 scale for a block: scale = max|x| / 448, element = e4m3(x / scale), to nearest
// even. DeepSeek-V3 has blocks of 128 by 128. Stateless; safe from any thread.

#include <cstdint>
#include <span>

namespace vitrine::engine {

/// The scale of a block with this largest magnitude; 1 for a block of zeros.
float fp8Scale(float largest);

/// The largest magnitude of each group of a row. Throws BadInput when a value is not finite.
void largestOfGroups(std::int64_t group, std::span<const float> row, std::span<float> largest);

/// Quantizes a row with the scales of its groups.
void quantizeFp8Row(std::int64_t group, std::span<const float> row, std::span<const float> scales,
                    std::span<std::uint8_t> elements);

} // namespace vitrine::engine
