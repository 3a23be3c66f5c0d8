// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/core/tensor.h"

#include <algorithm>

#include "base/error.h"

namespace vitrine::kernels {

namespace {

void checkRank(std::size_t rank) {
    if (rank > static_cast<std::size_t>(kMaxRank)) {
        throw base::Internal("a tensor shape has more than five dimensions");
    }
}

} // namespace

Shape::Shape(std::initializer_list<std::int64_t> dims)
    : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
    checkRank(dims.size());
    std::copy(dims.begin(), dims.end(), dims_.begin());
}

std::int64_t Shape::count() const {
    std::int64_t product = 1;
    for (const std::int64_t dim : dims()) {
        product *= dim;
    }
    return product;
}

std::string Shape::text() const {
    std::string out = "(";
    for (int i = 0; i < rank_; ++i) {
        out += (i == 0 ? "" : ", ") + std::to_string((*this)[i]);
    }
    return out + ")";
}

std::int64_t TensorView::stride0() const {
    if (rowStride != 0 || shape.rank() == 0) {
        return rowStride;
    }
    std::int64_t product = 1;
    for (int i = 1; i < shape.rank(); ++i) {
        product *= shape[i];
    }
    return product;
}

std::uint64_t TensorView::bytes() const {
    return bytesOf(dtype, shape.count());
}

TensorView sliceRows(const TensorView& tensor, std::int64_t begin, std::int64_t end) {
    if (tensor.shape.rank() == 0 || begin < 0 || begin > end || end > tensor.shape[0]) {
        throw base::Internal("rows " + std::to_string(begin) + " to " + std::to_string(end) +
                             " are outside a tensor of shape " + tensor.shape.text());
    }
    std::array<std::int64_t, kMaxRank> dims{};
    std::copy(tensor.shape.dims().begin(), tensor.shape.dims().end(), dims.begin());
    dims[0] = end - begin;
    TensorView out = tensor;
    out.shape = Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(tensor.shape.rank())));
    out.data = static_cast<std::byte*>(tensor.data) + bytesOf(tensor.dtype, begin * tensor.stride0());
    return out;
}

TensorView reshaped(const TensorView& tensor, const Shape& shape) {
    if (tensor.shape.count() != shape.count() || (tensor.rowStride != 0 && !(tensor.shape == shape))) {
        throw base::Internal("a tensor of shape " + tensor.shape.text() + " cannot be seen as " + shape.text());
    }
    TensorView out = tensor;
    out.shape = shape;
    return out;
}

namespace {

/// Rows and columns of a dense matrix or a stack of them.
std::int64_t denseDim(const TensorView& tensor, int fromEnd) {
    return tensor.shape[tensor.shape.rank() - fromEnd];
}

} // namespace

std::int64_t WeightView::outFeatures() const {
    if (quantized()) {
        return mxfp4.scales.shape[mxfp4.scales.shape.rank() - 2];
    }
    return denseDim(dense, transposed ? 1 : 2);
}

std::int64_t WeightView::inFeatures() const {
    if (quantized()) {
        return mxfp4.scales.shape[mxfp4.scales.shape.rank() - 1] * 32;
    }
    return denseDim(dense, transposed ? 2 : 1);
}

std::int64_t WeightView::experts() const {
    const TensorView& tensor = quantized() ? mxfp4.scales : dense;
    return tensor.shape.rank() == 3 ? tensor.shape[0] : 1;
}

std::uint64_t WeightView::bytes() const {
    return quantized() ? mxfp4.blocks.bytes() + mxfp4.scales.bytes() : dense.bytes();
}

} // namespace vitrine::kernels
