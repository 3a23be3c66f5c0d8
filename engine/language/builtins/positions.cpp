// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Elements of constant tensors picked and changed along one dimension: gather, scatter and their like.
#include <fmt/format.h>

#include "engine/language/builtins/arguments.h"

namespace vitrine::engine {

namespace {

/// Storage places of `tensor`, one for each element of `index`, whose values replace the position along `dim`.
std::vector<std::int64_t> placesOf(const PyTensor& tensor, int dim, const PyTensor& index) {
    if (index.rank() != tensor.rank()) {
        throw base::BadInput(fmt::format("an index of shape {} for a tensor of shape {}; both need as many dimensions",
                                         index.shapeText(), tensor.shapeText()));
    }
    for (int d = 0; d < index.rank(); ++d) {
        const auto at = static_cast<std::size_t>(d);
        if (d != dim && index.dims[at] > tensor.dims[at]) {
            throw base::BadInput(fmt::format("an index of shape {} reaches outside a tensor of shape {}",
                                             index.shapeText(), tensor.shapeText()));
        }
    }
    std::vector<std::int64_t> places;
    std::int64_t flat = 0;
    for (const std::int64_t value : integersOf(index)) {
        std::int64_t rest = flat++;
        std::int64_t place = tensor.offset;
        for (std::size_t d = index.dims.size(); d-- > 0;) {
            const std::int64_t own = rest % index.dims[d];
            rest /= index.dims[d];
            const bool along = static_cast<int>(d) == dim;
            if (along && (value < 0 || value >= tensor.dims[d])) {
                throw base::BadInput(fmt::format("index {} of a dimension of {} elements", value, tensor.dims[d]));
            }
            place += (along ? value : own) * tensor.strides[d];
        }
        places.push_back(place);
    }
    return places;
}

PyValue gather(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const int dim = wrappedDim(e.convert.integer(c.required(1, "dim"), "a dimension"), tensor.rank());
    const PyTensor& index = *e.constants.tensor(c.required(2, "index"));
    c.finish();
    PyTensor* const made = newTensor(e.heap, tensor.dtype, index.dims);
    made->literal = tensor.literal && index.literal;
    std::int64_t at = 0;
    for (const std::int64_t place : placesOf(tensor, dim, index)) {
        setElement(*made, at++, elementAt(tensor, place));
    }
    return made;
}

/// target[index[i] along dim] = source[i], or += with Add.
void scatterInto(E& e, C& c, PyTensor& target, ProgramOp op) {
    const int dim = wrappedDim(e.convert.integer(c.required(1, "dim"), "a dimension"), target.rank());
    const PyTensor& index = *e.constants.tensor(c.required(2, "index"));
    const auto number = c.keyword("value");
    const PyValue source = number ? *number : c.required(3, "src");
    c.finish();
    const PyTensor* const values = source.as<PyTensor>();
    std::vector<std::int64_t> from;
    if (values != nullptr && values->rank() > 0) {
        // The source is read at the positions of the index.
        const PyTensor* view = values;
        if (view->rank() != index.rank()) {
            fail("src needs as many dimensions as the index");
        }
        for (int d = 0; d < index.rank(); ++d) {
            const std::int64_t count = index.dims[static_cast<std::size_t>(d)];
            if (count > view->dims[static_cast<std::size_t>(d)]) {
                fail("src is smaller than the index");
            }
            view = sliceTensor(e.heap, *view, d, 0, 1, count);
        }
        from = offsetsOf(*view);
    }
    const ProgramConstant scalar =
        from.empty() ? kernels::floatConstant(e.convert.real(source, "the value")) : ProgramConstant();
    std::size_t i = 0;
    for (const std::int64_t place : placesOf(target, dim, index)) {
        e.evaluation.step();
        ProgramConstant value = from.empty() ? scalar : elementAt(*values, from[i]);
        if (op == ProgramOp::Add) {
            const ProgramConstant before = elementAt(target, place);
            value = kernels::foldTyped(op, before, kernels::foldCast(before.type, value));
        }
        setElement(target, place, value);
        ++i;
    }
}

template <ProgramOp Op> PyValue scatterInPlace(E& e, C& c) {
    scatterInto(e, c, changeable(e, c), Op);
    return c.required(0, "self");
}

template <ProgramOp Op> PyValue scatter(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    PyTensor* const made = castTensor(e.heap, tensor, tensor.dtype);
    scatterInto(e, c, *made, Op);
    return made;
}

PyValue indexFill(E& e, C& c) {
    PyTensor& tensor = changeable(e, c);
    const int dim = wrappedDim(e.convert.integer(c.required(1, "dim"), "a dimension"), tensor.rank());
    const PyTensor& index = *e.constants.tensor(c.required(2, "index"));
    const double value = e.convert.real(c.required(3, "value"), "the value");
    c.finish();
    for (const std::int64_t at : integersOf(index)) {
        const std::int64_t extent = tensor.dims[static_cast<std::size_t>(dim)];
        if (at < -extent || at >= extent) {
            fail(fmt::format("index {} of a dimension of {} elements", at, extent));
        }
        assignTensor(*selectTensor(e.heap, tensor, dim, at < 0 ? at + extent : at),
                     {nullptr, kernels::floatConstant(value)});
    }
    return c.required(0, "self");
}

/// Ones at the positions that the last dimension of the result is indexed by.
PyValue oneHot(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "tensor"));
    const auto given = c.optional(1, "num_classes");
    c.finish();
    const std::vector<std::int64_t> values = integersOf(tensor);
    std::int64_t classes = given ? e.convert.integer(*given, "num_classes") : -1;
    if (classes < 0) {
        for (const std::int64_t value : values) {
            classes = std::max(classes, value + 1);
        }
    }
    TensorDims dims = tensor.dims;
    dims.push_back(std::clamp<std::int64_t>(classes, 0, kMaxElements + 1));
    PyTensor* const made = newTensor(e.heap, kernels::DType::I64, dims);
    std::int64_t row = 0;
    for (const std::int64_t value : values) {
        if (value < 0 || value >= classes) {
            fail(fmt::format("one_hot() of {} with {} classes", value, classes));
        }
        setElement(*made, row++ * classes + value, kernels::intConstant(kernels::ProgramType::Int64, 1));
    }
    return made;
}

