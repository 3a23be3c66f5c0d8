// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/values/strides.h"

#include <fmt/format.h>

namespace vitrine::engine {

namespace {

constexpr int kMaxTensorRank = 8;

} // namespace

TensorDims contiguousStrides(const TensorDims& dims) {
    TensorDims strides(dims.size(), 1);
    for (std::size_t i = dims.size(); i-- > 1;) {
        strides[i - 1] = strides[i] * dims[i];
    }
    return strides;
}

std::int64_t checkedCount(const TensorDims& dims) {
    if (dims.size() > static_cast<std::size_t>(kMaxTensorRank)) {
        throw base::BadInput(fmt::format("a tensor of more than {} dimensions", kMaxTensorRank));
    }
    std::int64_t count = 1;
    bool empty = false;
    for (const std::int64_t dim : dims) {
        if (dim < 0) {
            throw base::BadInput(fmt::format("a dimension of {} elements", dim));
        }
        empty = empty || dim == 0;
        // Both factors are at most kMaxElements, so the product cannot overflow.
        count *= dim > 0 && dim <= kMaxElements ? dim : 1;
        if (dim > kMaxElements || count > kMaxElements) {
            throw base::BadInput(fmt::format(
                "a tensor of more than {} elements; bind large tensors by a safetensors file", kMaxElements));
        }
    }
    return empty ? 0 : count;
}

std::vector<std::int64_t> storageIndices(const TensorDims& dims, const TensorDims& strides, std::int64_t offset,
                                         std::int64_t count) {
    std::vector<std::int64_t> made;
    made.reserve(static_cast<std::size_t>(count));
    TensorDims index(dims.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
        made.push_back(offset);
        for (std::size_t d = dims.size(); d-- > 0;) {
            offset += strides[d];
            if (++index[d] < dims[d]) {
                break;
            }
            offset -= strides[d] * dims[d];
            index[d] = 0;
        }
    }
    return made;
}

TensorDims broadcastStrides(const PyTensor& tensor, const TensorDims& dims) {
    TensorDims strides(dims.size(), 0);
    const std::size_t extra = dims.size() - tensor.dims.size();
    for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
        strides[extra + d] = tensor.dims[d] == 1 ? 0 : tensor.strides[d];
    }
    return strides;
}

} // namespace vitrine::engine
