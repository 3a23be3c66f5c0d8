// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Python's rules for texts: white space, escapes, how values are printed. All texts are valid UTF-8.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/chat/jinja/value.h"

namespace vitrine::engine::jinja {

/// str.isspace of one character.
bool isPythonSpace(char32_t codePoint);
/// Bytes of the white space character at `position`; 0: another character stands there.
std::size_t spaceBytesAt(std::string_view text, std::size_t position);
/// First byte in [begin, end) that is no white space, or `end`.
std::size_t trimmedBegin(std::string_view text, std::size_t begin, std::size_t end);
/// Behind the last byte in [begin, end) that is no white space, or `begin`.
std::size_t trimmedEnd(std::string_view text, std::size_t begin, std::size_t end);

/// The byte at which code point `index` begins; the text's size where it has no so many.
std::size_t byteOfIndex(std::string_view text, std::size_t index);

/// A string literal without its quotes, with escapes resolved; nothing when one is malformed.
std::optional<std::string> unescaped(std::string_view literal);

/// repr of a float: the shortest text that reads back as the same number.
std::string floatText(double value);

/// str(value): what {{ value }} prints. Throws BadInput for values nested too deep.
Text printed(const Value& value);
/// repr(value).
Text represented(const Value& value);

struct JsonStyle {
    bool ascii = false;
    bool sortKeys = false;
    bool multiLine = false;    ///< with `indent`
    std::string indent;        ///< of one level
    std::string itemSeparator; ///< empty: ", ", or "," in several lines
    std::string keySeparator = ": ";
};
/// json.dumps. Throws BadInput for what JSON cannot hold (undefined values, functions).
Text jsonText(const Value& value, const JsonStyle& style);

/// Where a message says what kind of value it is: "str", "dict".
std::string_view typeName(const Value& value);

} // namespace vitrine::engine::jinja
