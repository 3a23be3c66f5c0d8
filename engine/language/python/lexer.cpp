// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/python/lexer.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace vitrine::engine {

namespace {

constexpr int kMaxQuoteNesting = 8; // of f-strings inside the fields of f-strings

bool isDigit(char c) {
    return c >= '0' && c <= '9';
}
bool isNameStart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool isNamePart(char c) {
    return isNameStart(c) || isDigit(c);
}
bool isHexDigit(char c) {
    return isDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// Longest first.
constexpr std::array<std::string_view, 47> kOperators = {
    "**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->", "+=", "-=",
    "*=",  "/=",  "%=",  "&=",  "|=",  "^=", "@=", ":=", "+",  "-",  "*",  "/",  "%",  "@",  "&",  "|",
    "^",   "~",   "<",   ">",   "(",   ")",  "[",  "]",  "{",  "}",  ",",  ":",  ".",  ";",  "="};

/// 0: no string prefix; else its length without the quote.
bool isStringPrefix(std::string_view name, bool& formatted) {
    if (name.size() > 2) {
        return false;
    }
    std::string lower;
    for (const char c : name) {
        lower += static_cast<char>(c | 0x20);
    }
    formatted = lower.find('f') != std::string::npos;
    static constexpr std::array<std::string_view, 8> kPrefixes = {"r", "u", "b", "f", "br", "rb", "fr", "rf"};
    return std::find(kPrefixes.begin(), kPrefixes.end(), lower) != kPrefixes.end();
}

} // namespace

bool isPythonKeyword(std::string_view name) {
    static constexpr std::array<std::string_view, 35> kKeywords = {
        "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
    return std::find(kKeywords.begin(), kKeywords.end(), name) != kKeywords.end();
}

PyToken PyScanner::error(std::uint32_t begin, std::string_view problem) {
    problem_ = problem;
    return token(PyTokenKind::Error, begin);
}

PyToken PyScanner::next() {
    for (;;) {
        const char c = peek();
        if (c == ' ' || c == '\t' || c == '\f') {
            ++at_;
        } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
            at_ += peek(1) == '\n' ? 2 : 3;
        } else {
            break;
        }
    }
    const std::uint32_t begin = at_;
    if (at_ >= text_.size()) {
        return token(PyTokenKind::End, begin);
    }
    const char c = peek();
    if (c == '\n' || c == '\r') {
        at_ += c == '\r' && peek(1) == '\n' ? 2 : 1;
        return token(PyTokenKind::Break, begin);
    }
    if (c == '#') {
        while (at_ < text_.size() && peek() != '\n' && peek() != '\r') {
            ++at_;
        }
        return token(PyTokenKind::Comment, begin);
    }
    if (isNameStart(c)) {
        return name(begin);
    }
    if (isDigit(c) || (c == '.' && isDigit(peek(1)))) {
        return number(begin);
    }
    if (c == '"' || c == '\'') {
        return string(begin, false);
    }
    for (const std::string_view op : kOperators) {
        if (text_.substr(at_, op.size()) == op) {
            at_ += static_cast<std::uint32_t>(op.size());
            return token(PyTokenKind::Operator, begin);
        }
    }
    ++at_;
    return error(begin, c == '\\' ? "a backslash joins lines only as the last character of a line"
                                  : "a character that Python does not use");
}

PyToken PyScanner::name(std::uint32_t begin) {
    while (isNamePart(peek())) {
        ++at_;
    }
    bool formatted = false;
    if ((peek() == '"' || peek() == '\'') && isStringPrefix(text_.substr(begin, at_ - begin), formatted)) {
        return string(begin, formatted);
    }
    return token(PyTokenKind::Name, begin);
}

PyToken PyScanner::number(std::uint32_t begin) {
    const char base = static_cast<char>(peek(1) | 0x20);
    if (peek() == '0' && (base == 'x' || base == 'o' || base == 'b')) {
        at_ += 2;
        while (isHexDigit(peek()) || peek() == '_') {
            ++at_;
        }
    } else {
        const auto digits = [this] {
            while (isDigit(peek()) || (peek() == '_' && isDigit(peek(1)))) {
                ++at_;
            }
        };
        digits();
        if (peek() == '.') {
            ++at_;
            digits();
        }
        const std::uint32_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
        if ((peek() == 'e' || peek() == 'E') && isDigit(peek(1 + sign))) {
            at_ += 1 + sign;
            digits();
        }
        if (peek() == 'j' || peek() == 'J') {
            ++at_;
        }
    }
    if (isNamePart(peek())) {
        // "1if x" is allowed by Python and warned about; letters that no keyword starts are an error.
        const std::uint32_t after = at_;
        while (isNamePart(peek())) {
            ++at_;
        }
        if (!isPythonKeyword(text_.substr(after, at_ - after))) {
            return error(begin, "not a number");
        }
        at_ = after;
    }
    return token(PyTokenKind::Number, begin);
}

PyToken PyScanner::string(std::uint32_t begin, bool formatted) {
    if (!skipQuoted(formatted, 0)) {
        return error(begin, formatted ? "an f-string that does not end" : "a string that does not end");
    }
    return token(formatted ? PyTokenKind::FString : PyTokenKind::String, begin);
}

// At the opening quote. Backslashes protect the next character in raw strings too.
bool PyScanner::skipQuoted(bool formatted, int depth) {
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    while (at_ < text_.size()) {
        const char c = peek();
        if (c == '\\') {
            at_ += 2;
        } else if (c == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
            at_ += triple ? 3 : 1;
            return true;
        } else if (!triple && (c == '\n' || c == '\r')) {
            return false;
        } else if (formatted && c == '{' && peek(1) == '{') {
            at_ += 2;
        } else if (formatted && c == '{') {
            if (depth >= kMaxQuoteNesting || !skipField(depth + 1)) {
                return false;
            }
        } else {
            ++at_;
        }
    }
    at_ = static_cast<std::uint32_t>(text_.size());
    return false;
}

// At the "{" of a replacement field; ends after its "}".
bool PyScanner::skipField(int depth) {
    int braces = 0;
    while (at_ < text_.size()) {
        const char c = peek();
        if (c == '{' || c == '[' || c == '(') {
            ++braces;
            ++at_;
        } else if (c == '}' || c == ']' || c == ')') {
            ++at_;
            if (--braces == 0) {
                return true;
            }
        } else if (c == '"' || c == '\'') {
            const char before = at_ > 0 ? static_cast<char>(text_[at_ - 1] | 0x20) : ' ';
            if (!skipQuoted(before == 'f', depth)) {
                return false;
            }
        } else {
            ++at_;
        }
    }
    return false;
}

PyPlace placeOf(const PyFile& file, std::size_t begin, std::size_t end) {
    begin = std::min(begin, file.text.size());
    PyPlace place{file.name, 1, 1, begin, std::max(begin, end)};
    std::size_t lineStart = 0;
    for (std::size_t at = 0; at < begin; ++at) {
        if (file.text[at] == '\n') {
            ++place.line;
            lineStart = at + 1;
        }
    }
    for (std::size_t at = lineStart; at < begin; ++at) {
        // Bytes 10xxxxxx continue a UTF-8 character.
        place.column += (static_cast<unsigned char>(file.text[at]) & 0xC0U) != 0x80U ? 1 : 0;
    }
    return place;
}

PyError errorAt(const PyFile& file, std::size_t begin, std::size_t end, const std::string& what) {
    constexpr std::size_t kMaxLine = 160;
    const PyPlace place = placeOf(file, begin, end);
    std::size_t lineStart = place.begin;
    while (lineStart > 0 && file.text[lineStart - 1] != '\n') {
        --lineStart;
    }
    // A window of a long line, which starts at a character's first byte.
    std::size_t from = place.begin - lineStart > kMaxLine ? place.begin - kMaxLine / 2 : lineStart;
    while (from < place.begin && (static_cast<unsigned char>(file.text[from]) & 0xC0U) == 0x80U) {
        ++from;
    }
    std::size_t to = from;
    while (to < file.text.size() && file.text[to] != '\n' && file.text[to] != '\r' && to - from < 2 * kMaxLine) {
        ++to;
    }
    std::string caret;
    for (std::size_t at = from; at < place.begin && at < to; ++at) {
        if ((static_cast<unsigned char>(file.text[at]) & 0xC0U) != 0x80U) {
            caret += file.text[at] == '\t' ? '\t' : ' ';
        }
    }
    const std::size_t marked =
        std::clamp<std::size_t>(std::min(place.end, to) - std::min(place.begin, to), 1, kMaxLine);
    caret += '^' + std::string(marked - 1, '~');
    return {place, what, file.text.substr(from, to - from) + "\n" + caret};
}

namespace {

/// Indentation, brackets and logical lines over a scanner.
class Tokenizer {
public:
    explicit Tokenizer(const PyFile& file) : file_(file), scanner_(file.text, skipByteOrderMark(file.text)) {}

