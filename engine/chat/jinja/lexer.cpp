// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The rules are those of Jinja 2.11 and later (its documentation, "Template Designer Documentation").
#include "engine/chat/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <optional>

#include "base/error.h"
#include "engine/chat/jinja/python_text.h"

namespace vitrine::engine::jinja {

namespace {

bool isDigit(char c) {
    return c >= '0' && c <= '9';
}
bool isNameStart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

/// Newlines as \n, and without the one that ends the text.
std::string normalized(std::string_view source) {
    std::string out;
    out.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            out += source[i];
        } else if (i + 1 == source.size() || source[i + 1] != '\n') {
            out += '\n';
        }
    }
    if (out.ends_with('\n')) {
        out.pop_back();
    }
    return out;
}

class Lexer {
public:
    explicit Lexer(std::string_view source) : source_(normalized(source)), text_(source_) {}

    std::vector<Token> run() {
        while (at_ < text_.size()) {
            readRoot();
        }
        add(TokenKind::End, {});
        return std::move(tokens_);
    }

private:
    Place place() {
        while (counted_ < at_) {
            if (text_[counted_] == '\n') {
                ++place_.line;
                place_.column = 0;
            }
            // Columns count characters.
            place_.column += (static_cast<unsigned char>(text_[counted_]) & 0xC0U) != 0x80U || text_[counted_] == '\n';
            ++counted_;
        }
        return place_;
    }

    Token& add(TokenKind kind, std::string text) {
        tokens_.push_back({kind, std::move(text), place(), 0, 0});
        return tokens_.back();
    }

    bool startsWith(std::string_view what) const { return text_.substr(at_).starts_with(what); }

    void skipSpace() {
        while (at_ < text_.size() && spaceBytesAt(text_, at_) > 0) {
            at_ += spaceBytesAt(text_, at_);
        }
    }

    /// Data up to the next tag, then the tag's beginning.
    void readRoot() {
        std::size_t tag = at_;
        while (tag < text_.size() && !(text_[tag] == '{' && tag + 1 < text_.size() &&
                                       (text_[tag + 1] == '%' || text_[tag + 1] == '{' || text_[tag + 1] == '#'))) {
            ++tag;
        }
        std::string_view data = text_.substr(at_, tag - at_);
        if (tag == text_.size()) {
            addData(data);
            at_ = tag;
            return;
        }
        const char kind = text_[tag + 1];
        const char sign = tag + 2 < text_.size() ? text_[tag + 2] : ' ';
        addData(strippedBefore(data, sign, kind != '{'));
        at_ = tag;
        const bool signedTag = sign == '-' || sign == '+';
        if (kind == '#') {
            readComment(signedTag);
        } else if (kind == '%' && readRaw(signedTag)) {
            return;
        } else {
            const Place begin = place();
            add(kind == '%' ? TokenKind::BlockBegin : TokenKind::VariableBegin, {});
            at_ += signedTag ? 3 : 2;
            readTag(kind == '%', begin);
        }
    }

    /// What is left of data before a tag. `lineTag`: lstrip_blocks counts.
    std::string_view strippedBefore(std::string_view data, char sign, bool lineTag) const {
        if (sign == '-') {
            return data.substr(0, trimmedEnd(data, 0, data.size()));
        }
        const std::size_t line = data.rfind('\n') + 1; // 0: there is no newline
        if (sign != '+' && lineTag && (line > 0 || lineStarts_) && line < data.size() &&
            trimmedEnd(data, line, data.size()) == line) {
            return data.substr(0, line);
        }
        return data;
    }

    void addData(std::string_view data) {
        if (!data.empty()) {
            add(TokenKind::Data, std::string(data));
        }
    }

    /// Behind "%}", "-%}" or "+%}" at `end` (of which `length` bytes belong to the tag).
    void leaveTag(std::size_t end, char sign, bool trimsNewline) {
        const std::size_t begin = at_;
        at_ = end;
        if (sign == '-') {
            skipSpace();
        } else if (sign != '+' && trimsNewline && at_ < text_.size() && text_[at_] == '\n') {
            ++at_;
        }
        lineStarts_ = at_ > begin && text_[at_ - 1] == '\n';
    }

