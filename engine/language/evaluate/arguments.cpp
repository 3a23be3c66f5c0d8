// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/arguments.h"

namespace vitrine::engine {

bool isSymbolic(ModEvaluator& e, ModValue value) {
    const auto* const tensor = value.as<ModTensor>();
    return e.isTensorLike(value) && (tensor == nullptr || (e.inProgram() && tensor->rank() == 0 && !tensor->literal));
}

std::optional<int> dimArgument(ModEvaluator& e, ModCall& c, std::size_t index, int rank) {
    const auto given = c.optional(index, "dim");
    if (!given || given->isNone()) {
        return std::nullopt;
    }
    return wrappedDim(e.integer(*given, "a dimension"), rank);
}

ModDims dimsArgument(ModEvaluator& e, ModCall& c, std::size_t from, std::string_view name) {
    std::vector<ModValue> items;
    if (const auto named = c.keyword(name)) {
        items = e.iterate(*named);
    }
    for (std::size_t i = from; i < c.arguments.size(); ++i) {
        items.push_back(c.required(i, ""));
    }
    if (items.size() == 1 && items[0].as<ModSequence>() != nullptr) {
        items = e.iterate(items[0]);
    }
    ModDims made;
    for (const ModValue item : items) {
        made.push_back(e.integer(item, "a tensor's size or dimension"));
    }
    return made;
}

ModTensor& changeable(ModEvaluator& e, ModCall& c) {
    ModTensor& tensor = *e.tensor(c.required(0, "self"));
    if (e.inProgram() && !tensor.literal) {
        ModEvaluator::fail("a program cannot change a captured tensor; change it before, where it is made");
    }
    return tensor;
}

} // namespace vitrine::engine