/// Rows and columns of a triangle, (2, count).
template <bool Upper> PyValue triangleIndices(E& e, C& c) {
    const std::int64_t rows = e.convert.integer(c.required(0, "row"), "the number of rows");
    const std::int64_t columns = e.convert.integer(c.required(1, "col"), "the number of columns");
    const auto given = c.optional(2, "offset");
    const std::int64_t offset = given ? e.convert.integer(*given, "the offset") : 0;
    static_cast<void>(c.keyword("dtype"));
    c.finish();
    if (rows < 0 || columns < 0 || (columns > 0 && rows > kMaxElements / columns)) {
        fail(fmt::format("a triangle of {} x {} elements", rows, columns));
    }
    e.heap.charge(rows * columns);
    std::vector<std::int64_t> first, second;
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
            if (Upper ? column - row >= offset : column - row <= offset) {
                first.push_back(row);
                second.push_back(column);
            }
        }
    }
    const auto count = static_cast<std::int64_t>(first.size());
    first.insert(first.end(), second.begin(), second.end());
    return reshapeTensor(e.heap, *fromIntegers(e.heap, kernels::DType::I64, first), {2, count});
}

PyValue blockDiagonal(E& e, C& c) {
    TensorDims dims = {0, 0};
    std::vector<const PyTensor*> blocks;
    auto dtype = kernels::DType::None;
    for (std::size_t i = 0; i < c.arguments.size(); ++i) {
        const PyTensor* block = e.constants.tensor(c.required(i, ""));
        if (block->rank() > 2) {
            fail("block_diag() takes matrices");
        }
        for (int missing = block->rank(); missing < 2; ++missing) {
            block = unsqueezeTensor(e.heap, *block, 0);
        }
        dtype = dtype == kernels::DType::None ? block->dtype : promoted(dtype, block->dtype);
        dims[0] += block->dims[0];
        dims[1] += block->dims[1];
        blocks.push_back(block);
    }
    c.finish();
    PyTensor* const made = newTensor(e.heap, dtype == kernels::DType::None ? kernels::DType::F32 : dtype, dims);
    std::int64_t row = 0;
    std::int64_t column = 0;
    for (const PyTensor* const block : blocks) {
        PyTensor* const part =
            sliceTensor(e.heap, *sliceTensor(e.heap, *made, 0, row, 1, block->dims[0]), 1, column, 1, block->dims[1]);
        assignTensor(*part, {block, {}});
        row += block->dims[0];
        column += block->dims[1];
    }
    return made;
}

constexpr std::array kPositions = std::to_array<BuiltinEntry>({
    {"torch.gather", gather},
    {"torch.scatter", scatter<ProgramOp::Constant>},
    {"torch.scatter_add", scatter<ProgramOp::Add>},
    {"torch.one_hot", oneHot},
    {"torch.tril_indices", triangleIndices<false>},
    {"torch.triu_indices", triangleIndices<true>},
    {"torch.block_diag", blockDiagonal},
    {"Tensor.scatter_", scatterInPlace<ProgramOp::Constant>},
    {"Tensor.scatter_add_", scatterInPlace<ProgramOp::Add>},
    {"Tensor.index_fill_", indexFill},
});

} // namespace

std::span<const BuiltinEntry> positionBuiltins() {
    return kPositions;
}

} // namespace vitrine::engine