    void readComment(bool signedTag) {
        const std::size_t end = text_.find("#}", at_ + (signedTag ? 3 : 2));
        if (end == std::string_view::npos) {
            failAt(place(), "this comment has no end; write #} behind it");
        }
        leaveTag(end + 2, signBefore(end, at_ + 2), true);
    }

    char signBefore(std::size_t end, std::size_t least) const {
        return end > least && (text_[end - 1] == '-' || text_[end - 1] == '+') ? text_[end - 1] : ' ';
    }

    /// "{% raw %}...{% endraw %}": all between is data. False when the tag is another one.
    bool readRaw(bool signedTag) {
        const std::optional<std::size_t> inner = endOfWordTag(at_ + (signedTag ? 3 : 2), "raw");
        if (!inner) {
            return false;
        }
        const Place begin = place();
        std::size_t from = *inner;
        if (text_[from - 3] == '-') {
            while (from < text_.size() && spaceBytesAt(text_, from) > 0) {
                from += spaceBytesAt(text_, from);
            }
        }
        lineStarts_ = text_[from - 1] == '\n';
        for (std::size_t tag = text_.find("{%", from); tag != std::string_view::npos; tag = text_.find("{%", tag + 1)) {
            const char sign = tag + 2 < text_.size() ? text_[tag + 2] : ' ';
            const std::optional<std::size_t> end = endOfWordTag(tag + (sign == '-' || sign == '+' ? 3 : 2), "endraw");
            if (end) {
                addData(strippedBefore(text_.substr(from, tag - from), sign, true));
                leaveTag(*end, text_[*end - 3], true);
                return true;
            }
        }
        failAt(begin, "this raw block has no end; write {% endraw %} behind it");
    }

    /// Behind the tag "WORD %}" (with white space and a sign) whose word begins at `from`.
    std::optional<std::size_t> endOfWordTag(std::size_t from, std::string_view word) const {
        const auto skip = [&] {
            while (from < text_.size() && spaceBytesAt(text_, from) > 0) {
                from += spaceBytesAt(text_, from);
            }
        };
        skip();
        if (!text_.substr(from).starts_with(word)) {
            return std::nullopt;
        }
        from += word.size();
        skip();
        if (from < text_.size() && (text_[from] == '-' || text_[from] == '+')) {
            ++from;
        }
        return text_.substr(from).starts_with("%}") ? std::optional(from + 2) : std::nullopt;
    }

    void readTag(bool block, Place begin) {
        const std::string_view close = block ? "%}" : "}}";
        std::string open; // brackets that wait for their partner
        while (true) {
            skipSpace();
            if (at_ >= text_.size()) {
                failAt(begin,
                       block ? "this tag has no end; write %} behind it" : "this tag has no end; write }} behind it");
            }
            if (open.empty()) {
                const bool minus = startsWith("-") && text_.substr(at_ + 1).starts_with(close);
                const bool plus = block && startsWith("+") && text_.substr(at_ + 1).starts_with(close);
                if (minus || plus || startsWith(close)) {
                    add(block ? TokenKind::BlockEnd : TokenKind::VariableEnd, {});
                    leaveTag(at_ + close.size() + (minus || plus ? 1 : 0), minus ? '-' : plus ? '+' : ' ', block);
                    return;
                }
            }
            readToken(open);
        }
    }

    void readToken(std::string& open) {
        const char c = text_[at_];
        if (isNameStart(c)) {
            readName();
        } else if (isDigit(c)) {
            readNumber();
        } else if (c == '\'' || c == '"') {
            readString(c);
        } else {
            readOperator(open);
        }
    }

    void readName() {
        std::size_t end = at_;
        while (end < text_.size() && (isNameStart(text_[end]) || isDigit(text_[end])) &&
               spaceBytesAt(text_, end) == 0) {
            ++end;
        }
        if (end == at_) {
            failAt(place(), "this character is no part of an expression");
        }
        add(TokenKind::Name, std::string(text_.substr(at_, end - at_)));
        at_ = end;
    }

