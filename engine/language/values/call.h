// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The arguments of a call, and functions that are not written in Python.

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/language/values/values.h"

namespace vitrine::engine {

/// Arguments of one call. What a builtin does not take is an error; devices and the like are ignored.
class PyCall {
public:
    std::vector<PyValue> arguments; ///< of a method: the object first
    std::vector<std::pair<std::string_view, PyValue>> keywords;

    /// Argument `index`, or the keyword of that name.
    std::optional<PyValue> optional(std::size_t index, std::string_view name);
    PyValue required(std::size_t index, std::string_view name);
    std::optional<PyValue> keyword(std::string_view name);
    /// Throws BadInput when an argument was given that the builtin did not ask for.
    void finish() const;

private:
    std::size_t taken_ = 0;
    std::vector<std::string_view> takenKeywords_;
};

struct PyServices;

/// A function that the language knows: a row of a table.
struct BuiltinEntry {
    std::string_view name; ///< in full: "torch.abs", "math.floor", "len", "Tensor.to"
    PyValue (*call)(PyServices& services, PyCall& call);
};

} // namespace vitrine::engine
