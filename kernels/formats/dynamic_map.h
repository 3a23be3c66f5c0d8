// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The dynamic maps of bitsandbytes (Dettmers 2016): 256 ascending floats up to 1, dense around zero, that an 8-bit code
// numbers. Each of seven decades below 1 is cut into a power of two of equal pieces, whose centres are values.

#include <array>

namespace vitrine::kernels {

using DynamicMap = std::array<float, 256>;

DynamicMap signedDynamicMap();   ///< from just above -1 to 1; as fine on both sides, and 0 is a value
DynamicMap unsignedDynamicMap(); ///< from 0 to 1

} // namespace vitrine::kernels
