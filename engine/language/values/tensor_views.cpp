// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Views of constant tensors: the same storage under other dimensions and strides.
#include <algorithm>
#include <fmt/format.h>

#include "engine/language/values/strides.h"

namespace vitrine::engine {

PyTensor* viewOf(PyHeap& heap, const PyTensor& tensor) {
    auto* const made = heap.make<PyTensor>();
    made->dtype = tensor.dtype;
    made->dims = tensor.dims;
    made->strides = tensor.strides;
    made->offset = tensor.offset;
    made->storage = tensor.storage;
    made->name = tensor.name;
    made->literal = tensor.literal;
    made->gradient = tensor.gradient;
    return made;
}

int wrappedDim(std::int64_t dim, int rank) {
    const int bound = std::max(rank, 1);
    if (dim < -bound || dim >= bound) {
        throw base::BadInput(fmt::format("dimension {} of a tensor that has {}", dim, rank));
    }
    return static_cast<int>(dim < 0 ? dim + bound : dim);
}

PyTensor* reshapeTensor(PyHeap& heap, const PyTensor& tensor, TensorDims dims) {
    std::int64_t known = 1;
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] == -1 && !open) {
            open = i;
        } else {
            const bool fits = dims[i] >= 0 && dims[i] <= kMaxElements;
            known *= fits ? dims[i] : 1;
            if (!fits || known > kMaxElements) {
                throw base::BadInput(fmt::format("a dimension of {} elements", dims[i]));
            }
        }
    }
    if (open && known != 0) {
        dims[*open] = tensor.count() / known;
        known *= dims[*open];
    }
    if (known != tensor.count() || (open && dims[*open] < 0)) {
        throw base::BadInput(
            fmt::format("a tensor of shape {} does not fit shape ({})", tensor.shapeText(), fmt::join(dims, ", ")));
    }
    if (tensor.strides == contiguousStrides(tensor.dims)) {
        PyTensor* const made = viewOf(heap, tensor);
        made->strides = contiguousStrides(dims);
        made->dims = std::move(dims);
        return made;
    }
    PyTensor* const made = castTensor(heap, tensor, tensor.dtype);
    made->strides = contiguousStrides(dims);
    made->dims = std::move(dims);
    return made;
}

PyTensor* permuteTensor(PyHeap& heap, const PyTensor& tensor, const TensorDims& order) {
    PyTensor* const made = viewOf(heap, tensor);
    std::vector<bool> seen(tensor.dims.size(), false);
    if (order.size() != tensor.dims.size()) {
        throw base::BadInput(fmt::format("{} dimensions for a tensor that has {}", order.size(), tensor.rank()));
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
        const auto from = static_cast<std::size_t>(wrappedDim(order[i], tensor.rank()));
        if (seen[from]) {
            throw base::BadInput("a dimension is named twice");
        }
        seen[from] = true;
        made->dims[i] = tensor.dims[from];
        made->strides[i] = tensor.strides[from];
    }
    return made;
}

PyTensor* expandTensor(PyHeap& heap, const PyTensor& tensor, const TensorDims& dims) {
    if (dims.size() < tensor.dims.size()) {
        throw base::BadInput(fmt::format("{} dimensions for a tensor that has {}", dims.size(), tensor.rank()));
    }
    TensorDims wanted = dims;
    const std::size_t extra = dims.size() - tensor.dims.size();
    for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
        if (wanted[extra + i] == -1) {
            wanted[extra + i] = tensor.dims[i];
        }
    }
    if (broadcastDims(wanted, tensor.dims) != wanted) {
        throw base::BadInput(
            fmt::format("a tensor of shape {} does not expand to ({})", tensor.shapeText(), fmt::join(dims, ", ")));
    }
    heap.charge(checkedCount(wanted));
    PyTensor* const made = viewOf(heap, tensor);
    made->strides = broadcastStrides(tensor, wanted);
    made->dims = wanted;
    return made;
}

PyTensor* diagonalTensor(PyHeap& heap, const PyTensor& tensor, std::int64_t offset, int dim1, int dim2) {
    if (tensor.rank() < 2 || dim1 == dim2) {
        throw base::BadInput("a diagonal needs two dimensions");
    }
    const auto a = static_cast<std::size_t>(dim1);
    const auto b = static_cast<std::size_t>(dim2);
    offset = std::clamp(offset, -tensor.dims[a], tensor.dims[b]);
    const std::int64_t length = std::max<std::int64_t>(0, std::min(tensor.dims[a] + std::min<std::int64_t>(offset, 0),
                                                                   tensor.dims[b] - std::max<std::int64_t>(offset, 0)));
    PyTensor* const made = viewOf(heap, tensor);
    if (length > 0) {
        made->offset += offset >= 0 ? offset * tensor.strides[b] : -offset * tensor.strides[a];
    }
    const std::int64_t step = tensor.strides[a] + tensor.strides[b];
    for (const std::size_t gone : {std::max(a, b), std::min(a, b)}) {
        made->dims.erase(made->dims.begin() + static_cast<std::ptrdiff_t>(gone));
        made->strides.erase(made->strides.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    made->dims.push_back(length);
    made->strides.push_back(step);
    return made;
}

PyTensor* selectTensor(PyHeap& heap, const PyTensor& tensor, int dim, std::int64_t index) {
    const auto d = static_cast<std::size_t>(dim);
    const std::int64_t extent = tensor.dims.at(d);
    if (index < -extent || index >= extent) {
        throw base::BadInput(fmt::format("index {} of a dimension of {} elements", index, extent));
    }
    PyTensor* const made = viewOf(heap, tensor);
    made->offset += (index < 0 ? index + extent : index) * tensor.strides[d];
    made->dims.erase(made->dims.begin() + dim);
    made->strides.erase(made->strides.begin() + dim);
    return made;
}

PyTensor* sliceTensor(PyHeap& heap, const PyTensor& tensor, int dim, std::int64_t start, std::int64_t step,
                      std::int64_t count) {
    PyTensor* const made = viewOf(heap, tensor);
    const auto d = static_cast<std::size_t>(dim);
    made->offset += count > 0 ? start * tensor.strides[d] : 0;
    made->dims[d] = count;
    made->strides[d] *= step;
    return made;
}

PyTensor* unsqueezeTensor(PyHeap& heap, const PyTensor& tensor, int dim) {
    PyTensor* const made = viewOf(heap, tensor);
    made->dims.insert(made->dims.begin() + dim, 1);
    made->strides.insert(made->strides.begin() + dim, 0);
    static_cast<void>(checkedCount(made->dims));
    return made;
}

PyTensor* squeezeTensor(PyHeap& heap, const PyTensor& tensor, std::optional<int> dim) {
    PyTensor* const made = viewOf(heap, tensor);
    for (int d = tensor.rank() - 1; d >= 0; --d) {
        if (tensor.dims[static_cast<std::size_t>(d)] == 1 && (!dim || *dim == d)) {
            made->dims.erase(made->dims.begin() + d);
            made->strides.erase(made->strides.begin() + d);
        }
    }
    return made;
}

} // namespace vitrine::engine
