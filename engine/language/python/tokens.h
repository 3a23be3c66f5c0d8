// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tokens for an editor's colours.

#include <cstddef>
#include <string_view>
#include <vector>

namespace vitrine::engine {

struct CodeToken {
    enum class Kind { Keyword, Name, Builtin, Number, String, Comment, Operator, Error };
    Kind kind = Kind::Name;
    std::size_t begin = 0, end = 0;
};
/// The tokens of `text`, from left to right. The text need not be correct. Never throws.
std::vector<CodeToken> codeTokens(std::string_view text);

} // namespace vitrine::engine
