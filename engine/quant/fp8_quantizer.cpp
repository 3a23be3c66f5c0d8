// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/fp8_quantizer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {

float fp8Scale(float largest) {
    // A magnitude so small that its scale is 0 in float32 rounds to 0 whatever the scale.
    const float scale = largest / kernels::kLargestE4m3;
    return scale == 0 ? 1 : scale;
}

void largestOfGroups(std::int64_t group, std::span<const float> row, std::span<float> largest) {
    const auto size = static_cast<std::size_t>(group);
    for (std::size_t g = 0; g < largest.size(); ++g) {
        largest[g] = 0;
        for (const float value : row.subspan(g * size, std::min(size, row.size() - g * size))) {
            if (!std::isfinite(value)) {
                throw base::BadInput("a value is not finite, so it has no FP8 form");
            }
            largest[g] = std::max(largest[g], std::abs(value));
        }
    }
}

void quantizeFp8Row(std::int64_t group, std::span<const float> row, std::span<const float> scales,
                    std::span<std::uint8_t> elements) {
    for (std::size_t i = 0; i < row.size(); ++i) {
        elements[i] = kernels::floatToE4m3(row[i] / scales[i / static_cast<std::size_t>(group)]);
    }
}

} // namespace vitrine::engine
