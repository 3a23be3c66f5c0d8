// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FP8 weights: E4M3 bytes (OCP FP8), row by row, with a scale for a block of `rowGroup` outputs by `group` inputs:
//
//     w[o, i] = e4m3[o, i] * scale[o / rowGroup, i / group]
//
// DeepSeek-V3 has blocks of 128 by 128. A scale for a whole tensor is a block that covers it. Scales are F32, BF16 or
// F16, and there are no zeros. The product is made in float32.

#include "kernels/formats/packed_format.h"

namespace vitrine::kernels {

const PackedFormat& fp8Format();

} // namespace vitrine::kernels
