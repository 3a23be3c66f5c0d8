// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>

#include "engine/language/python/rules.h"

namespace vitrine::engine {

namespace {

void appendUtf8(std::string& out, std::uint32_t code) {
    const auto byte = [&out](std::uint32_t value) { out += static_cast<char>(static_cast<unsigned char>(value)); };
    if (code < 0x80U) {
        byte(code);
    } else if (code < 0x800U) {
        byte(0xC0U | code >> 6U);
        byte(0x80U | (code & 0x3FU));
    } else if (code < 0x10000U) {
        byte(0xE0U | code >> 12U);
        byte(0x80U | (code >> 6U & 0x3FU));
        byte(0x80U | (code & 0x3FU));
    } else {
        byte(0xF0U | code >> 18U);
        byte(0x80U | (code >> 12U & 0x3FU));
        byte(0x80U | (code >> 6U & 0x3FU));
        byte(0x80U | (code & 0x3FU));
    }
}

/// Where the prefix ends, and the text between the quotes.
struct Quoted {
    std::uint32_t begin = 0, end = 0;
    bool raw = false, bytes = false;
};

Quoted quoted(std::string_view text, const PyToken& token) {
    Quoted found{token.begin, token.end, false, false};
    for (; text[found.begin] != '"' && text[found.begin] != '\''; ++found.begin) {
        const char prefix = static_cast<char>(text[found.begin] | 0x20);
        found.raw = found.raw || prefix == 'r';
        found.bytes = found.bytes || prefix == 'b';
    }
    const char quote = text[found.begin];
    const bool triple =
        found.end - found.begin >= 6 && text[found.begin + 1] == quote && text[found.begin + 2] == quote;
    found.begin += triple ? 3 : 1;
    found.end -= triple ? 3 : 1;
    return found;
}

/// Where the text of an f-string that starts at `at` meets a brace: the "\\N{...}" of a character's name has none.
std::uint32_t plainEnd(std::string_view source, std::uint32_t at, std::uint32_t end, bool raw) {
    for (++at; at < end && source[at] != '{' && source[at] != '}'; ++at) {
        const bool escape = !raw && source[at] == '\\' && at + 1 < end;
        if (escape && source[at + 1] == 'N' && at + 2 < end && source[at + 2] == '{') {
            at = static_cast<std::uint32_t>(std::min<std::size_t>(source.find('}', at), end - 1));
        } else if (escape) {
            ++at;
        }
    }
    return std::min(at, end);
}

} // namespace

PyExprExtra& PyLiteralRules::extra(PyExpr& expr) {
    if (!expr.extra) {
        expr.extra = std::make_unique<PyExprExtra>();
    }
    return *expr.extra;
}

PyExprPtr PyLiteralRules::make(PyExprKind kind, std::uint32_t begin) const {
    auto made = std::make_unique<PyExpr>();
    made->kind = kind;
    made->range = {begin, begin};
    return made;
}

PyExprPtr PyLiteralRules::finish(PyExprPtr expr) const {
    expr->range.end = lastEnd();
    int depth = 0;
    for (const PyExprPtr& item : expr->items) {
        depth = std::max<int>(depth, item ? item->depth : 0);
    }
    if (expr->extra) {
        for (const PyClause& clause : expr->extra->clauses) {
            depth = std::max<int>({depth, clause.target->depth, clause.iterable->depth});
            for (const PyExprPtr& condition : clause.conditions) {
                depth = std::max<int>(depth, condition->depth);
            }
        }
        if (expr->extra->lambda) {
            depth = std::max<int>(depth, expr->extra->lambda->result->depth);
        }
    }
    if (depth >= kMaxExpressionDepth) {
        failAt(expr->range,
               fmt::format("an expression of more than {} nested or chained operations", kMaxExpressionDepth));
    }
    expr->depth = static_cast<std::uint16_t>(depth + 1);
    return expr;
}

PyExprPtr PyLiteralRules::number(const PyToken& token) const {
    PyExprPtr made = make(PyExprKind::Integer, token.begin);
    std::string digits;
    for (const char c : text(token)) {
        if (c != '_') {
            digits += c;
        }
    }
    const char second = digits.size() > 1 ? static_cast<char>(digits[1] | 0x20) : '0';
    const int base = digits[0] != '0' ? 10 : second == 'x' ? 16 : second == 'o' ? 8 : second == 'b' ? 2 : 10;
    const bool real = base == 10 && digits.find_first_of(".eEjJ") != std::string::npos;
    if (real) {
        const bool imaginary = digits.back() == 'j' || digits.back() == 'J';
        made->kind = imaginary ? PyExprKind::Imaginary : PyExprKind::Float;
        made->real = std::strtod(digits.c_str(), nullptr);
        return made;
    }
    const char* const first = digits.c_str() + (base == 10 ? 0 : 2);
    const char* const last = digits.c_str() + digits.size();
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(first, last, value, base);
    if (problem == std::errc::result_out_of_range) {
        made->kind = PyExprKind::HugeInteger;
    } else if (problem != std::errc() || end != last) {
        fail(token, "not a number");
    }
    made->integer = value;
    return made;
}

PyExprPtr PyLiteralRules::strings() {
    PyExprPtr made = make(PyExprKind::String, peek().begin);
    std::string plain;
    bool formatted = false;
    bool bytes = false;
    // Neighbours are one string. Plain text between fields becomes String items of an FString.
    const auto flush = [&] {
        if (!plain.empty()) {
            PyExprPtr part = make(PyExprKind::String, made->range.begin);
            extra(*part).text = std::move(plain);
            made->items.push_back(std::move(part));
            plain.clear();
        }
    };
    while (peek().kind == PyTokenKind::String || peek().kind == PyTokenKind::FString) {
        const PyToken token = take();
        if (token.kind == PyTokenKind::FString) {
            flush();
            formatted = true;
            formattedParts(*made, token);
        } else {
            const Quoted inner = quoted(file_.text, token);
            bytes = bytes || inner.bytes;
            plain += decoded(token, inner.begin, inner.end, inner.raw);
        }
    }
    if (formatted) {
        flush();
        made->kind = PyExprKind::FString;
    } else {
        made->kind = bytes ? PyExprKind::Bytes : PyExprKind::String;
        extra(*made).text = std::move(plain);
    }
    return finish(std::move(made));
}

std::string PyLiteralRules::decoded(const PyToken& token, std::uint32_t begin, std::uint32_t end, bool raw) const {
    const std::string_view source = std::string_view(file_.text).substr(begin, end - begin);
    if (raw || source.find('\\') == std::string_view::npos) {
        return std::string(source);
    }
    std::string out;
    for (std::size_t at = 0; at < source.size(); ++at) {
        if (source[at] != '\\' || at + 1 == source.size()) {
            out += source[at];
            continue;
        }
        const char c = source[++at];
        static constexpr std::string_view kLetters = "abfnrtv\\'\"";
        static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
        const std::size_t letter = kLetters.find(c);
        const std::size_t length = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        if (letter != std::string_view::npos) {
            out += kMeanings[letter];
        } else if (length > 0) {
            std::uint32_t code = 0;
            const std::string_view digits = source.substr(at + 1, length);
            const auto [last, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
            if (problem != std::errc() || last != digits.data() + length || digits.size() != length ||
                code > 0x10FFFFU) {
                fail(token, fmt::format("\\{} needs {} hexadecimal digits", c, length));
            }
            appendUtf8(out, code);
            at += length;
        } else if (c >= '0' && c <= '7') {
            std::uint32_t code = 0;
            std::size_t digits = 0;
            for (;
                 digits < 3 && at + digits < source.size() && source[at + digits] >= '0' && source[at + digits] <= '7';
                 ++digits) {
                code = code * 8 + static_cast<std::uint32_t>(source[at + digits] - '0');
            }
            appendUtf8(out, code);
            at += digits - 1;
        } else if (c == 'N' && at + 1 < source.size() && source[at + 1] == '{') {
            // The character's name decides nothing here; the text is kept as it stands.
            const std::size_t close = std::min(source.find('}', at), source.size() - 1);
            out += source.substr(at - 1, close - at + 2);
            at = close;
        } else if (c == '\n') {
            // A backslash at the end of a line joins it with the next one.
        } else if (c == '\r') {
            at += at + 1 < source.size() && source[at + 1] == '\n' ? 1 : 0;
        } else {
            out += '\\';
            out += c;
        }
    }
    return out;
}

PyCursor::PyCursor(const PyFile& file, std::uint32_t begin, std::uint32_t end, int nesting)
    : file_(file), nesting_(nesting) {
    PyScanner scanner(std::string_view(file.text).substr(0, end), begin);
    for (PyToken token = scanner.next(); token.kind != PyTokenKind::End; token = scanner.next()) {
        if (token.kind == PyTokenKind::Error) {
            throw errorAt(file, token.begin, token.end, std::string(scanner.problem()));
        }
        if (token.kind != PyTokenKind::Comment && token.kind != PyTokenKind::Break) {
            tokens_.push_back(token);
        }
    }
    tokens_.push_back({PyTokenKind::End, end, end});
}

PyExprPtr PyExpressionRules::formattedField() {
    const Nested nested(*this);
    PyExprPtr value = is("yield") ? yieldExpression() : expressions(true);
    accept("="); // f"{x=}" shows the text too, which means nothing here
    if (peek().kind != PyTokenKind::End) {
        fail(peek(), "expected the end of the f-string's field");
    }
    return value;
}

void PyLiteralRules::formattedParts(PyExpr& target, const PyToken& token) {
    const std::string_view source = file_.text;
    const Quoted inner = quoted(source, token);
    std::string plain;
    const auto flush = [&] {
        if (!plain.empty()) {
            PyExprPtr part = make(PyExprKind::String, token.begin);
            extra(*part).text = std::move(plain);
            target.items.push_back(std::move(part));
            plain.clear();
        }
    };
    for (std::uint32_t at = inner.begin; at < inner.end;) {
        const bool twice = at + 1 < inner.end && source[at + 1] == source[at];
        if (twice && (source[at] == '{' || source[at] == '}')) {
            plain += source[at];
            at += 2;
            continue;
        }
        if (source[at] != '{') {
            const std::uint32_t end = plainEnd(source, at, inner.end, inner.raw);
            plain += decoded(token, at, end, inner.raw);
            at = end;
            continue;
        }
        flush();
        // The field ends at "!r", ":" or "}" outside of brackets and strings.
        PyScanner scanner(source.substr(0, inner.end), at + 1);
        int open = 0;
        std::uint32_t valueEnd = inner.end;
        for (PyToken piece = scanner.next(); piece.kind != PyTokenKind::End; piece = scanner.next()) {
            const char c = source[piece.begin];
            const bool single = piece.end - piece.begin == 1;
            if (open == 0 &&
                ((single && (c == '}' || c == ':' || c == '!')) || (c == ':' && piece.end - piece.begin == 2))) {
                valueEnd = piece.begin;
                break;
            }
            open += single && (c == '(' || c == '[' || c == '{')   ? 1
                    : single && (c == ')' || c == ']' || c == '}') ? -1
                                                                   : 0;
        }
        PyExpressionRules field(file_, at + 1, valueEnd, nesting_);
        PyExprPtr part = make(PyExprKind::Formatted, at);
        part->items.push_back(field.formattedField());
        std::uint32_t end = valueEnd;
        for (int braces = 1; end < inner.end; ++end) {
            braces += source[end] == '{' ? 1 : source[end] == '}' ? -1 : 0;
            if (braces == 0) {
                break;
            }
        }
        const std::size_t colon = source.substr(valueEnd, end - valueEnd).find(':');
        if (colon != std::string_view::npos) {
            extra(*part).text = std::string(source.substr(valueEnd + colon + 1, end - valueEnd - colon - 1));
        }
        target.items.push_back(finish(std::move(part)));
        target.items.back()->range = {at, std::min(end + 1, inner.end)};
        at = end + 1;
    }
    flush();
}

} // namespace vitrine::engine