    std::string digitsAt(std::size_t& end) const {
        std::string digits;
        while (end < text_.size() && (isDigit(text_[end]) || (text_[end] == '_' && !digits.empty() &&
                                                              end + 1 < text_.size() && isDigit(text_[end + 1])))) {
            digits += text_[end] == '_' ? "" : std::string(1, text_[end]);
            ++end;
        }
        return digits;
    }

    void readNumber() {
        std::size_t end = at_;
        int base = 10;
        std::string digits;
        if (text_[at_] == '0' && at_ + 2 < text_.size() &&
            std::string_view("xXoObB").find(text_[at_ + 1]) != std::string_view::npos) {
            base = (text_[at_ + 1] | 0x20) == 'x' ? 16 : (text_[at_ + 1] | 0x20) == 'o' ? 8 : 2;
            for (end = at_ + 2; end < text_.size() &&
                                (std::isxdigit(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_');
                 ++end) {
                digits += text_[end] == '_' ? "" : std::string(1, text_[end]);
            }
        } else {
            digits = digitsAt(end);
        }
        bool real = false;
        const bool afterDot =
            !tokens_.empty() && tokens_.back().text == "." && tokens_.back().kind == TokenKind::Operator;
        if (base == 10 && !afterDot && end + 1 < text_.size() && text_[end] == '.' && isDigit(text_[end + 1])) {
            real = true;
            digits += '.' + digitsAt(++end);
        }
        if (base == 10 && !afterDot && end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
            std::size_t exponent = end + 1;
            std::string sign;
            if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) {
                sign = text_[exponent++];
            }
            if (exponent < text_.size() && isDigit(text_[exponent])) {
                real = true;
                digits += 'e' + sign + digitsAt(exponent);
                end = exponent;
            }
        }
        Token& token = add(real ? TokenKind::Real : TokenKind::Integer, digits);
        const char* first = token.text.data();
        const char* last = first + token.text.size();
        // from_chars takes no plus sign, and none is there.
        const auto [stop, problem] =
            real ? std::from_chars(first, last, token.real) : std::from_chars(first, last, token.integer, base);
        if (problem != std::errc() || stop != last) {
            failAt(token.place, fmt::format("the number {} is malformed or too large", token.text.substr(0, 40)));
        }
        at_ = end;
    }

    void readString(char quote) {
        std::size_t end = at_ + 1;
        while (end < text_.size() && text_[end] != quote) {
            end += text_[end] == '\\' ? 2 : 1;
        }
        if (end >= text_.size()) {
            failAt(place(), "this string has no end");
        }
        const Place begin = place();
        std::optional<std::string> value = unescaped(text_.substr(at_ + 1, end - at_ - 1));
        if (!value) {
            failAt(begin, "this string has an escape that is not known");
        }
        add(TokenKind::String, std::move(*value));
        at_ = end + 1;
    }

    void readOperator(std::string& open) {
        constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                                 "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                                 ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
        const auto found = std::ranges::find_if(kOperators, [&](std::string_view each) { return startsWith(each); });
        if (found == kOperators.end()) {
            failAt(place(), fmt::format("the character {} is no part of an expression", text_[at_]));
        }
        const char c = (*found)[0];
        if (c == '(' || c == '[' || c == '{') {
            open += c == '(' ? ')' : c == '[' ? ']' : '}';
        } else if (c == ')' || c == ']' || c == '}') {
            if (open.empty() || open.back() != c) {
                failAt(place(), fmt::format("{} has no partner", c));
            }
            open.pop_back();
        }
        add(TokenKind::Operator, std::string(*found));
        at_ += found->size();
    }

    std::string source_;
    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t counted_ = 0; ///< place_ is that of this byte
    Place place_;
    bool lineStarts_ = true; ///< what was read last ended with a newline
    std::vector<Token> tokens_;
};

} // namespace

void failAt(Place place, std::string_view what) {
    throw base::BadInput(fmt::format("line {}, column {}: {}", place.line, place.column, what));
}

std::vector<Token> tokenize(std::string_view source) {
    return Lexer(source).run();
}

} // namespace vitrine::engine::jinja
