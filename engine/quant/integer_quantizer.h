// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rounds values to integers of 4 or 8 bits, to the nearest. The rules are those of compressed-tensors 0.20
// (calculate_qparams and quantize with a min-max observer), so codes, scales and zeros are equal to its own bit for
// bit, unless another rule of kernels/formats/integer_rounding.h is asked for:
//
//     symmetric:   scale = 2 max|x| / (2^bits - 1), the zero is the middle code
//     asymmetric:  scale = (max - min) / (2^bits - 1) of a range that holds 0, zero = round(lowest - min / scale)
//     code = round(clamp(x / scale + zero))
//
// Halves are rounded to even. PyTorch makes each step in the type of the weight, so the result of each one is rounded
// to that type. Stateless; safe from any thread.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/dtype.h"
#include "kernels/formats/integer_rounding.h"

namespace vitrine::engine {

struct IntegerRules {
    int bits = 4;                                ///< 4 or 8
    std::int64_t group = 0;                      ///< inputs that share a scale
    bool symmetric = true;                       ///< zeros are not chosen
    kernels::DType dtype = kernels::DType::BF16; ///< of the weight and its scales: F32, BF16 or F16
    kernels::IntegerRule rule = kernels::IntegerRule::CompressedTensors; ///< of symmetric groups
};

/// The scale and the zero of one group. Throws BadInput when a value is not finite, or the group so wide that its scale
/// is not finite in the type of the weight.
struct IntegerGroup {
    float scale = 0;
    std::uint8_t zero = 0; ///< of unsigned codes
};
IntegerGroup integerGroup(const IntegerRules& rules, std::span<const float> values);

/// Unsigned codes, a byte each, as kernels read them: of 4 bits two in a byte with the low nibble first. REQUIRES
/// rows of an even number of codes.
std::vector<std::uint8_t> packedCodes(int bits, std::span<const std::uint8_t> codes);

/// The unsigned code of a value that is in the type of the weight.
std::uint8_t integerCode(const IntegerRules& rules, const IntegerGroup& group, float value);

/// Quantizes groups of values, which are rounded to the type of the weight first. `codes` has a byte for each value.
/// REQUIRES whole groups. Throws as integerGroup() does.
void quantizeIntegers(const IntegerRules& rules, std::span<const float> values, std::span<std::uint8_t> codes,
                      std::span<IntegerGroup> groups);

} // namespace vitrine::engine
