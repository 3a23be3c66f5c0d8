// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/builtin_table.h"

#include "engine/language/python/suggestion.h"

namespace vitrine::engine {

BuiltinTable::BuiltinTable(std::vector<BuiltinGroup> groups) : groups_(std::move(groups)) {
    for (const BuiltinGroup& group : groups_) {
        for (const BuiltinEntry& entry : group.entries) {
            entries_.emplace(entry.name, &entry);
        }
    }
}

const BuiltinEntry* BuiltinTable::find(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : found->second;
}

const BuiltinEntry* BuiltinTable::findMethod(std::string_view name) const {
    const std::string full = "torch." + std::string(name);
    for (const BuiltinGroup& group : groups_) {
        for (const BuiltinEntry& entry : group.entries) {
            if (group.areMethods && entry.name == full) {
                return &entry;
            }
        }
    }
    return nullptr;
}

std::string BuiltinTable::suggestion(std::string_view prefix, std::string_view name) const {
    std::vector<std::string_view> known;
    for (const BuiltinGroup& group : groups_) {
        for (const BuiltinEntry& entry : group.entries) {
            if (entry.name.substr(0, prefix.size()) == prefix) {
                known.push_back(entry.name.substr(prefix.size()));
            }
        }
    }
    return engine::suggestion(name, known);
}

PyBuiltin* makeBuiltin(PyHeap& heap, const BuiltinEntry* entry, PyValue self) {
    auto* const made = heap.make<PyBuiltin>();
    made->entry = entry;
    made->self = self;
    return made;
}

} // namespace vitrine::engine
