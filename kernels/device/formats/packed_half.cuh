// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The formats that packed_rows multiplies: VT_W_FORMAT says which. A format brings
//
//   kBits    of an element
//   Eight    eight neighbouring elements of a row as they are stored
//   split    Eight as four pairs of bf16, exact but for a power of two
//   pairsOf  eight inputs of x, bf16, as pairs in the order of split, times a power of two
//   kUndo    times sums of products of these pairs: sums of elements times inputs
//   kBlocks  whether neighbouring rows may share scales
//   kOffset  whether elements have a zero; then minusSums<n> makes - n times the sum of all x of a piece of 32, in
//            units of sums, as (row 2 t, row 2 t + 1) of x, twice, for lane (g, t)

#include "device/abi/weight_format.h"

#if VT_W_FORMAT == VT_FORMAT_FP8
#include "device/formats/fp8_half.cuh"
#else
#include "device/formats/int4_half.cuh"
#endif

namespace vt {

#if VT_W_FORMAT == VT_FORMAT_FP8
using PackedHalf = Fp8Half;
#else
using PackedHalf = Int4Half;
#endif

} // namespace vt
