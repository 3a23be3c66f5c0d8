// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What names mean: those of the scopes, those that the caller gave, builtins, and numbers that a slider moves.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/language/evaluate/builtin_table.h"
#include "engine/language/evaluate/outer_names.h"
#include "engine/language/evaluate/symbolic_tensors.h"

namespace vitrine::engine {

class PyNames {
public:
    PyNames(Evaluation& evaluation, SymbolicTensors& symbols, const BuiltinTable& builtins, const OuterNames& outer)
        : evaluation_(evaluation), symbols_(symbols), builtins_(builtins), outer_(outer) {}

    /// In the scope of the evaluation. Throws BadInput when nothing has that name.
    PyValue lookUp(std::string_view name);
    void bind(std::string_view name, PyValue value, PyNamespace& scope);
    /// A slider where the caller moves this number, else the value itself.
    PyValue slid(std::string_view name, PyValue value);
    /// What slid() has seen, in that order.
    std::vector<SlidableNumber>& numbers() { return numbers_; }

private:
    std::optional<PyValue> lookUpGiven(std::string_view name);
    [[noreturn]] void unknownName(std::string_view name);

    Evaluation& evaluation_;
    SymbolicTensors& symbols_;
    const BuiltinTable& builtins_;
    const OuterNames& outer_;
    std::map<std::string, PySlider*, std::less<>> sliders_;
    std::vector<SlidableNumber> numbers_;
    std::map<std::string, PyTensor*, std::less<>> given_; ///< the caller's tensors that were read
};

} // namespace vitrine::engine
