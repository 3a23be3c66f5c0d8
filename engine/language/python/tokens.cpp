// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/python/tokens.h"

#include <algorithm>
#include <array>

#include "engine/language/python/lexer.h"

namespace vitrine::engine {

namespace {

bool isBuiltinName(std::string_view name) {
    static constexpr std::array<std::string_view, 38> kNames = {
        "abs",     "all",     "any",   "bool",       "dict", "divmod",   "enumerate", "filter",  "float", "functools",
        "getattr", "hasattr", "int",   "isinstance", "len",  "list",     "map",       "math",    "max",   "min",
        "partial", "pow",     "print", "range",      "repr", "reversed", "round",     "set",     "slice", "sorted",
        "str",     "sum",     "torch", "tuple",      "type", "zip",      "and_masks", "or_masks"};
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

} // namespace

std::vector<CodeToken> codeTokens(std::string_view text) {
    std::vector<CodeToken> tokens;
    text = text.substr(0, kMaxSourceBytes);
    PyScanner scanner(text);
    for (PyToken token = scanner.next(); token.kind != PyTokenKind::End; token = scanner.next()) {
        CodeToken made{CodeToken::Kind::Operator, token.begin, token.end};
        const std::string_view piece = text.substr(token.begin, token.end - token.begin);
        switch (token.kind) {
        case PyTokenKind::Break:
            continue;
        case PyTokenKind::Name:
            made.kind = isPythonKeyword(piece) ? CodeToken::Kind::Keyword
                        : isBuiltinName(piece) ? CodeToken::Kind::Builtin
                                               : CodeToken::Kind::Name;
            break;
        case PyTokenKind::Number:
            made.kind = CodeToken::Kind::Number;
            break;
        case PyTokenKind::String:
        case PyTokenKind::FString:
            made.kind = CodeToken::Kind::String;
            break;
        case PyTokenKind::Comment:
            made.kind = CodeToken::Kind::Comment;
            break;
        case PyTokenKind::Error:
            made.kind = CodeToken::Kind::Error;
            break;
        default:
            break;
        }
        tokens.push_back(made);
    }
    return tokens;
}

} // namespace vitrine::engine
