// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Integers of 4 or 8 bits with a scale, and perhaps a zero, for a group of inputs: what GPTQ, AWQ, compressed-tensors
// (pack-quantized) and GGUF (Q4_0, Q5_0, Q8_0) come to once they are in memory.
//
//     w[o, i] = (code[o, i] - zero[o, g(i)]) * scale[o, g(i)],  g(i) = order[i], or i / group without an order
//
// Codes are unsigned, row by row, of 4 bits two in a byte with the low nibble first. Without zeros, the zero is the
// middle code: 8 or 128. Zeros are U8; scales are F32, BF16 or F16. The product is made in float32.

#include "kernels/formats/packed_format.h"

namespace vitrine::kernels {

const PackedFormat& int4Format();
const PackedFormat& int8Format();

/// The zero of codes of `bits` bits when there are no zeros.
constexpr int middleCode(int bits) {
    return 1 << (bits - 1);
}

} // namespace vitrine::kernels
