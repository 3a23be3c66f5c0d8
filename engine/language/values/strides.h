// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where the elements of a constant tensor lie in its storage: pure functions of dimensions and strides (in elements).

#include "engine/language/values/tensor.h"

namespace vitrine::engine {

/// Of a row-major tensor without gaps.
TensorDims contiguousStrides(const TensorDims& dims);
/// Of a view that repeats the tensor over `dims`, to which it broadcasts.
TensorDims broadcastStrides(const PyTensor& tensor, const TensorDims& dims);
/// Elements of a tensor of these dimensions. Throws BadInput for negative dimensions, too many of them or too many
/// elements.
std::int64_t checkedCount(const TensorDims& dims);
/// Storage indices of the first `count` elements, row-major, from `offset` on.
std::vector<std::int64_t> storageIndices(const TensorDims& dims, const TensorDims& strides, std::int64_t offset,
                                         std::int64_t count);

} // namespace vitrine::engine
