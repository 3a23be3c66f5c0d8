// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Judges of answers to problems of a file, whose rows have the right answer: {"prompt": ..., "answer": ...}.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace vitrine::engine {

struct Checker {
    std::string_view name;  ///< of the option checker
    std::string_view title; ///< what is right, for help texts
    /// Throws BadInput that begins with "answer: " for a row that this checker cannot judge by.
    void (*requireAnswer)(const nlohmann::json& answer);
    /// 1: the answer is right; 0: it is not. `expected` is the row's "answer" (or "solution", "target"). Any text may
    /// come; takes time linear in it, whatever the pattern of a regex.
    double (*judge)(const nlohmann::json& expected, std::string_view answer);
};

/// exact, number, regex, choice, math.
std::span<const Checker> checkers();
/// Null: there is none of that name.
const Checker* findChecker(std::string_view name);

} // namespace vitrine::engine
