// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/kv_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/core/floats.h"

namespace vitrine::kernels {

namespace {

constexpr float kLargestInt8 = 127;

constexpr std::array<float, 256> makeE4m3Values() {
    std::array<float, 256> values{};
    for (std::uint32_t bits = 0; bits < values.size(); ++bits) {
        values[bits] = e4m3ToFloat(static_cast<std::uint8_t>(bits));
    }
    return values;
}

constexpr std::array<float, 256> kE4m3Values = makeE4m3Values();

float scaleOf(float largest, float limit) {
    const auto cut = std::bit_cast<float>(std::bit_cast<std::uint32_t>(largest / limit) & 0xFFFFFF00U);
    return cut < std::numeric_limits<float>::min() ? 0.0F : cut;
}

/// To the nearest integer, ties to even, for magnitudes below 2^22; without a call, so that loops vectorise.
float nearest(float value) {
    constexpr float kRoundToInteger = 12582912.0F; // 1.5 * 2^23: the sum's low bits are the integer
    return (value + kRoundToInteger) - kRoundToInteger;
}

void checkType(DType dtype) {
    if (dtype != DType::I8 && dtype != DType::F8E4M3) {
        throw base::Internal("rows of a KV cache: no type of bytes");
    }
}

} // namespace

float quantizeKvRow(DType dtype, const float* row, std::int64_t count, void* out) {
    checkType(dtype);
    float largest = 0;
    float sum = 0; // of zeros: NaN where an element is none or infinite
    for (std::int64_t i = 0; i < count; ++i) {
        const float magnitude = std::fabs(row[i]);
        largest = magnitude > largest ? magnitude : largest;
        sum += magnitude * 0.0F;
    }
    auto* bytes = static_cast<std::uint8_t*>(out);
    const float scale = scaleOf(largest, dtype == DType::I8 ? kLargestInt8 : kLargestE4m3);
    if (scale == 0 || std::isnan(sum)) {
        std::fill_n(bytes, count, std::uint8_t{0});
        return std::isnan(sum) ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
    }
    const float inverse = 1 / scale;
    if (dtype == DType::I8) {
        for (std::int64_t i = 0; i < count; ++i) {
            bytes[i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(nearest(row[i] * inverse)));
        }
    } else {
        for (std::int64_t i = 0; i < count; ++i) {
            bytes[i] = floatToE4m3(row[i] * inverse);
        }
    }
    return scale;
}

template <class C> void dequantizeKvRow(DType dtype, const void* row, float scale, std::int64_t count, C* out) {
    checkType(dtype);
    const auto* bytes = static_cast<const std::uint8_t*>(row);
    if (dtype == DType::I8) {
        for (std::int64_t i = 0; i < count; ++i) {
            out[i] = static_cast<C>(static_cast<float>(static_cast<std::int8_t>(bytes[i])) * scale);
        }
        return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        out[i] = static_cast<C>(kE4m3Values[bytes[i]] * scale);
    }
}

template void dequantizeKvRow(DType, const void*, float, std::int64_t, float*);
template void dequantizeKvRow(DType, const void*, float, std::int64_t, double*);

} // namespace vitrine::kernels
