// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// torch's functions that stack, cut and turn constant tensors, made of views.
#include <fmt/format.h>

#include "engine/language/builtins/arguments.h"

namespace vitrine::engine {

namespace {

int dimOf(E& e, PyValue value, const PyTensor& tensor) {
    return wrappedDim(e.convert.integer(value, "a dimension"), tensor.rank());
}

/// Tensors one below the other (Rows) or side by side, vectors as rows or columns.
template <bool Rows> PyValue stacked(E& e, C& c) {
    std::vector<const PyTensor*> tensors;
    for (const PyValue item : e.containers.iterate(c.required(0, "tensors"))) {
        const PyTensor* tensor = e.constants.tensor(item);
        for (int missing = tensor->rank(); missing < 2; ++missing) {
            tensor = unsqueezeTensor(e.heap, *tensor, Rows ? 0 : tensor->rank());
        }
        tensors.push_back(tensor);
    }
    c.finish();
    if (tensors.empty()) {
        fail("no tensors to join");
    }
    return catTensors(e.heap, tensors, Rows ? 0 : 1);
}

PyValue sideBySide(E& e, C& c) {
    std::vector<const PyTensor*> tensors;
    for (const PyValue item : e.containers.iterate(c.required(0, "tensors"))) {
        tensors.push_back(e.constants.tensor(item));
    }
    c.finish();
    if (tensors.empty()) {
        fail("no tensors to join");
    }
    return catTensors(e.heap, tensors, tensors[0]->rank() > 1 ? 1 : 0);
}

PyValue kronecker(E& e, C& c) {
    const PyTensor& a = *e.constants.tensor(c.required(0, "input"));
    const PyTensor& b = *e.constants.tensor(c.required(1, "other"));
    c.finish();
    if (a.rank() != b.rank()) {
        fail("kron() takes two tensors of as many dimensions");
    }
    TensorDims outer, inner, joined;
    for (std::size_t d = 0; d < a.dims.size(); ++d) {
        outer.insert(outer.end(), {a.dims[d], 1});
        inner.insert(inner.end(), {1, b.dims[d]});
        joined.push_back(a.dims[d] * b.dims[d]);
    }
    const PyTensor* const left = reshapeTensor(e.heap, a, outer);
    const PyTensor* const right = reshapeTensor(e.heap, b, inner);
    return reshapeTensor(e.heap, *elementwise(e.heap, ProgramOp::Mul, {left, {}}, {right, {}}), joined);
}

/// Pieces of one size, the last may be smaller (chunk), or of sizes that differ by one (tensor_split).
template <bool Even> PyValue pieces(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const std::int64_t count = e.convert.integer(c.required(1, Even ? "sections" : "chunks"), "the number of pieces");
    const int dim = dimArgument(e, c, 2, tensor.rank()).value_or(0);
    c.finish();
    if (tensor.rank() == 0 || count < 1 || count > kMaxElements) {
        fail("a tensor with dimensions is cut into one or more pieces");
    }
    const std::int64_t extent = tensor.dims[static_cast<std::size_t>(dim)];
    const std::int64_t size = (extent + count - 1) / count;
    std::vector<PyValue> made;
    for (std::int64_t i = 0, at = 0; i < count && (Even || at < extent); ++i) {
        e.evaluation.step();
        const std::int64_t own = Even ? extent / count + (i < extent % count ? 1 : 0) : std::min(size, extent - at);
        made.emplace_back(sliceTensor(e.heap, tensor, dim, at, 1, own));
        at += own;
    }
    return e.heap.tuple(std::move(made));
}

PyValue narrow(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const int dim = dimOf(e, c.required(1, "dim"), tensor);
    const std::int64_t start = e.convert.integer(c.required(2, "start"), "the start");
    const std::int64_t length = e.convert.integer(c.required(3, "length"), "the length");
    c.finish();
    const std::int64_t extent = tensor.rank() == 0 ? 0 : tensor.dims[static_cast<std::size_t>(dim)];
    if (tensor.rank() == 0 || start < 0 || length < 0 || start > extent || length > extent - start) {
        fail(fmt::format("narrow() from {} by {} of {} elements", start, length, extent));
    }
    return sliceTensor(e.heap, tensor, dim, start, 1, length);
}

PyValue select(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const int dim = dimOf(e, c.required(1, "dim"), tensor);
    const std::int64_t index = e.convert.integer(c.required(2, "index"), "the index");
    c.finish();
    const std::int64_t extent = tensor.rank() == 0 ? 0 : tensor.dims[static_cast<std::size_t>(dim)];
    if (index < -extent || index >= extent) {
        fail(fmt::format("index {} of a dimension of {} elements", index, extent));
    }
    return selectTensor(e.heap, tensor, dim, index < 0 ? index + extent : index);
}

PyValue moveDim(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const int from = dimOf(e, c.required(1, "source"), tensor);
    const int to = dimOf(e, c.required(2, "destination"), tensor);
    c.finish();
    TensorDims order;
    for (int d = 0; d < tensor.rank(); ++d) {
        if (d != from) {
            order.push_back(d);
        }
    }
    order.insert(order.begin() + std::min<std::ptrdiff_t>(to, static_cast<std::ptrdiff_t>(order.size())), from);
    return tensor.rank() == 0 ? c.required(0, "input") : PyValue(permuteTensor(e.heap, tensor, order));
}

/// One dimension as several.
PyValue unflatten(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const int dim = dimOf(e, c.required(1, "dim"), tensor);
    TensorDims sizes;
    for (const PyValue item : e.containers.iterate(c.required(2, "sizes"))) {
        sizes.push_back(e.convert.integer(item, "a size"));
    }
    c.finish();
    if (tensor.rank() == 0) {
        fail("a tensor without dimensions has none to divide");
    }
    constexpr std::int64_t kMost = 1LL << 40;
    const auto at = static_cast<std::size_t>(dim);
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        std::int64_t others = 1;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            others = i == d ? others : std::min(others * std::clamp<std::int64_t>(sizes[i], 1, 1 << 20), kMost);
        }
        sizes[d] = sizes[d] < 0 ? tensor.dims[at] / others : sizes[d];
    }
    TensorDims dims = tensor.dims;
    dims.erase(dims.begin() + dim);
    dims.insert(dims.begin() + dim, sizes.begin(), sizes.end());
    return reshapeTensor(e.heap, tensor, dims);
}

