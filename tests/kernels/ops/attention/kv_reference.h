// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a KV cache in bytes holds of a row (kernels/ops/attention/kv_view.h), in double and by trying every byte.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/core/dtype.h"
#include "kernels/ops/attention/kv_view.h"

namespace vitrine::kernels::testing {

/// The value of a byte; NaN for E4M3's two NaNs, and for -128, which no row holds.
inline double kvByteValue(DType dtype, int byte) {
    if (dtype == DType::I8) {
        return byte == 128 ? std::nan("") : byte < 128 ? byte : byte - 256;
    }
    const int exponent = byte >> 3 & 15;
    const int mantissa = byte & 7;
    if (exponent == 15 && mantissa == 7) {
        return std::nan("");
    }
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    return byte < 128 ? magnitude : -magnitude;
}

inline double kvScale(DType dtype, const double* row, std::int64_t count) {
    float largest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        largest = std::max(largest, static_cast<float>(std::fabs(row[i])));
    }
    const float scale = largest / (dtype == DType::I8 ? 127.0F : 448.0F);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) & 0xFFFFFF00U);
}

/// `values` as rows of `dim` after a write and a read; floats stay as they are. Values are floats.
inline std::vector<double> asCached(DType dtype, std::vector<double> values, std::int64_t dim) {
    if (!isQuantizedKv(dtype)) {
        return values;
    }
    for (std::size_t row = 0; row < values.size(); row += static_cast<std::size_t>(dim)) {
        const double scale = kvScale(dtype, values.data() + row, dim);
        for (std::size_t i = row; i < row + static_cast<std::size_t>(dim); ++i) {
            const double wanted =
                scale == 0 ? 0 : static_cast<double>(static_cast<float>(values[i]) * (1 / static_cast<float>(scale)));
            double best = 0;
            int bestByte = 0;
            for (int byte = 0; byte < 256; ++byte) {
                const double value = kvByteValue(dtype, byte);
                const double error = std::fabs(value - wanted);
                // Neighbours differ in their last bit: of two equally near ones the even one.
                const bool nearer = error < std::fabs(best - wanted);
                const bool even = error == std::fabs(best - wanted) && byte % 2 == 0 && bestByte % 2 != 0;
                if (nearer || even) {
                    best = value;
                    bestByte = byte;
                }
            }
            values[i] = best * scale;
        }
    }
    return values;
}

} // namespace vitrine::kernels::testing
