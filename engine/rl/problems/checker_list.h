// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The rows of the table of checkers, and what they share. How each reads an answer stands at the top of its source.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/rl/problems/checker.h"

namespace vitrine::engine {

const Checker& exactChecker();
const Checker& numberChecker();
const Checker& regexChecker();
const Checker& choiceChecker();
const Checker& mathChecker();

/// The right answer of a row as text: texts as they are, numbers and truth values as JSON writes them.
/// Throws BadInput "answer: ..." for lists, objects and null.
std::string expectedText(const nlohmann::json& expected);

/// What stands behind the last "####", as GSM8K's answers have it; else the whole text. Trimmed.
std::string_view behindHashes(std::string_view text);

/// Without white space and NUL at both ends.
std::string_view trimmedText(std::string_view text);

/// Where `word`, in lower case, stands last in the text, in any case of letters; npos: nowhere. Takes linear time.
std::size_t lastPlaceOf(std::string_view text, std::string_view word);

} // namespace vitrine::engine
