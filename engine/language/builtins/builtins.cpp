// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/builtins/builtins.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>
#include <unordered_map>

namespace vitrine::engine {

std::optional<ModValue> ModCall::optional(std::size_t index, std::string_view name) {
    if (index < arguments.size()) {
        taken_ = std::max(taken_, index + 1);
        return arguments[index];
    }
    return keyword(name);
}

ModValue ModCall::required(std::size_t index, std::string_view name) {
    if (const auto found = optional(index, name)) {
        return *found;
    }
    throw base::BadInput(fmt::format("the argument '{}' is missing", name));
}

std::optional<ModValue> ModCall::keyword(std::string_view name) {
    takenKeywords_.push_back(name);
    for (const auto& [given, value] : keywords) {
        if (given == name) {
            return value;
        }
    }
    return std::nullopt;
}

void ModCall::finish() const {
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

namespace {

std::array<std::span<const ModBuiltinEntry>, 16> builtinTables() {
    return {pythonBuiltins(),   libraryBuiltins(),    iterationBuiltins(),   containerBuiltins(),
            stringBuiltins(),   moduleBuiltins(),     elementwiseBuiltins(), angleBuiltins(),
            specialBuiltins(),  activationBuiltins(), constructorBuiltins(), reductionBuiltins(),
            positionBuiltins(), viewBuiltins(),       layoutBuiltins(),      tensorBuiltins()};
}

} // namespace

const ModBuiltinEntry* findMethod(std::string_view name) {
    const std::string full = "torch." + std::string(name);
    for (const std::span<const ModBuiltinEntry> table :
         {elementwiseBuiltins(), angleBuiltins(), specialBuiltins(), activationBuiltins(), reductionBuiltins(),
          positionBuiltins(), viewBuiltins(), layoutBuiltins(), tensorBuiltins()}) {
        for (const ModBuiltinEntry& entry : table) {
            if (entry.name == full) {
                return &entry;
            }
        }
    }
    return nullptr;
}

const ModBuiltinEntry* findBuiltin(std::string_view name) {
    static const std::unordered_map<std::string_view, const ModBuiltinEntry*> kTable = [] {
        std::unordered_map<std::string_view, const ModBuiltinEntry*> table;
        for (const std::span<const ModBuiltinEntry> part : builtinTables()) {
            for (const ModBuiltinEntry& entry : part) {
                table.emplace(entry.name, &entry);
            }
        }
        return table;
    }();
    const auto found = kTable.find(name);
    return found == kTable.end() ? nullptr : found->second;
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& known) {
    // Levenshtein's distance; a third of the name may differ.
    std::string_view best;
    std::size_t least = std::max<std::size_t>(1, name.size() / 3) + 1;
    for (const std::string_view other : known) {
        if (other.size() > name.size() + least || name.size() > other.size() + least || other == name ||
            name.size() > 64) {
            continue;
        }
        std::vector<std::size_t> row(other.size() + 1);
        std::iota(row.begin(), row.end(), std::size_t{0});
        for (std::size_t i = 0; i < name.size(); ++i) {
            std::size_t diagonal = row[0]++;
            for (std::size_t j = 0; j < other.size(); ++j) {
                const std::size_t change = diagonal + (name[i] == other[j] ? 0 : 1);
                diagonal = row[j + 1];
                row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
            }
        }
        if (row.back() < least) {
            least = row.back();
            best = other;
        }
    }
    return best.empty() ? std::string() : fmt::format("; did you mean '{}'?", best);
}

std::string builtinSuggestion(std::string_view prefix, std::string_view name) {
    std::vector<std::string_view> known;
    for (const std::span<const ModBuiltinEntry> part : builtinTables()) {
        for (const ModBuiltinEntry& entry : part) {
            if (entry.name.substr(0, prefix.size()) == prefix) {
                known.push_back(entry.name.substr(prefix.size()));
            }
        }
    }
    return suggestion(name, known);
}

} // namespace vitrine::engine
