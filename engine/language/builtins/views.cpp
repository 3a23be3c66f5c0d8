// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// torch's functions that arrange the elements of constant tensors.
#include <fmt/format.h>

#include "engine/language/builtins/arguments.h"

namespace vitrine::engine {

namespace {

std::vector<const PyTensor*> tensorList(E& e, C& c) {
    std::vector<const PyTensor*> made;
    for (const PyValue item : e.containers.iterate(c.required(0, "tensors"))) {
        made.push_back(e.constants.tensor(item));
    }
    if (made.empty()) {
        fail("no tensors to join");
    }
    return made;
}

PyValue cat(E& e, C& c) {
    const std::vector<const PyTensor*> tensors = tensorList(e, c);
    int rank = 1;
    for (const PyTensor* const tensor : tensors) {
        rank = std::max(rank, tensor->rank());
    }
    const int dim = dimArgument(e, c, 1, rank).value_or(0);
    c.finish();
    return catTensors(e.heap, tensors, dim);
}

PyValue stack(E& e, C& c) {
    bool symbolic = false;
    const std::vector<PyValue> items = e.containers.iterate(c.required(0, "tensors"));
    for (const PyValue item : items) {
        symbolic = symbolic || item.isSymbol();
    }
    if (symbolic) {
        auto* const made = e.heap.make<PyArray>();
        made->dims = {static_cast<std::int64_t>(items.size())};
        made->narrow = e.symbols.narrowOf(items);
        for (const PyValue item : items) {
            made->elements.push_back(e.symbols.node(item));
        }
        return made;
    }
    std::vector<const PyTensor*> tensors = tensorList(e, c);
    const int dim = dimArgument(e, c, 1, tensors[0]->rank() + 1).value_or(0);
    c.finish();
    for (const PyTensor*& tensor : tensors) {
        if (dim > tensor->rank()) {
            fail("tensors of different shapes cannot be stacked");
        }
        tensor = unsqueezeTensor(e.heap, *tensor, dim);
    }
    return catTensors(e.heap, tensors, dim);
}

PyValue interleave(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    if (c.arguments.size() == 1 && !c.keyword("repeats")) {
        c.finish();
        std::vector<std::int64_t> positions(static_cast<std::size_t>(tensor.count()));
        for (std::size_t i = 0; i < positions.size(); ++i) {
            positions[i] = static_cast<std::int64_t>(i);
        }
        return repeatInterleave(e.heap, *fromIntegers(e.heap, DType::I64, positions), tensor, 0);
    }
    const PyTensor& repeats = *e.constants.tensorOf(e.convert.concrete(c.required(1, "repeats")), DType::I64);
    const std::optional<int> dim = dimArgument(e, c, 2, tensor.rank());
    static_cast<void>(c.keyword("output_size"));
    c.finish();
    return repeatInterleave(e.heap, tensor, repeats, dim);
}

/// Symbols of rank 0 have only one shape worth viewing them in.
bool isOne(E& e, C& c) {
    return c.required(0, "input").isSymbol() ||
           (dimsOf(c.required(0, "input")).empty() && isSymbolic(e, c.required(0, "input")));
}

PyValue view(E& e, C& c) {
    if (isOne(e, c)) {
        return inputItself(e, c);
    }
    if (c.arguments.size() == 2 && c.arguments[1].as<PyDtype>() != nullptr) {
        fail("reading a tensor's bits as another type is not supported; use .to(dtype)");
    }
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const TensorDims dims = dimsArgument(e, c, 1, "shape");
    c.finish();
    return reshapeTensor(e.heap, tensor, dims);
}

PyValue permute(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const TensorDims order = dimsArgument(e, c, 1, "dims");
    c.finish();
    return permuteTensor(e.heap, tensor, order);
}

PyValue transpose(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const bool isShort = c.arguments.size() == 1 && c.keywords.empty();
    if (isShort && tensor.rank() < 2) {
        return c.required(0, "input");
    }
    const int a = wrappedDim(isShort ? -2 : e.convert.integer(c.required(1, "dim0"), "a dimension"), tensor.rank());
    const int b = wrappedDim(isShort ? -1 : e.convert.integer(c.required(2, "dim1"), "a dimension"), tensor.rank());
    c.finish();
    TensorDims order(tensor.dims.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        order[i] = static_cast<int>(i) == a ? b : static_cast<int>(i) == b ? a : static_cast<int>(i);
    }
    return tensor.dims.empty() ? c.required(0, "input") : PyValue(permuteTensor(e.heap, tensor, order));
}

PyValue expand(E& e, C& c) {
    if (isOne(e, c)) {
        return inputItself(e, c);
    }
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const TensorDims dims = dimsArgument(e, c, 1, "size");
    c.finish();
    return expandTensor(e.heap, tensor, dims);
}

PyValue unsqueeze(E& e, C& c) {
    if (isOne(e, c)) {
        return inputItself(e, c);
    }
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const std::int64_t dim = e.convert.integer(c.required(1, "dim"), "a dimension");
    c.finish();
    return unsqueezeTensor(e.heap, tensor, wrappedDim(dim, tensor.rank() + 1));
}

PyValue squeeze(E& e, C& c) {
    if (isOne(e, c)) {
        return inputItself(e, c);
    }
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const std::optional<int> dim = dimArgument(e, c, 1, tensor.rank());
    c.finish();
    return squeezeTensor(e.heap, tensor, dim);
}

PyValue flattenOf(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const auto first = c.optional(1, "start_dim");
    const auto last = c.optional(2, "end_dim");
    c.finish();
    const int from = wrappedDim(first ? e.convert.integer(*first, "a dimension") : 0, tensor.rank());
    const int to = wrappedDim(last ? e.convert.integer(*last, "a dimension") : -1, tensor.rank());
    TensorDims dims;
    std::int64_t joined = 1;
    for (int d = 0; d < tensor.rank(); ++d) {
        if (d >= from && d <= to) {
            joined *= tensor.dims[static_cast<std::size_t>(d)];
        }
        if (d == to || (tensor.rank() > 0 && (d < from || d > to))) {
            dims.push_back(d == to ? joined : tensor.dims[static_cast<std::size_t>(d)]);
        }
    }
    return reshapeTensor(e.heap, tensor, tensor.dims.empty() ? TensorDims{1} : dims);
}

PyValue diagonal(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const auto offset = c.optional(1, "offset");
    const auto dim1 = c.optional(2, "dim1");
    const auto dim2 = c.optional(3, "dim2");
    c.finish();
    return diagonalTensor(e.heap, tensor, offset ? e.convert.integer(*offset, "the offset") : 0,
                          wrappedDim(dim1 ? e.convert.integer(*dim1, "a dimension") : 0, tensor.rank()),
                          wrappedDim(dim2 ? e.convert.integer(*dim2, "a dimension") : 1, std::max(tensor.rank(), 2)));
}

PyValue repeat(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const TensorDims times = dimsArgument(e, c, 1, "repeats");
    c.finish();
    return repeatTensor(e.heap, tensor, times);
}

PyValue flip(E& e, C& c) {
    const PyTensor* tensor = e.constants.tensor(c.required(0, "input"));
    const TensorDims dims = dimsArgument(e, c, 1, "dims");
    c.finish();
    for (const std::int64_t dim : dims) {
        const int d = wrappedDim(dim, tensor->rank());
        const std::int64_t extent = tensor->dims.at(static_cast<std::size_t>(d));
        tensor = sliceTensor(e.heap, *tensor, d, extent - 1, -1, extent);
    }
    return castTensor(e.heap, *tensor, tensor->dtype);
}

PyValue roll(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const std::int64_t shift = e.convert.integer(c.required(1, "shifts"), "the shift");
    const std::optional<int> dim = dimArgument(e, c, 2, tensor.rank());
    c.finish();
    const PyTensor& source = dim ? tensor : *reshapeTensor(e.heap, tensor, {tensor.count()});
    const int along = dim.value_or(0);
    const std::int64_t extent = source.dims.at(static_cast<std::size_t>(along));
    if (extent == 0) {
        return c.required(0, "input");
    }
    const std::int64_t cut = ((-(shift % extent)) % extent + extent) % extent;
    const std::array<const PyTensor*, 2> parts = {sliceTensor(e.heap, source, along, cut, 1, extent - cut),
                                                  sliceTensor(e.heap, source, along, 0, 1, cut)};
    return reshapeTensor(e.heap, *catTensors(e.heap, parts, along), tensor.dims);
}

template <bool Upper> PyValue triangleOf(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const auto at = c.optional(1, "diagonal");
    c.finish();
    return triangle(e.heap, tensor, at ? e.convert.integer(*at, "the diagonal") : 0, Upper);
}

PyValue difference(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const auto prepend = c.keyword("prepend");
    const auto append = c.keyword("append");
    c.finish();
    std::vector<const PyTensor*> parts;
    if (prepend && !prepend->isNone()) {
        parts.push_back(e.constants.tensor(*prepend));
    }
    parts.push_back(&tensor);
    if (append && !append->isNone()) {
        parts.push_back(e.constants.tensor(*append));
    }
    const int dim = wrappedDim(-1, tensor.rank());
    const PyTensor& all = *catTensors(e.heap, parts, dim);
    const std::int64_t count = std::max<std::int64_t>(0, all.dims.at(static_cast<std::size_t>(dim)) - 1);
    return e.elements.binary(tensor.dtype == DType::Bool ? ProgramOp::Xor : ProgramOp::Sub,
                             sliceTensor(e.heap, all, dim, 1, 1, count), sliceTensor(e.heap, all, dim, 0, 1, count));
}

PyValue outer(E& e, C& c) {
    const PyTensor& a = *e.constants.tensor(c.required(0, "input"));
    const PyTensor& b = *e.constants.tensor(c.required(1, "vec2"));
    c.finish();
    return e.elements.binary(ProgramOp::Mul, unsqueezeTensor(e.heap, a, a.rank()), const_cast<PyTensor*>(&b));
}

PyValue meshGrid(E& e, C& c) {
    const auto indexing = c.keyword("indexing");
    std::vector<const PyTensor*> axes;
    for (std::size_t i = 0; i < c.arguments.size(); ++i) {
        const PyValue axis = c.required(i, "");
        for (const PyValue item :
             axis.as<PySequence>() != nullptr ? e.containers.iterate(axis) : std::vector<PyValue>{axis}) {
            axes.push_back(e.constants.tensor(item));
        }
    }
    c.finish();
    // "xy": the first axis runs along the second dimension.
    const bool turned = indexing && e.convert.text(*indexing, "indexing") == "xy" && axes.size() > 1;
    const auto dimOf = [turned](std::size_t axis) { return turned && axis < 2 ? 1 - axis : axis; };
    TensorDims dims(axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
        dims[dimOf(i)] = axes[i]->count();
    }
    std::vector<PyValue> made;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        TensorDims own(dims.size(), 1);
        own[dimOf(i)] = axes[i]->count();
        made.emplace_back(expandTensor(e.heap, *reshapeTensor(e.heap, *axes[i], own), dims));
    }
    return e.heap.tuple(std::move(made));
}

PyValue indexSelect(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const int dim = wrappedDim(e.convert.integer(c.required(1, "dim"), "a dimension"), tensor.rank());
    const PyTensor* const picked = e.constants.tensor(c.required(2, "index"));
    c.finish();
    TensorDims order = {dim};
    TensorDims back;
    for (int d = 0; d < tensor.rank(); ++d) {
        if (d != dim) {
            order.push_back(d);
        }
        back.push_back(d < dim ? d + 1 : d == dim ? 0 : d);
    }
    return permuteTensor(e.heap, *gatherTensor(e.heap, *permuteTensor(e.heap, tensor, order), std::span(&picked, 1)),
                         back);
}

PyValue nonzero(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const auto tuple = c.keyword("as_tuple");
    c.finish();
    PyTensor* const made = nonzeroTensor(e.heap, tensor);
    if (!tuple || !e.convert.truth(*tuple)) {
        return made;
    }
    std::vector<PyValue> columns;
    columns.reserve(static_cast<std::size_t>(tensor.rank()));
    for (int d = 0; d < tensor.rank(); ++d) {
        columns.emplace_back(selectTensor(e.heap, *made, 1, d));
    }
    return e.heap.tuple(std::move(columns));
}

PyValue unbind(E& e, C& c) {
    if (const PyValue value = c.required(0, "input"); isSymbolic(e, value)) {
        const int rank = static_cast<int>(dimsOf(value).size());
        if (dimArgument(e, c, 1, rank).value_or(0) != 0) {
            fail("values that are known only for each element can be unbound along their first dimension only");
        }
        c.finish();
        return e.heap.tuple(e.containers.iterate(value));
    }
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const int dim = dimArgument(e, c, 1, tensor.rank()).value_or(0);
    c.finish();
    std::vector<PyValue> made;
    for (std::int64_t i = 0; i < tensor.dims.at(static_cast<std::size_t>(dim)); ++i) {
        e.evaluation.step();
        made.emplace_back(selectTensor(e.heap, tensor, dim, i));
    }
    return e.heap.tuple(std::move(made));
}

PyValue splitTensor(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const PyValue sizes = c.required(1, "split_size_or_sections");
    const int dim = dimArgument(e, c, 2, tensor.rank()).value_or(0);
    c.finish();
    const std::int64_t extent = tensor.dims.at(static_cast<std::size_t>(dim));
    std::vector<std::int64_t> counts;
    if (sizes.as<PySequence>() != nullptr) {
        for (const PyValue item : e.containers.iterate(sizes)) {
            counts.push_back(e.convert.integer(item, "a section"));
        }
    } else {
        const std::int64_t size = e.convert.integer(sizes, "a section");
        for (std::int64_t at = 0; at < extent && size > 0; at += size) {
            e.evaluation.step();
            counts.push_back(std::min(size, extent - at));
        }
    }
    std::vector<PyValue> made;
    std::int64_t at = 0;
    for (const std::int64_t count : counts) {
        if (count < 0 || count > extent - at) {
            fail("sections that do not fit the tensor");
        }
        made.emplace_back(sliceTensor(e.heap, tensor, dim, at, 1, count));
        at += count;
    }
    return e.heap.tuple(std::move(made));
}

PyValue pad(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const std::vector<PyValue> given = e.containers.iterate(c.required(1, "pad"));
    const auto mode = c.optional(2, "mode");
    const auto value = c.optional(3, "value");
    c.finish();
    if ((mode && e.convert.text(*mode, "mode") != "constant") || given.size() % 2 != 0 ||
        given.size() / 2 > tensor.dims.size()) {
        fail("pad() fills with a constant, with two numbers for each dimension from the last");
    }
    TensorDims dims = tensor.dims;
    TensorDims before(dims.size(), 0);
    for (std::size_t i = 0; i < given.size() / 2; ++i) {
        const std::size_t d = dims.size() - 1 - i;
        before[d] = e.convert.integer(given[2 * i], "a padding");
        const std::int64_t after = e.convert.integer(given[2 * i + 1], "a padding");
        if (before[d] < 0 || after < 0 || before[d] > kMaxElements || after > kMaxElements) {
            fail("a padding below 0 or too large");
        }
        dims[d] += before[d] + after;
    }
    PyTensor* const made = newTensor(e.heap, tensor.dtype, dims);
    assignTensor(*made, {nullptr, kernels::floatConstant(
                                      value && !value->isNone() ? e.convert.real(*value, "the padding's value") : 0)});
    PyTensor* inside = made;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        inside = sliceTensor(e.heap, *inside, static_cast<int>(d), before[d], 1, tensor.dims[d]);
    }
    assignTensor(*inside, {&tensor, {}});
    return made;
}

