// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/tensor_indexing.h"

#include <algorithm>
#include <fmt/format.h>

namespace vitrine::engine {

using kernels::DType;

namespace {

/// How many dimensions of the tensor an item takes.
std::size_t takes(PyValue item) {
    if (item.isNone() || item.kind() == PyValue::Kind::Ellipsis || item.kind() == PyValue::Kind::Bool) {
        return 0;
    }
    const auto* const tensor = item.as<PyTensor>();
    return tensor != nullptr && tensor->dtype == DType::Bool ? tensor->dims.size() : 1;
}

} // namespace

PyValue TensorIndexing::indexTensor(PyTensor& tensor, PyValue index) {
    std::vector<PyValue> items = indexItems(index);
    bool symbolic = false;
    bool plain = true;
    bool several = false;
    bool positions = true;
    for (PyValue& item : items) {
        if (item.isSymbol()) {
            if (const auto known = evaluation_.builder.integer(item.node())) {
                item = PyValue::integer(*known);
            }
        }
        const auto* const position = item.as<PyTensor>();
        const bool captured = position != nullptr && position->rank() == 0 && position->dtype != DType::Bool &&
                              evaluation_.inProgram && !position->literal;
        if (captured || (item.as<PySlider>() != nullptr && evaluation_.inProgram)) {
            item = PyValue::symbol(symbols_.node(item));
        }
        const bool vector = item.as<PyArray>() != nullptr || item.as<PyRow>() != nullptr;
        several = several || vector;
        positions = positions && (vector || item.isSymbol() || item.kind() == PyValue::Kind::Int ||
                                  (position != nullptr && position->dtype != DType::Bool));
        symbolic = symbolic || vector || item.isSymbol();
        plain = plain && (item.isSymbol() || item.kind() == PyValue::Kind::Int);
    }
    const bool mixed = symbolic && std::any_of(items.begin(), items.end(),
                                               [](PyValue item) { return item.as<PyTensor>() != nullptr; });
    if (several || (mixed && positions)) {
        if (!positions || items.size() != tensor.dims.size()) {
            fail("several values that are known only for each element index a tensor only together with one number or "
                 "one such list for each of its dimensions");
        }
        return symbols_.marked(narrowed(tensor.dtype), symbols_.broadcast(items, [&](std::span<const NodeIndex> nodes) {
            return symbols_.load(tensor, {nodes.begin(), nodes.end()});
        }));
    }
    // Inside a program, elements at constant places are loads too: the contents may change without a new program.
    const bool whole = items.size() == tensor.dims.size() && evaluation_.inProgram && !tensor.literal;
    if (plain && (symbolic || whole || !tensor.storage)) {
        std::vector<NodeIndex> indices;
        indices.reserve(items.size());
        for (const PyValue item : items) {
            indices.push_back(symbols_.node(item));
        }
        return symbols_.row(tensor, std::move(indices));
    }
    std::vector<int> dims;
    std::vector<PyValue> kept;
    PyTensor* view = constantView(tensor, items, dims, kept);
    if (symbolic) {
        return loadedView(*view, dims, kept);
    }
    return kept.empty() ? PyValue(view) : PyValue(gathered(*view, dims, kept));
}

PyValue TensorIndexing::indexArray(PyArray& symbols, PyValue index) {
    // The positions as a constant tensor: its indexing picks elements.
    std::vector<std::int64_t> positions(symbols.elements.size());
    for (std::size_t i = 0; i < positions.size(); ++i) {
        positions[i] = static_cast<std::int64_t>(i);
    }
    for (const PyValue item : indexItems(index)) {
        if (item.isSymbol() && !evaluation_.builder.integer(item.node())) {
            fail("values that are known only for each element cannot be indexed by another such value; index the "
                 "captured "
                 "tensor itself");
        }
    }
    PyTensor* const table =
        reshapeTensor(evaluation_.heap, *fromIntegers(evaluation_.heap, DType::I64, positions), symbols.dims);
    table->literal = true;
    const PyValue picked = indexTensor(*table, index);
    const PyTensor& chosen = *picked.as<PyTensor>();
    auto* const made = evaluation_.heap.make<PyArray>();
    made->dims = chosen.dims;
    made->narrow = symbols.narrow;
    for (const std::int64_t at : integersOf(chosen)) {
        made->elements.push_back(symbols.elements[static_cast<std::size_t>(at)]);
    }
    return symbols_.fromArray(made);
}

// The constant part of an index, as views. Dimensions that a symbol or an index tensor takes are kept whole: keptDims
// says which of the result they are.
PyTensor* TensorIndexing::constantView(PyTensor& tensor, std::span<const PyValue> items, std::vector<int>& keptDims,
                                       std::vector<PyValue>& kept) {
    std::size_t taken = 0;
    for (const PyValue item : items) {
        taken += takes(item);
    }
    if (taken > tensor.dims.size()) {
        fail(fmt::format("{} indices for a tensor of shape {}", taken, tensor.shapeText()));
    }
    PyTensor* view = viewOf(evaluation_.heap, tensor);
    int dim = 0;
    for (const PyValue item : items) {
        if (item.kind() == PyValue::Kind::Ellipsis) {
            dim += static_cast<int>(tensor.dims.size() - taken);
        } else if (item.isNone()) {
            view = unsqueezeTensor(evaluation_.heap, *view, dim++);
        } else if (const auto* const range = item.as<PySlice>()) {
            const SliceRange part = convert_.slice(*range, view->dims[static_cast<std::size_t>(dim)]);
            view = sliceTensor(evaluation_.heap, *view, dim++, part.start, part.step, part.count);
        } else if (item.kind() == PyValue::Kind::Int || item.as<PySlider>() != nullptr) {
            view = selectTensor(evaluation_.heap, *view, dim, convert_.integer(item, "an index"));
        } else if (item.isSymbol() || item.as<PyTensor>() != nullptr || item.as<PySequence>() != nullptr) {
            keptDims.push_back(dim);
            kept.push_back(item);
            dim += static_cast<int>(takes(item));
        } else {
            fail(fmt::format("a tensor cannot be indexed by {}", pyTypeName(item)));
        }
    }
    return view;
}

// Symbols beside slices: the symbols' dimensions go to the front, the rest is a row.
PyValue TensorIndexing::loadedView(PyTensor& view, std::span<const int> dims, std::span<const PyValue> kept) {
    TensorDims order;
    std::vector<NodeIndex> indices;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        if (!kept[i].isSymbol()) {
            fail("an index of both tensors and values known only for each element; index in two steps");
        }
        order.push_back(dims[i]);
        indices.push_back(kept[i].node());
    }
    for (int d = 0; d < view.rank(); ++d) {
        if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
            order.push_back(d);
        }
    }
    return symbols_.row(*permuteTensor(evaluation_.heap, view, order), std::move(indices));
}

