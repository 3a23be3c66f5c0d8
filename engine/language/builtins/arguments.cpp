// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/builtins/arguments.h"

namespace vitrine::engine {

bool isSymbolic(E& e, PyValue value) {
    const auto* const tensor = value.as<PyTensor>();
    return isTensorLike(value) &&
           (tensor == nullptr || (e.evaluation.inProgram && tensor->rank() == 0 && !tensor->literal));
}

std::optional<int> dimArgument(E& e, C& c, std::size_t index, int rank) {
    const auto given = c.optional(index, "dim");
    if (!given || given->isNone()) {
        return std::nullopt;
    }
    return wrappedDim(e.convert.integer(*given, "a dimension"), rank);
}

TensorDims dimsArgument(E& e, C& c, std::size_t from, std::string_view name) {
    std::vector<PyValue> items;
    if (const auto named = c.keyword(name)) {
        items = e.containers.iterate(*named);
    }
    for (std::size_t i = from; i < c.arguments.size(); ++i) {
        items.push_back(c.required(i, ""));
    }
    if (items.size() == 1 && items[0].as<PySequence>() != nullptr) {
        items = e.containers.iterate(items[0]);
    }
    TensorDims made;
    for (const PyValue item : items) {
        made.push_back(e.convert.integer(item, "a tensor's size or dimension"));
    }
    return made;
}

PyTensor& changeable(E& e, C& c) {
    PyTensor& tensor = *e.constants.tensor(c.required(0, "self"));
    if (e.evaluation.inProgram && !tensor.literal) {
        fail("a program cannot change a captured tensor; change it before, where it is made");
    }
    return tensor;
}

} // namespace vitrine::engine
