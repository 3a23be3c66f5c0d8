// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Q4_K and Q6_K, the block formats of GGUF files (ggml's k-quants). A row is a list of blocks of 256 elements, which
// kernels read as they lie in the file; a weight has no tensor of scales.
//
//     Q4_K, 144 bytes: d (F16), dmin (F16), 12 bytes with 8 scales s and 8 minima m of 6 bits, 128 bytes of codes
//         w = d * s * code - dmin * m,        s and m of each 32 elements, codes 0 to 15
//     Q6_K, 210 bytes: 128 bytes of low nibbles, 64 bytes of upper pairs of bits, 16 scales s (I8), d (F16)
//         w = d * s * (code - 32),            s of each 16 elements, codes 0 to 63
//
// Products and the difference are made in float32 from left to right, each rounded, as the gguf package does.

#include "kernels/formats/packed_format.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kKQuantElements = 256; ///< of a block
inline constexpr std::int64_t kQ4KBytes = 144;
inline constexpr std::int64_t kQ6KBytes = 210;

/// Data are U8 (..., out, bytes of a row), of whole blocks.
const PackedFormat& q4kFormat();
const PackedFormat& q6kFormat();

} // namespace vitrine::kernels