// NumPy's "advanced indexing" with the index tensors side by side: their dimensions stand where the first of them
// stood.
PyTensor* TensorIndexing::gathered(PyTensor& view, std::span<const int> dims, std::span<const PyValue> kept) {
    std::vector<const PyTensor*> indices;
    TensorDims order, rest;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        const PyTensor* const position = constants_.tensorOf(kept[i], std::nullopt);
        if (position->dtype == DType::Bool) {
            const PyTensor* const places = nonzeroTensor(evaluation_.heap, *position);
            for (int d = 0; d < position->rank(); ++d) {
                if (position->dims[static_cast<std::size_t>(d)] !=
                    view.dims.at(static_cast<std::size_t>(dims[i]) + static_cast<std::size_t>(d))) {
                    fail(fmt::format("a mask of shape {} for a tensor of shape {}", position->shapeText(),
                                     view.shapeText()));
                }
                indices.push_back(selectTensor(evaluation_.heap, *places, 1, d));
                order.push_back(dims[i] + d);
            }
        } else {
            indices.push_back(position);
            order.push_back(dims[i]);
        }
    }
    const bool adjacent =
        std::adjacent_find(order.begin(), order.end(), [](auto a, auto b) { return b != a + 1; }) == order.end();
    const std::int64_t front = adjacent && !order.empty() ? order[0] : 0;
    for (std::int64_t d = 0; d < view.rank(); ++d) {
        if (std::find(order.begin(), order.end(), d) == order.end()) {
            rest.push_back(d);
        }
    }
    TensorDims all = order;
    all.insert(all.end(), rest.begin(), rest.end());
    PyTensor* const made = gatherTensor(evaluation_.heap, *permuteTensor(evaluation_.heap, view, all), indices);
    // The picked dimensions lead; they go after those that were before the first index.
    const std::int64_t lead = made->rank() - static_cast<std::int64_t>(rest.size());
    TensorDims placed;
    for (std::int64_t d = 0; d < front; ++d) {
        placed.push_back(lead + d);
    }
    for (std::int64_t d = 0; d < lead; ++d) {
        placed.push_back(d);
    }
    for (std::int64_t d = lead + front; d < made->rank(); ++d) {
        placed.push_back(d);
    }
    return permuteTensor(evaluation_.heap, *made, placed);
}

void TensorIndexing::assign(PyTensor& tensor, const std::vector<PyValue>& items, PyValue value) {
    std::vector<int> dims;
    std::vector<PyValue> kept;
    PyTensor* const view = constantView(tensor, items, dims, kept);
    const TensorOperand source = value.as<PySequence>() != nullptr
                                     ? TensorOperand{constants_.tensorOf(value, tensor.dtype), {}}
                                     : elements_.operand(value);
    if (kept.empty()) {
        assignTensor(*view, source);
        return;
    }
    // Through the positions: the same index picks storage places of a table of them.
    PyTensor* const table = newTensor(evaluation_.heap, DType::I64, view->dims);
    std::int64_t i = 0;
    for (const std::int64_t at : offsetsOf(*view)) {
        setElement(*table, i++, kernels::intConstant(kernels::ProgramType::Int64, at));
    }
    const PyTensor* const places = gathered(*table, dims, kept);
    PyTensor* const values = newTensor(evaluation_.heap, tensor.dtype, places->dims);
    assignTensor(*values, source);
    const std::vector<kernels::ProgramConstant> elements = elementsOf(*values);
    std::size_t k = 0;
    for (const std::int64_t at : integersOf(*places)) {
        setElement(tensor, at, elements[k++]);
    }
}

std::vector<PyValue> indexItems(PyValue index) {
    const auto* const tuple = index.as<PySequence>();
    return tuple != nullptr && tuple->kind == PyKind::Tuple ? tuple->items : std::vector<PyValue>{index};
}

} // namespace vitrine::engine
