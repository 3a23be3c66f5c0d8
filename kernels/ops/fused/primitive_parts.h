// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the lists of primitives of block ops are put together from.

#include <algorithm>

#include "kernels/core/device_traits.h"
#include "kernels/ops/common/scratch_layout.h"
#include "kernels/ops/linear/linear_view.h"
#include "kernels/ops/linear/matmul.h"
#include "kernels/ops/rowwise/rms_norm.h"

namespace vitrine::kernels {

/// (tokens, a, b) seen as (tokens, a * b); rows may lie apart.
inline TensorView flatRows(const TensorView& tensor) {
    TensorView flat = tensor;
    flat.shape = Shape{tensor.shape[0], tensor.shape[1] * tensor.shape[2]};
    return flat;
}

/// (tokens, heads, headDim) seen as (tokens * heads, headDim).
inline TensorView headRows(const TensorView& tensor) {
    TensorView rows = tensor;
    rows.shape = Shape{tensor.shape[0] * tensor.shape[1], tensor.shape[2]};
    rows.strides = {};
    return rows;
}

inline RmsNorm normOf(const NormWeights& norm, const TensorView& x, const TensorView& out) {
    return RmsNorm{x, norm.weight, out, norm.eps, norm.form};
}

inline Matmul productOf(const LinearView& linear, const TensorView& x, const TensorView& out) {
    Matmul product;
    product.x = x;
    product.weight = linear.weight;
    product.bias = linear.bias;
    product.adapter = linear.adapter;
    product.out = out;
    return product;
}

/// What the caller keeps, or a piece of scratch.
inline TensorView keptOr(const TensorView& kept, ScratchLayout& layout, DType dtype, const Shape& shape) {
    return kept.empty() ? layout.take(dtype, shape) : kept;
}

/// One piece of scratch for products that run one after the other.
template <class... Products>
void shareScratch(ScratchLayout& layout, const DeviceTraits& traits, Products&... products) {
    const std::uint64_t bytes = std::max({scratch(products, traits)...});
    if (bytes == 0) {
        return;
    }
    const TensorView piece = layout.takeBytes(bytes);
    ((products.scratch = piece), ...);
}

} // namespace vitrine::kernels
