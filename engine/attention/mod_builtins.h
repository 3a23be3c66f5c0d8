// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Functions that the language knows, by their full names ("torch.abs", "math.floor", "len") and methods of tensors
// ("Tensor.abs"). Tables are in mod_builtins.cpp (Python), mod_elementwise.cpp, mod_constructors.cpp and
// mod_tensor_methods.cpp.

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/attention/mod_values.h"

namespace vitrine::engine {

class ModEvaluator;

/// Arguments of one call. What a builtin does not take is an error; devices and the like are ignored.
class ModCall {
public:
    std::vector<ModValue> arguments; ///< of a method: the object first
    std::vector<std::pair<std::string_view, ModValue>> keywords;

    /// Argument `index`, or the keyword of that name.
    std::optional<ModValue> optional(std::size_t index, std::string_view name);
    ModValue required(std::size_t index, std::string_view name);
    std::optional<ModValue> keyword(std::string_view name);
    /// Throws BadInput when something was given that nobody took.
    void finish() const;

private:
    std::size_t taken_ = 0;
    std::vector<std::string_view> takenKeywords_;
};

struct ModBuiltinEntry {
    std::string_view name;
    ModValue (*call)(ModEvaluator& evaluator, ModCall& call);
};

std::span<const ModBuiltinEntry> pythonBuiltins();      ///< len, math.floor, functools.partial, and_masks ...
std::span<const ModBuiltinEntry> elementwiseBuiltins(); ///< torch.abs, Tensor.abs ...
std::span<const ModBuiltinEntry> constructorBuiltins(); ///< torch.arange, torch.tensor ...
std::span<const ModBuiltinEntry> tensorBuiltins();      ///< torch.sum, Tensor.sum, Tensor.view ...

/// Null when there is none of that full name.
const ModBuiltinEntry* findBuiltin(std::string_view name);
/// The known names that are most like `name` and start with `prefix`, as "; did you mean 'x'?" or "".
std::string suggestion(std::string_view name, const std::vector<std::string_view>& known);
std::string builtinSuggestion(std::string_view prefix, std::string_view name);

} // namespace vitrine::engine
