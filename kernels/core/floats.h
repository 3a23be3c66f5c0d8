// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Float formats on the CPU. Ops are templates over the compute type C (float, or double when the data are F64); storage
// types are read and written a row piece at a time, rounded to nearest even.

#include <bit>
#include <cstdint>

#include "kernels/core/dtype.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

constexpr float bf16ToFloat(std::uint16_t bits) {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

constexpr std::uint16_t floatToBf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quietNan = (bits >> 16) | 0x40U;
    return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? quietNan : rounded);
}

constexpr float f16ToFloat(std::uint16_t bits) {
    const std::uint32_t sign = (std::uint32_t{bits} & 0x8000U) << 16;
    const std::uint32_t magnitude = std::uint32_t{bits} & 0x7FFFU;
    // Half's exponent bias is 112 below float's; the product also makes half's subnormals right.
    const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1.0p112F);
    const std::uint32_t special = 0x7F800000U | (magnitude << 13);
    return std::bit_cast<float>(sign | (magnitude >= 0x7C00U ? special : finite));
}

constexpr std::uint16_t floatToF16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    std::uint32_t half = 0;
    if (magnitude >= 0x7F800000U) {
        half = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
    } else if (magnitude >= 0x477FF000U) {
        half = 0x7C00U; // rounds to 65536 or more
    } else if (magnitude < 0x38800000U) {
        // 0.5 has the step of half's subnormals: the addition rounds to nearest even.
        half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
    } else {
        half = (magnitude + 0xFFFU + ((magnitude >> 13) & 1U) - 0x38000000U) >> 13;
    }
    return static_cast<std::uint16_t>(sign | half);
}

inline constexpr float kLargestE4m3 = 448;

/// OCP FP8 E4M3: no infinities, 0x7F and 0xFF are NaN.
constexpr float e4m3ToFloat(std::uint8_t bits) {
    const std::uint32_t magnitude = std::uint32_t{bits} & 0x7FU;
    const std::uint32_t sign = (std::uint32_t{bits} & 0x80U) << 24;
    // E4M3's exponent bias is 120 below float's; the product also makes its subnormals right.
    const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 20) * 0x1.0p120F);
    return std::bit_cast<float>(sign | (magnitude == 0x7FU ? 0x7FC00000U : finite));
}

/// To nearest even; what is larger than 448 becomes 448, infinities too.
constexpr std::uint8_t floatToE4m3(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 24) & 0x80U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    std::uint32_t byte = 0x7FU;
    if (magnitude <= 0x7F800000U) {
        if (magnitude < 0x3C800000U) {
            // 16384 has the step of E4M3's subnormals, 2^-9: the addition rounds to nearest even.
            byte = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 16384.0F) - 0x46800000U;
        } else {
            byte = (magnitude + 0x7FFFFU + ((magnitude >> 20) & 1U) - 0x3C000000U) >> 20;
        }
        byte = byte > 0x7EU ? 0x7EU : byte;
    }
    return static_cast<std::uint8_t>(sign | byte);
}

/// Elements `offset` .. `offset + count - 1` of a float tensor's memory as C. Defined for float and double.
template <class C> void loadFloats(DType dtype, const void* data, std::int64_t offset, std::int64_t count, C* out);

/// The reverse, rounding once.
template <class C> void storeFloats(DType dtype, const C* values, std::int64_t count, void* data, std::int64_t offset);

/// Rounds values to what `dtype` can hold.
template <class C> void roundFloats(DType dtype, C* values, std::int64_t count);

/// Row pieces are this long, so that they stay in the first-level cache on the stack.
inline constexpr std::int64_t kRowPiece = 512;

/// Calls body(begin, count) over [0, total) in pieces of kRowPiece.
template <class Body> void forPieces(std::int64_t total, const Body& body) {
    for (std::int64_t begin = 0; begin < total; begin += kRowPiece) {
        body(begin, total - begin < kRowPiece ? total - begin : kRowPiece);
    }
}

/// e^x within 2 ulp over float's range, 0 below -87.3, without branches so that loops vectorise. NaN stays NaN.
inline float fastExp(float x) {
    constexpr float kLog2e = 1.44269504F;
    constexpr float kRoundToInteger = 12582912.0F; // 1.5 * 2^23: the sum's low bits are the integer
    float clamped = x < -87.3F ? -87.3F : x;
    clamped = clamped > 88.3F ? 88.3F : clamped;
    const float shifted = clamped * kLog2e + kRoundToInteger;
    const float n = shifted - kRoundToInteger;
    const float r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;
    float p = 1.9875691500e-4F; // minimax polynomial of Cephes expf
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    const float series = (p * r) * r + r + 1.0F;
    const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3F800000U;
    const float result = series * std::bit_cast<float>(exponent);
    return x < -87.3F ? 0.0F : result;
}

} // namespace vitrine::kernels
