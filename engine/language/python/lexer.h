// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tokens of Python 3.12 ("The Python Language Reference", section 2). Two levels: PyScanner splits a text that need not
// be correct (the editor's colours use it alone), tokenizePython adds indentation, logical lines and errors with
// places.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/language/python/source.h"

namespace vitrine::engine {

enum class PyTokenKind : std::uint8_t {
    End,
    Newline, ///< of a logical line
    Indent,
    Dedent,
    Name, ///< keywords too
    Number,
    String, ///< bytes literals too
    FString,
    Operator,
    Comment, ///< PyScanner only
    Break,   ///< PyScanner only: the end of a physical line
    Error,   ///< PyScanner only
};

struct PyToken {
    PyTokenKind kind = PyTokenKind::End;
    std::uint32_t begin = 0, end = 0; ///< bytes of the text
};

/// Splits `text` from left to right; keeps a view of it. Never throws and always ends.
class PyScanner {
public:
    explicit PyScanner(std::string_view text, std::uint32_t begin = 0) : text_(text), at_(begin) {}
    PyToken next();
    /// Why the last token is an Error.
    std::string_view problem() const { return problem_; }

private:
    PyToken token(PyTokenKind kind, std::uint32_t begin) const { return {kind, begin, at_}; }
    PyToken error(std::uint32_t begin, std::string_view problem);
    PyToken name(std::uint32_t begin);
    PyToken number(std::uint32_t begin);
    PyToken string(std::uint32_t begin, bool formatted);
    bool skipField(int depth);
    bool skipQuoted(bool formatted, int depth);
    char peek(std::uint32_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

    std::string_view text_;
    std::uint32_t at_;
    std::string_view problem_;
};

/// Place of bytes [begin, end) of the file.
PyPlace placeOf(const PyFile& file, std::size_t begin, std::size_t end);
/// PyError with the source line and a caret.
PyError errorAt(const PyFile& file, std::size_t begin, std::size_t end, const std::string& what);

/// Throws PyError: text longer than kMaxSourceBytes, characters and literals that Python does not know, brackets that
/// do not match or are nested deeper than kMaxNesting, inconsistent indentation.
std::vector<PyToken> tokenizePython(const PyFile& file);

bool isPythonKeyword(std::string_view name);

} // namespace vitrine::engine
