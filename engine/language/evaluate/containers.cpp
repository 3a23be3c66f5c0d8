// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/containers.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/language/evaluate/attributes.h"
#include "engine/language/evaluate/operators.h"

namespace vitrine::engine {

PyValue PyContainers::index(PyValue object, PyValue index) {
    if (auto* const tensor = object.as<PyTensor>()) {
        return tensorIndexing_.indexTensor(*tensor, index);
    }
    if (auto* const base = object.as<PyRow>()) {
        return indexRow(*base, index);
    }
    if (auto* const symbols = object.as<PyArray>()) {
        return tensorIndexing_.indexArray(*symbols, index);
    }
    if (object.isSymbol()) {
        // x[None], x[...], x[()] of one number.
        PyArray one;
        one.elements.push_back(object.node());
        one.narrow = object.narrow();
        return tensorIndexing_.indexArray(one, index);
    }
    if (const auto* const items = object.as<PySequence>(); items != nullptr && items->kind != PyKind::Set) {
        return indexSequence(items->items, index, items->kind);
    }
    if (object.as<PyRangeValue>() != nullptr) {
        return indexSequence(iterate(object), index, PyKind::Tuple);
    }
    if (auto* const dict = object.as<PyDict>()) {
        if (const PyValue* const found = entryOf(*dict, index)) {
            return *found;
        }
        fail(fmt::format("the dict has no key {}", pyText(index)));
    }
    if (const auto* const string = object.as<PyString>()) {
        return indexString(*string, index);
    }
    if (const auto made = classes_.special(object, "__getitem__", {index})) {
        return *made;
    }
    if (object.as<PyIgnored>() != nullptr || object.as<PyClass>() != nullptr || object.as<PyBuiltin>() != nullptr) {
        return object; // list[int], Optional[Tensor]
    }
    fail(fmt::format("{} cannot be indexed", pyTypeName(object)));
}

PyValue PyContainers::indexRow(PyRow& row, PyValue index) {
    const std::vector<PyValue> items = indexItems(index);
    const bool plain = std::all_of(items.begin(), items.end(), [](PyValue item) {
        return item.isSymbol() || item.kind() == PyValue::Kind::Int || item.as<PySlider>() != nullptr;
    });
    if (!plain) {
        return tensorIndexing_.indexArray(*symbols_.array(&row), index);
    }
    std::vector<NodeIndex> indices = row.indices;
    for (const PyValue item : items) {
        indices.push_back(symbols_.node(item));
    }
    return symbols_.row(*row.tensor, std::move(indices));
}

PyValue PyContainers::indexString(const PyString& string, PyValue index) {
    std::vector<PyValue> characters;
    for (const char c : string.text) {
        characters.emplace_back(evaluation_.heap.string(std::string(1, c)));
    }
    const PyValue made = indexSequence(characters, index, PyKind::List);
    if (const auto* const part = made.as<PySequence>()) {
        std::string text;
        for (const PyValue item : part->items) {
            text += item.as<PyString>()->text;
        }
        return evaluation_.heap.string(std::move(text));
    }
    return made;
}

// Of an element by its index, which counts from the end when it is negative.
std::size_t PyContainers::position(PyValue index, std::size_t count) {
    const auto extent = static_cast<std::int64_t>(count);
    const std::int64_t at = convert_.integer(index, "an index");
    if (at < -extent || at >= extent) {
        fail(fmt::format("index {} of {} elements", at, extent));
    }
    return static_cast<std::size_t>(at < 0 ? at + extent : at);
}

PyValue* PyContainers::entryOf(PyDict& dict, PyValue key) {
    for (auto& [known, value] : dict.entries) {
        evaluation_.step();
        if (operators_.equal(known, key)) {
            return &value;
        }
    }
    return nullptr;
}

void PyContainers::setEntry(PyDict& dict, PyValue key, PyValue value) {
    if (PyValue* const known = entryOf(dict, key)) {
        *known = value;
        return;
    }
    evaluation_.heap.charge(2);
    dict.entries.emplace_back(key, value);
}

PyValue PyContainers::indexSequence(const std::vector<PyValue>& items, PyValue index, PyKind kind) {
    if (const auto* const range = index.as<PySlice>()) {
        const SliceRange part = convert_.slice(*range, static_cast<std::int64_t>(items.size()));
        std::vector<PyValue> made;
        made.reserve(static_cast<std::size_t>(part.count));
        for (std::int64_t i = 0; i < part.count; ++i) {
            made.push_back(items[static_cast<std::size_t>(part.start + i * part.step)]);
        }
        return kind == PyKind::List ? evaluation_.heap.list(std::move(made)) : evaluation_.heap.tuple(std::move(made));
    }
    if (index.isSymbol() && !evaluation_.builder.integer(index.node())) {
        fail("a list cannot be indexed by a value that is known only for each element; make it a tensor: "
             "torch.tensor([...])");
    }
    return items[position(index, items.size())];
}

void PyContainers::assignItem(PyValue object, PyValue index, PyValue value) {
    if (auto* const tensor = object.as<PyTensor>()) {
        if (evaluation_.inProgram && !tensor->literal) {
            fail("a program cannot change a captured tensor; change it before, where it is made");
        }
        if (value.isSymbol() || value.as<PyRow>() != nullptr || value.as<PyArray>() != nullptr) {
            fail("a value that is known only for each element cannot be written into a tensor");
        }
        tensorIndexing_.assign(*tensor, indexItems(index), value);
        return;
    }
    if (auto* const list = object.as<PySequence>(); list != nullptr && list->kind == PyKind::List) {
        if (index.as<PySlice>() != nullptr) {
            fail("a slice of a list cannot be assigned to; build the list with + or append()");
        }
        list->items[position(index, list->items.size())] = value;
        return;
    }
    if (auto* const dict = object.as<PyDict>()) {
        setEntry(*dict, index, value);
        return;
    }
    fail(fmt::format("an element of {} cannot be assigned to", pyTypeName(object)));
}

std::vector<PyValue> PyContainers::iterate(PyValue value) {
    if (const auto* const items = value.as<PySequence>()) {
        return items->items;
    }
    std::vector<PyValue> made;
    if (const auto* const range = value.as<PyRangeValue>()) {
        evaluation_.steps(range->count);
        for (std::int64_t i = 0; i < range->count; ++i) {
            made.push_back(PyValue::integer(range->start + i * range->step));
        }
        return made;
    }
    if (const auto* const dict = value.as<PyDict>()) {
        for (const auto& [key, entry] : dict->entries) {
            made.push_back(key);
        }
        return made;
    }
    if (const auto* const string = value.as<PyString>()) {
        evaluation_.steps(static_cast<std::int64_t>(string->text.size()));
        for (const char c : string->text) {
            made.emplace_back(evaluation_.heap.string(std::string(1, c)));
        }
        return made;
    }
    if (value.as<PyTensor>() != nullptr || value.as<PyRow>() != nullptr || value.as<PyArray>() != nullptr) {
        const TensorDims dims = dimsOf(value);
        if (dims.empty()) {
            fail("a tensor without dimensions cannot be iterated");
        }
        evaluation_.steps(dims[0]);
        for (std::int64_t i = 0; i < dims[0]; ++i) {
            made.push_back(index(value, PyValue::integer(i)));
        }
        return made;
    }
    if (value.isSymbol()) {
        fail("a value that is known only for each element cannot be iterated or counted by; use constants, and "
             "torch.where");
    }
    if (const auto* const object = value.as<PyInstance>();
        object != nullptr && object->type != nullptr && object->type->isData) {
        for (const std::string_view field : classes_.fieldsOf(*object->type)) {
            made.push_back(attributes_.attribute(value, field));
        }
        return made;
    }
    fail(fmt::format("{} cannot be iterated", pyTypeName(value)));
}

} // namespace vitrine::engine
