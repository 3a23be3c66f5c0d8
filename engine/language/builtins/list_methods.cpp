// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Methods of lists and dicts.
#include <fmt/format.h>

#include "engine/language/builtins/builtin.h"

namespace vitrine::engine {

namespace {

PySequence& listOf(C& c) {
    auto* const list = c.required(0, "self").as<PySequence>();
    if (list == nullptr || list->kind == PyKind::Tuple) {
        fail("this is a method of lists");
    }
    return *list;
}

PyDict& dictOf(C& c) {
    auto* const dict = c.required(0, "self").as<PyDict>();
    if (dict == nullptr) {
        fail("this is a method of dicts");
    }
    return *dict;
}

PyValue append(E& e, C& c) {
    e.heap.charge(1);
    PySequence& list = listOf(c);
    list.items.push_back(c.required(1, "object"));
    c.finish();
    return {};
}

PyValue extend(E& e, C& c) {
    const std::vector<PyValue> more = e.containers.iterate(c.required(1, "iterable"));
    e.heap.charge(static_cast<std::int64_t>(more.size()));
    PySequence& list = listOf(c);
    list.items.insert(list.items.end(), more.begin(), more.end());
    c.finish();
    return {};
}

PyValue insert(E& e, C& c) {
    PySequence& list = listOf(c);
    const auto extent = static_cast<std::int64_t>(list.items.size());
    std::int64_t at = e.convert.integer(c.required(1, "index"), "a list's index");
    at = std::clamp<std::int64_t>(at < 0 ? std::max<std::int64_t>(at, -extent) + extent : at, 0, extent);
    e.heap.charge(1 + extent / 16);
    list.items.insert(list.items.begin() + at, c.required(2, "object"));
    c.finish();
    return {};
}

PyValue pop(E& e, C& c) {
    PySequence& list = listOf(c);
    const auto index = c.optional(1, "index");
    c.finish();
    const auto extent = static_cast<std::int64_t>(list.items.size());
    const std::int64_t at = index ? e.convert.integer(*index, "a list's index") : -1;
    if (at < -extent || at >= extent) {
        fail(fmt::format("index {} of {} elements", at, extent));
    }
    const auto place = list.items.begin() + (at < 0 ? at + extent : at);
    const PyValue made = *place;
    list.items.erase(place);
    return made;
}

PyValue dictItems(E& e, C& c, bool keys, bool values) {
    const PyDict& dict = dictOf(c);
    c.finish();
    std::vector<PyValue> made;
    for (const auto& [key, value] : dict.entries) {
        e.evaluation.step();
        made.push_back(keys && values ? PyValue(e.heap.tuple({key, value})) : keys ? key : value);
    }
    return e.heap.list(std::move(made));
}

PyValue dictGet(E& e, C& c) {
    PyDict& dict = dictOf(c);
    const PyValue wanted = c.required(1, "key");
    const PyValue otherwise = c.optional(2, "default").value_or(PyValue());
    c.finish();
    const PyValue* const known = e.containers.entryOf(dict, wanted);
    return known != nullptr ? *known : otherwise;
}

PyValue setDefault(E& e, C& c) {
    PyDict& dict = dictOf(c);
    const PyValue key = c.required(1, "key");
    const PyValue otherwise = c.optional(2, "default").value_or(PyValue());
    c.finish();
    if (const PyValue* const known = e.containers.entryOf(dict, key)) {
        return *known;
    }
    e.containers.setEntry(dict, key, otherwise);
    return otherwise;
}

PyValue update(E& e, C& c) {
    PyDict& dict = dictOf(c);
    if (const auto other = c.optional(1, "other")) {
        const auto* const from = other->as<PyDict>();
        if (from == nullptr) {
            fail(fmt::format("update() takes a dict, not {}", pyTypeName(*other)));
        }
        const std::vector<std::pair<PyValue, PyValue>> entries = from->entries;
        for (const auto& [key, value] : entries) {
            e.containers.setEntry(dict, key, value);
        }
    }
    for (const auto& [name, value] : c.keywords) {
        e.containers.setEntry(dict, e.heap.string(std::string(name)), value);
    }
    return {};
}

PyValue popEntry(E& e, C& c) {
    PyDict& dict = dictOf(c);
    const PyValue wanted = c.required(1, "key");
    const auto otherwise = c.optional(2, "default");
    c.finish();
    if (const PyValue* const known = e.containers.entryOf(dict, wanted)) {
        const PyValue made = *known;
        std::erase_if(dict.entries, [known](const auto& entry) { return &entry.second == known; });
        return made;
    }
    if (!otherwise) {
        fail(fmt::format("the dict has no key {}", pyText(wanted)));
    }
    return *otherwise;
}

/// Throws BadInput when the list does not have the element.
std::size_t placeOf(E& e, const PySequence& list, PyValue wanted) {
    for (std::size_t i = 0; i < list.items.size(); ++i) {
        e.evaluation.step();
        if (e.operators.equal(list.items[i], wanted)) {
            return i;
        }
    }
    fail("the list has no such element");
}

PyValue removeItem(E& e, C& c) {
    PySequence& list = listOf(c);
    const PyValue wanted = c.required(1, "value");
    c.finish();
    list.items.erase(list.items.begin() + static_cast<std::ptrdiff_t>(placeOf(e, list, wanted)));
    return {};
}

PyValue countItems(E& e, C& c) {
    const auto* const list = c.required(0, "self").as<PySequence>();
    const PyValue wanted = c.required(1, "value");
    c.finish();
    std::int64_t count = 0;
    for (const PyValue item : list != nullptr ? list->items : std::vector<PyValue>()) {
        e.evaluation.step();
        count += e.operators.equal(item, wanted) ? 1 : 0;
    }
    return PyValue::integer(count);
}

constexpr std::array kListMethods = std::to_array<BuiltinEntry>({
    {"list.append", append},
    {"list.extend", extend},
    {"list.insert", insert},
    {"list.pop", pop},
    {"list.remove", removeItem},
    {"list.count", countItems},
    {"list.add", append},
    {"list.copy", [](E& e, C& c) { return e.caller.callBuiltin("list", c); }},
    {"list.reverse",
     [](E&, C& c) -> PyValue {
         PySequence& list = listOf(c);
         std::reverse(list.items.begin(), list.items.end());
         return {};
     }},
    {"list.sort",
     [](E& e, C& c) -> PyValue {
         const PyValue made = e.caller.callBuiltin("sorted", c);
         listOf(c).items = made.as<PySequence>()->items;
         return {};
     }},
    {"list.index",
     [](E& e, C& c) {
         const PySequence& list = listOf(c);
         const PyValue wanted = c.required(1, "value");
         return PyValue::integer(static_cast<std::int64_t>(placeOf(e, list, wanted)));
     }},
    {"dict.items", [](E& e, C& c) { return dictItems(e, c, true, true); }},
    {"dict.keys", [](E& e, C& c) { return dictItems(e, c, true, false); }},
    {"dict.values", [](E& e, C& c) { return dictItems(e, c, false, true); }},
    {"dict.get", dictGet},
    {"dict.setdefault", setDefault},
    {"dict.update", update},
    {"dict.pop", popEntry},
    {"dict.copy",
     [](E& e, C& c) -> PyValue {
         auto* const made = e.heap.make<PyDict>();
         made->entries = dictOf(c).entries;
         e.heap.charge(static_cast<std::int64_t>(made->entries.size()));
         return made;
     }},
});

} // namespace

std::span<const BuiltinEntry> containerBuiltins() {
    return kListMethods;
}

} // namespace vitrine::engine
