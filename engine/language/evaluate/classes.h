// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Classes of the texts: their objects, members and parents.

#include <optional>
#include <string_view>
#include <vector>

#include "engine/language/evaluate/caller.h"
#include "engine/language/evaluate/evaluation.h"

namespace vitrine::engine {

class PyClasses {
public:
    PyClasses(Evaluation& evaluation, Caller& caller) : evaluation_(evaluation), caller_(caller) {}

    /// A new object of the class.
    PyValue instantiate(PyClass& type, PyCall& call);
    bool isCallable(PyValue value);
    bool isSubclass(const PyClass& type, const PyClass& of, int depth = 0);
    /// A member of the class or of its parents.
    std::optional<PyValue> find(const PyClass& type, std::string_view name);
    /// The same, where a member that could not be evaluated throws nothing yet.
    std::optional<PyValue> declared(const PyClass& type, std::string_view name, int depth = 0);
    /// Arguments of a dataclass or NamedTuple.
    std::vector<std::string_view> fieldsOf(const PyClass& type, int depth = 0);
    /// A method bound to `self`, a property's value, or the member itself.
    PyValue boundMember(PyValue member, PyValue self);
    /// object.name(...) where the class of the text has such a method: __len__, __getitem__.
    std::optional<PyValue> special(PyValue object, std::string_view name, const std::vector<PyValue>& arguments);
    PyValue parents(); ///< super() of the method that is being called
    std::optional<PyValue> memberOfParents(const PySuper& parents, std::string_view name);

private:
    PyFunction* bound(const PyFunction& function, PyValue self);
    std::optional<PyValue> fieldDefault(PyValue declared);

    Evaluation& evaluation_;
    Caller& caller_;
};

} // namespace vitrine::engine