constexpr std::array kViews = std::to_array<BuiltinEntry>({
    {"torch.cat", cat},
    {"torch.concat", cat},
    {"torch.concatenate", cat},
    {"torch.stack", stack},
    {"torch.repeat_interleave", interleave},
    {"torch.nonzero", nonzero},
    {"torch.reshape", view},
    {"torch.view", view},
    {"torch.permute", permute},
    {"torch.transpose", transpose},
    {"torch.swapaxes", transpose},
    {"torch.swapdims", transpose},
    {"Tensor.t", transpose},
    {"torch.t", transpose},
    {"torch.expand", expand},
    {"torch.broadcast_to", expand},
    {"torch.expand_as",
     [](E& e, C& c) -> PyValue {
         return expandTensor(e.heap, *e.constants.tensor(c.required(0, "input")), dimsOf(c.required(1, "other")));
     }},
    {"torch.view_as",
     [](E& e, C& c) -> PyValue {
         return reshapeTensor(e.heap, *e.constants.tensor(c.required(0, "input")), dimsOf(c.required(1, "other")));
     }},
    {"torch.unsqueeze", unsqueeze},
    {"torch.squeeze", squeeze},
    {"torch.flatten", flattenOf},
    {"torch.ravel", flattenOf},
    {"torch.diagonal", diagonal},
    {"torch.repeat", repeat},
    {"torch.tile", repeat},
    {"torch.flip", flip},
    {"torch.roll", roll},
    {"torch.tril", triangleOf<false>},
    {"torch.triu", triangleOf<true>},
    {"torch.diff", difference},
    {"torch.outer", outer},
    {"torch.meshgrid", meshGrid},
    {"torch.index_select", indexSelect},
    {"torch.unbind", unbind},
    {"torch.split", splitTensor},
    {"torch.pad", pad},
});

} // namespace

std::span<const BuiltinEntry> viewBuiltins() {
    return kViews;
}

} // namespace vitrine::engine