    std::vector<PyToken> run() {
        bool lineStart = true;
        for (PyToken token = scanner_.next(); token.kind != PyTokenKind::End; token = scanner_.next()) {
            if (token.kind == PyTokenKind::Comment) {
                continue;
            }
            if (token.kind == PyTokenKind::Error) {
                throw errorAt(file_, token.begin, token.end, std::string(scanner_.problem()));
            }
            if (token.kind == PyTokenKind::Break) {
                if (!lineStart && brackets_.empty()) {
                    tokens_.push_back({PyTokenKind::Newline, token.begin, token.begin});
                    lineStart = true;
                }
                continue;
            }
            if (lineStart && brackets_.empty()) {
                indent(token.begin);
                lineStart = false;
            }
            if (token.kind == PyTokenKind::Operator) {
                bracket(token);
            }
            tokens_.push_back(token);
        }
        if (!brackets_.empty()) {
            throw errorAt(file_, brackets_.back(), brackets_.back() + 1, "this bracket is never closed");
        }
        const auto end = static_cast<std::uint32_t>(file_.text.size());
        if (!lineStart) {
            tokens_.push_back({PyTokenKind::Newline, end, end});
        }
        for (; indents_.size() > 1; indents_.pop_back()) {
            tokens_.push_back({PyTokenKind::Dedent, end, end});
        }
        tokens_.push_back({PyTokenKind::End, end, end});
        return std::move(tokens_);
    }

private:
    static std::uint32_t skipByteOrderMark(std::string_view text) {
        return text.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0;
    }

