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

std::int64_t TensorView::stride(int dim) const {
    const std::int64_t given = strides[static_cast<std::size_t>(dim)];
    if (given != 0) {
        return given;
    }
    std::int64_t product = 1;
    for (int i = dim + 1; i < shape.rank(); ++i) {
        product *= shape[i];
    }
    return product;
}

std::int64_t TensorView::stride0() const {
    return shape.rank() == 0 ? 0 : stride(0);
}

std::uint64_t TensorView::bytes() const {
    return bytesOf(dtype, shape.count());
}

bool TensorView::contiguous() const {
    if (strides == Strides{}) {
        return true;
    }
    std::int64_t product = 1;
    for (int dim = shape.rank() - 1; dim >= 0; --dim) {
        if (shape[dim] > 1 && stride(dim) != product) {
            return false;
        }
        product *= shape[dim];
    }
    return true;
}

TensorView slice(const TensorView& tensor, int dim, std::int64_t begin, std::int64_t end) {
    if (dim < 0 || dim >= tensor.shape.rank() || begin < 0 || begin > end || end > tensor.shape[dim]) {
        throw base::Internal((dim == 0 ? "rows " : "places ") + std::to_string(begin) + " to " + std::to_string(end) +
                             " are outside a tensor of shape " + tensor.shape.text());
    }
    std::array<std::int64_t, kMaxRank> dims{};
    std::copy(tensor.shape.dims().begin(), tensor.shape.dims().end(), dims.begin());
    dims[static_cast<std::size_t>(dim)] = end - begin;
    TensorView out = tensor;
    out.shape = Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(tensor.shape.rank())));
    for (int outer = 0; outer < dim; ++outer) { // what was contiguous has gaps now
        out.strides[static_cast<std::size_t>(outer)] = tensor.stride(outer);
    }
    out.data = static_cast<std::byte*>(tensor.data) + bytesOf(tensor.dtype, begin * tensor.stride(dim));
    return out;
}

TensorView sliceRows(const TensorView& tensor, std::int64_t begin, std::int64_t end) {
    return slice(tensor, 0, begin, end);
}

TensorView reshaped(const TensorView& tensor, const Shape& shape) {
    const auto given = [](std::int64_t stride) { return stride != 0; };
    const bool same = tensor.shape == shape;
    const bool plain = std::none_of(tensor.strides.begin(), tensor.strides.end(), given);
    const bool rowsApart = std::none_of(tensor.strides.begin() + 1, tensor.strides.end(), given) &&
                           tensor.shape.rank() > 0 && shape.rank() > 0 && tensor.shape[0] == shape[0];
    if (tensor.shape.count() != shape.count() || !(same || plain || rowsApart)) {
        throw base::Internal("a tensor of shape " + tensor.shape.text() + " cannot be seen as " + shape.text());
    }
    TensorView out = tensor;
    out.shape = shape;
    return out;
}

TensorView headsFirst(const TensorView& tensor) {
    TensorView out = tensor;
    out.shape = Shape{1, tensor.shape[1], tensor.shape[0], tensor.shape[2]};
    out.strides = {0, tensor.stride(1), tensor.stride(0), tensor.stride(2)};
    return out;
}

} // namespace vitrine::kernels
