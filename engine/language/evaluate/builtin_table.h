// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The functions that are not written in Python, by their full names.

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/language/values/call.h"

namespace vitrine::engine {

/// Some of the functions.
struct BuiltinGroup {
    std::span<const BuiltinEntry> entries;
    bool areMethods = false; ///< those that start with "torch." are methods of tensors too
};

class BuiltinTable {
public:
    /// The groups' entries must outlive the table. The first entry of a name wins.
    explicit BuiltinTable(std::vector<BuiltinGroup> groups);

    /// Null when there is none of that full name.
    const BuiltinEntry* find(std::string_view name) const;
    /// A function of torch that is a method of tensors too. Null when there is none.
    const BuiltinEntry* findMethod(std::string_view name) const;
    /// The name after `prefix` that is most like `name`, as "; did you mean 'x'?", or "" when none is near.
    std::string suggestion(std::string_view prefix, std::string_view name) const;

private:
    std::vector<BuiltinGroup> groups_;
    std::unordered_map<std::string_view, const BuiltinEntry*> entries_;
};

/// `self`: the object of a method, else None.
PyBuiltin* makeBuiltin(PyHeap& heap, const BuiltinEntry* entry, PyValue self = {});

} // namespace vitrine::engine
