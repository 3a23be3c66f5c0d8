// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tensor maps, which sm_90 and later copy tiles by (cp.async.bulk.tensor).

#include <cstdint>
#include <span>

#include "kernels/core/dtype.h"

namespace vitrine::kernels {

/// A tensor of 16-bit numbers or of bytes of up to 5 dimensions, the innermost (contiguous) first; `strides` are
/// elements of dimensions 1 and up, multiples of 16 bytes.
struct TensorMapShape {
    const void* data = nullptr; ///< aligned to 16 bytes
    DType dtype = DType::BF16;
    std::span<const std::uint64_t> extents;
    std::span<const std::uint64_t> strides;
    std::span<const std::uint32_t>
        box; ///< the tile; box[0] is 64 numbers in the 128-byte swizzle, or bytes as they are
};

/// Writes the 128 bytes of a map. Throws Unsupported when the driver refuses the shape.
void encodeTensorMap(const TensorMapShape& shape, void* map);

} // namespace vitrine::kernels