    void indent(std::uint32_t begin) {
        std::uint32_t start = begin;
        while (start > 0 && file_.text[start - 1] != '\n' && file_.text[start - 1] != '\r') {
            --start;
        }
        int column = 0;
        for (std::uint32_t at = start; at < begin; ++at) {
            const char c = file_.text[at];
            column = c == '\t' ? (column / 8 + 1) * 8 : c == '\f' ? 0 : c == ' ' ? column + 1 : column;
        }
        if (column > indents_.back()) {
            if (indents_.size() > static_cast<std::size_t>(kMaxNesting)) {
                throw errorAt(file_, begin, begin + 1, fmt::format("more than {} nested blocks", kMaxNesting));
            }
            indents_.push_back(column);
            tokens_.push_back({PyTokenKind::Indent, start, begin});
            return;
        }
        while (column < indents_.back()) {
            indents_.pop_back();
            tokens_.push_back({PyTokenKind::Dedent, begin, begin});
        }
        if (column != indents_.back()) {
            throw errorAt(file_, start, begin, "this line's indentation matches no block above it");
        }
    }

    void bracket(const PyToken& token) {
        const char c = file_.text[token.begin];
        if (token.end - token.begin != 1) {
            return;
        }
        if (c == '(' || c == '[' || c == '{') {
            if (brackets_.size() >= static_cast<std::size_t>(kMaxNesting)) {
                throw errorAt(file_, token.begin, token.end, fmt::format("more than {} nested brackets", kMaxNesting));
            }
            brackets_.push_back(token.begin);
        } else if (c == ')' || c == ']' || c == '}') {
            const char open = brackets_.empty() ? '\0' : file_.text[brackets_.back()];
            if (open != (c == ')' ? '(' : c == ']' ? '[' : '{')) {
                throw errorAt(file_, token.begin, token.end, fmt::format("'{}' closes no bracket", c));
            }
            brackets_.pop_back();
        }
    }

    const PyFile& file_;
    PyScanner scanner_;
    std::vector<PyToken> tokens_;
    std::vector<int> indents_{0};
    std::vector<std::uint32_t> brackets_;
};

} // namespace

std::vector<PyToken> tokenizePython(const PyFile& file) {
    if (file.text.size() > kMaxSourceBytes) {
        throw PyError({file.name, 1, 1, 0, 0},
                      fmt::format("the text has {} bytes, more than {}", file.text.size(), kMaxSourceBytes), "");
    }
    return Tokenizer(file).run();
}

} // namespace vitrine::engine
