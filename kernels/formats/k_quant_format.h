// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Block formats of GGUF files: Q4_K, Q5_K and Q6_K (ggml's k-quants) with blocks of 256 elements, Q4_1 and Q5_1 with
// blocks of 32. A row is a list of blocks, which kernels read as they lie in the file; a weight has no tensor of
// scales.
//
//     Q4_K, 144 bytes: d (F16), dmin (F16), 12 bytes with 8 scales s and 8 minima m of 6 bits, 128 bytes of codes
//         w = d * s * code - dmin * m,        s and m of each 32 elements, codes 0 to 15
//     Q5_K, 176 bytes: as Q4_K, with 32 bytes before the codes: bit s of byte i is the fifth of element i of stretch s
//     Q6_K, 210 bytes: 128 bytes of low nibbles, 64 bytes of upper pairs of bits, 16 scales s (I8), d (F16)
//         w = d * s * (code - 32),            s of each 16 elements, codes 0 to 63
//     Q4_1, 20 bytes: d and m (F16), 16 bytes of codes: byte i has elements i and i + 16
//         w = d * code + m,                   codes 0 to 15
//     Q5_1, 24 bytes: d and m (F16), 32 bits with the fifth of each code, 16 bytes of codes as in Q4_1
//
// Products, sums and differences are made in float32 from left to right, each rounded, as the gguf package does.

#include "kernels/formats/packed_format.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kKQuantElements = 256; ///< of a block
inline constexpr std::int64_t kQ4KBytes = 144;
inline constexpr std::int64_t kQ5KBytes = 176;
inline constexpr std::int64_t kQ6KBytes = 210;
inline constexpr std::int64_t kQ1Elements = 32; ///< of a block of Q4_1 and Q5_1
inline constexpr std::int64_t kQ41Bytes = 20;
inline constexpr std::int64_t kQ51Bytes = 24;

/// Data are U8 (..., out, bytes of a row), of whole blocks.
const PackedFormat& q41Format();
const PackedFormat& q51Format();
const PackedFormat& q4kFormat();
const PackedFormat& q5kFormat();
const PackedFormat& q6kFormat();

} // namespace vitrine::kernels
