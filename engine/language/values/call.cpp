// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/values/call.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/language/python/suggestion.h"

namespace vitrine::engine {

std::optional<PyValue> PyCall::optional(std::size_t index, std::string_view name) {
    if (index < arguments.size()) {
        taken_ = std::max(taken_, index + 1);
        return arguments[index];
    }
    return keyword(name);
}

PyValue PyCall::required(std::size_t index, std::string_view name) {
    if (const auto found = optional(index, name)) {
        return *found;
    }
    throw base::BadInput(fmt::format("the argument '{}' is missing", name));
}

std::optional<PyValue> PyCall::keyword(std::string_view name) {
    takenKeywords_.push_back(name);
    for (const auto& [given, value] : keywords) {
        if (given == name) {
            return value;
        }
    }
    return std::nullopt;
}

void PyCall::finish() const {
    static constexpr std::array<std::string_view, 9> kIgnored = {"device",        "generator",     "pin_memory",
                                                                 "memory_format", "non_blocking",  "copy",
                                                                 "layout",        "requires_grad", "flush"};
    if (taken_ < arguments.size()) {
        throw base::BadInput(fmt::format("{} arguments where at most {} are taken", arguments.size(), taken_));
    }
    for (const auto& [name, value] : keywords) {
        if (std::find(takenKeywords_.begin(), takenKeywords_.end(), name) == takenKeywords_.end() &&
            std::find(kIgnored.begin(), kIgnored.end(), name) == kIgnored.end()) {
            throw base::BadInput(
                fmt::format("the argument '{}' is not supported{}", name, suggestion(name, takenKeywords_)));
        }
    }
}

} // namespace vitrine::engine
