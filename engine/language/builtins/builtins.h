// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Functions that the language knows, by their full names ("torch.abs", "math.floor", "len"); methods of tensors are
// functions of torch with the object as the first argument, or have names of their own ("Tensor.to").

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/language/evaluate/values.h"

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

// The tables, a file each.
std::span<const ModBuiltinEntry> pythonBuiltins();      ///< len, range ...
std::span<const ModBuiltinEntry> libraryBuiltins();     ///< math.floor, functools.partial, and_masks ...
std::span<const ModBuiltinEntry> iterationBuiltins();   ///< itertools.product, operator.and_ ...
std::span<const ModBuiltinEntry> containerBuiltins();   ///< list.append, dict.items ...
std::span<const ModBuiltinEntry> stringBuiltins();      ///< str.lower ...
std::span<const ModBuiltinEntry> elementwiseBuiltins(); ///< torch.abs ...
std::span<const ModBuiltinEntry> angleBuiltins();       ///< torch.sin, math.atan2 ...
std::span<const ModBuiltinEntry> specialBuiltins();     ///< torch.logaddexp, torch.softmax ...
std::span<const ModBuiltinEntry> activationBuiltins();  ///< torch.nn.functional.relu ...
std::span<const ModBuiltinEntry> constructorBuiltins(); ///< torch.arange, torch.tensor ...
std::span<const ModBuiltinEntry> reductionBuiltins();   ///< torch.sum, torch.cumsum ...
std::span<const ModBuiltinEntry> positionBuiltins();    ///< torch.gather, Tensor.scatter_ ...
std::span<const ModBuiltinEntry> viewBuiltins();        ///< torch.cat, torch.reshape ...
std::span<const ModBuiltinEntry> layoutBuiltins();      ///< torch.kron, torch.chunk ...
std::span<const ModBuiltinEntry> moduleBuiltins();      ///< Module.register_buffer ...
std::span<const ModBuiltinEntry> tensorBuiltins();      ///< Tensor.to, Tensor.item ...

/// A function of torch that is a method of tensors too. Null when there is none.
const ModBuiltinEntry* findMethod(std::string_view name);
/// Null when there is none of that full name.
const ModBuiltinEntry* findBuiltin(std::string_view name);
/// The known names that are most like `name` and start with `prefix`, as "; did you mean 'x'?" or "".
std::string suggestion(std::string_view name, const std::vector<std::string_view>& known);
std::string builtinSuggestion(std::string_view prefix, std::string_view name);

} // namespace vitrine::engine