/// By quarter turns from the first of two dimensions to the second.
PyValue rotated(E& e, C& c) {
    const PyTensor* tensor = e.constants.tensor(c.required(0, "input"));
    const auto turns = c.optional(1, "k");
    const auto given = c.optional(2, "dims");
    c.finish();
    const std::vector<PyValue> dims =
        given ? e.containers.iterate(*given) : std::vector<PyValue>{PyValue::integer(0), PyValue::integer(1)};
    if (dims.size() != 2 || tensor->rank() < 2) {
        fail("rot90() turns between two dimensions");
    }
    const int a = dimOf(e, dims[0], *tensor);
    const int b = dimOf(e, dims[1], *tensor);
    TensorDims order;
    for (int d = 0; d < tensor->rank(); ++d) {
        order.push_back(d == a ? b : d == b ? a : d);
    }
    const std::int64_t quarter = turns ? ((e.convert.integer(*turns, "k") % 4) + 4) % 4 : 1;
    for (std::int64_t i = 0; i < quarter; ++i) {
        const std::int64_t extent = tensor->dims[static_cast<std::size_t>(b)];
        tensor = permuteTensor(e.heap, *sliceTensor(e.heap, *tensor, b, extent - 1, -1, extent), order);
    }
    return castTensor(e.heap, *tensor, tensor->dtype);
}

/// Every choice of one element of each vector, a row for each.
PyValue cartesian(E& e, C& c) {
    TensorDims dims;
    std::vector<const PyTensor*> axes;
    for (std::size_t i = 0; i < c.arguments.size(); ++i) {
        axes.push_back(e.constants.tensor(c.required(i, "")));
        dims.push_back(axes.back()->count());
    }
    c.finish();
    if (axes.size() < 2) {
        fail("cartesian_prod() of two or more vectors");
    }
    std::vector<const PyTensor*> columns;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        TensorDims own(dims.size(), 1);
        own[i] = dims[i];
        const PyTensor* const wide = expandTensor(e.heap, *reshapeTensor(e.heap, *axes[i], own), dims);
        columns.push_back(reshapeTensor(e.heap, *wide, {wide->count(), 1}));
    }
    return catTensors(e.heap, columns, 1);
}

/// The lower one of an even number.
PyValue median(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    c.finish();
    if (tensor.count() == 0) {
        fail("the median of no elements");
    }
    const PyTensor* const flat = reshapeTensor(e.heap, tensor, {tensor.count()});
    const PyTensor* const sorted = sortTensor(e.heap, *flat, 0, false).first;
    return selectTensor(e.heap, *sorted, 0, (tensor.count() - 1) / 2);
}

PyValue countNonzero(E& e, C& c) {
    const PyValue value = e.elements.cast(kernels::DType::Bool, c.required(0, "input"));
    C sum;
    sum.arguments = {value};
    if (const auto dim = c.optional(1, "dim")) {
        sum.arguments.push_back(*dim);
    }
    c.finish();
    return e.caller.callBuiltin("torch.sum", sum);
}

PyValue fillDiagonal(E& e, C& c) {
    PyTensor& tensor = changeable(e, c);
    const double value = e.convert.real(c.required(1, "fill_value"), "the value");
    c.finish();
    if (tensor.rank() != 2) {
        fail("fill_diagonal_() changes a matrix");
    }
    assignTensor(*diagonalTensor(e.heap, tensor, 0, 0, 1), {nullptr, kernels::floatConstant(value)});
    return c.required(0, "self");
}

PyValue indexPut(E& e, C& c) {
    PyTensor& tensor = changeable(e, c);
    const std::vector<PyValue> indices = e.containers.iterate(c.required(1, "indices"));
    const PyValue values = c.required(2, "values");
    const auto adds = c.optional(3, "accumulate");
    c.finish();
    if (adds && e.convert.truth(*adds)) {
        fail("index_put_() with accumulate is not supported; use scatter_add_()");
    }
    e.containers.assignItem(&tensor, e.heap.tuple(indices), values);
    return c.required(0, "self");
}

constexpr std::array kLayouts = std::to_array<BuiltinEntry>({
    {"torch.vstack", stacked<true>},
    {"torch.row_stack", stacked<true>},
    {"torch.column_stack", stacked<false>},
    {"torch.hstack", sideBySide},
    {"torch.kron", kronecker},
    {"torch.chunk", pieces<false>},
    {"torch.tensor_split", pieces<true>},
    {"torch.narrow", narrow},
    {"torch.select", select},
    {"torch.movedim", moveDim},
    {"torch.moveaxis", moveDim},
    {"torch.unflatten", unflatten},
    {"torch.rot90", rotated},
    {"torch.cartesian_prod", cartesian},
    {"torch.median", median},
    {"torch.count_nonzero", countNonzero},
    {"Tensor.fill_diagonal_", fillDiagonal},
    {"Tensor.index_put_", indexPut},
});

} // namespace

std::span<const BuiltinEntry> layoutBuiltins() {
    return kLayouts;
}

} // namespace vitrine::engine
