// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A template's text as tokens, with the white space rules trim_blocks and lstrip_blocks, which transformers sets.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/jinja/ast.h"

namespace vitrine::engine::jinja {

enum class TokenKind : std::uint8_t {
    Data,
    BlockBegin,
    BlockEnd,
    VariableBegin,
    VariableEnd,
    Name,
    Integer,
    Real,
    String,
    Operator,
    End,
};

struct Token {
    TokenKind kind = TokenKind::End;
    std::string text; ///< of strings with escapes resolved
    Place place;
    std::int64_t integer = 0;
    double real = 0;
};

/// Throws BadInput "line L, column C: what".
[[noreturn]] void failAt(Place place, std::string_view what);

/// Ends with a token End. Throws as failAt.
std::vector<Token> tokenize(std::string_view source);

} // namespace vitrine::engine::jinja
