// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/jinja/python_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine::jinja {

namespace {

constexpr int kDeepestPrint = 200;

/// Number of hexadecimal digits at the beginning as a code point; nothing when there are fewer or it is none.
std::optional<char32_t> hexOf(std::string_view digits, std::size_t count) {
    std::uint32_t value = 0;
    if (digits.size() < count) {
        return std::nullopt;
    }
    const char* const last = digits.data() + count;
    const auto [end, problem] = std::from_chars(digits.begin(), last, value, 16);
    const bool good = problem == std::errc() && end == last && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
    return good ? std::optional<char32_t>(value) : std::nullopt;
}

/// Reads the escape whose backslash stands before `at`, and moves `at` behind it.
bool readEscape(std::string_view literal, std::size_t& at, std::string& out) {
    constexpr std::string_view kNames = "\\'\"abfnrtv";
    constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
    const char c = literal[at++];
    if (const std::size_t known = kNames.find(c); known != std::string_view::npos) {
        out += kValues[known];
        return true;
    }
    if (c == '\n') {
        return true; // a line that goes on
    }
    if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        const std::optional<char32_t> value = hexOf(literal.substr(at), count);
        if (value) {
            appendUtf8(out, *value);
            at += count;
        }
        return value.has_value();
    }
    if (c >= '0' && c <= '7') {
        char32_t value = static_cast<char32_t>(c - '0');
        for (int i = 0; i < 2 && at < literal.size() && literal[at] >= '0' && literal[at] <= '7'; ++i) {
            value = value * 8 + static_cast<char32_t>(literal[at++] - '0');
        }
        appendUtf8(out, value);
        return true;
    }
    if (c == 'N') {
        return false;
    }
    out += '\\'; // Python keeps an escape that it does not know
    out += c;
    return true;
}

bool isPrintable(char32_t c) {
    return c >= 0x20 && c != 0x7F && !(c >= 0x80 && c <= 0xA0) && c != 0xAD && !(c > 0x20 && isPythonSpace(c)) &&
           !(c >= 0x200B && c <= 0x200F) && !(c >= 0x202A && c <= 0x202E) && !(c >= 0x2060 && c <= 0x206F) &&
           c != 0xFEFF && !(c >= 0xE000 && c <= 0xF8FF) && !(c >= 0xFFF0 && c <= 0xFFFB) && c < 0xE0000;
}

void appendQuoted(const Text& text, Text& out) {
    const bool single = text.bytes().find('\'') != std::string::npos && text.bytes().find('"') == std::string::npos;
    const char quote = single ? '"' : '\'';
    out.append(std::string_view(&quote, 1));
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        const char32_t c = nextCodePoint(text.bytes(), at);
        const Origin origin = text.originAt(begin);
        if (c == '\\' || c == static_cast<char32_t>(quote)) {
            out.append("\\", origin);
            out.append(text, begin, at);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            out.append(c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", origin);
        } else if (isPrintable(c)) {
            out.append(text, begin, at);
        } else {
            const auto value = static_cast<std::uint32_t>(c);
            out.append(c < 0x100     ? fmt::format("\\x{:02x}", value)
                       : c < 0x10000 ? fmt::format("\\u{:04x}", value)
                                     : fmt::format("\\U{:08x}", value),
                       origin);
        }
    }
    out.append(std::string_view(&quote, 1));
}

class Printer {
public:
    Text out;

    void print(const Value& value, bool quoted, int depth) {
        if (depth > kDeepestPrint) {
            throw base::BadInput("values are nested too deep to be printed");
        }
        switch (value.kind()) {
        case Kind::Undefined:
            out.append(quoted ? "Undefined" : "");
            return;
        case Kind::None:
            out.append("None");
            return;
        case Kind::Bool:
            out.append(value.integer() != 0 ? "True" : "False");
            return;
        case Kind::Int:
            out.append(fmt::format("{}", value.integer()));
            return;
        case Kind::Float:
            out.append(floatText(value.number()));
            return;
        case Kind::String:
            if (quoted) {
                appendQuoted(value.text(), out);
            } else {
                out.append(value.text());
            }
            return;
        default:
            printObject(value, depth);
        }
    }

private:
    void printItems(const std::vector<Value>& items, int depth) {
        for (std::size_t i = 0; i < items.size(); ++i) {
            out.append(i > 0 ? ", " : "");
            print(items[i], true, depth + 1);
        }
    }

    void printObject(const Value& value, int depth) {
        switch (value.kind()) {
        case Kind::List:
            out.append("[");
            printItems(value.sequence().items, depth);
            out.append("]");
            return;
        case Kind::Tuple:
            out.append("(");
            printItems(value.sequence().items, depth);
            out.append(value.sequence().items.size() == 1 ? ",)" : ")");
            return;
        case Kind::View:
            out.append("dict_view([");
            printItems(value.sequence().items, depth);
            out.append("])");
            return;
        case Kind::Dict:
        case Kind::Namespace:
            out.append(value.is(Kind::Namespace) ? "<Namespace {" : "{");
            printEntries(value.dict(), depth);
            out.append(value.is(Kind::Namespace) ? "}>" : "}");
            return;
        default:
            out.append(fmt::format("<{}>", typeName(value)));
        }
    }

    void printEntries(const Dict& dict, int depth) {
        bool first = true;
        for (const auto& [key, value] : dict.entries) {
            out.append(first ? "" : ", ");
            first = false;
            print(key, true, depth + 1);
            out.append(": ");
            print(value, true, depth + 1);
        }
    }
};

void appendJsonString(const Text& text, bool ascii, Text& out) {
    out.append("\"");
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        const char32_t c = nextCodePoint(text.bytes(), at);
        const Origin origin = text.originAt(begin);
        constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
        constexpr std::string_view kLetters = "\"\\nrtfb";
        const std::size_t known = c < 0x80 ? kShort.find(static_cast<char>(c)) : std::string_view::npos;
        if (known != std::string_view::npos) {
            out.append(std::string{'\\', kLetters[known]}, origin);
        } else if (c < 0x20 || (ascii && c > 0x7E && c < 0x10000)) {
            out.append(fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c)), origin);
        } else if (ascii && c >= 0x10000) {
            const std::uint32_t rest = static_cast<std::uint32_t>(c) - 0x10000;
            out.append(fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10U), 0xDC00 + (rest & 0x3FFU)), origin);
        } else {
            out.append(text, begin, at);
        }
    }
    out.append("\"");
}

class JsonWriter {
public:
    explicit JsonWriter(const JsonStyle& style)
        : style_(style), separator_(!style.itemSeparator.empty() ? style.itemSeparator
                                    : style.multiLine            ? ","
                                                                 : ", ") {}

    Text out;

    void write(const Value& value, int depth) {
        if (depth > kDeepestPrint) {
            throw base::BadInput("values are nested too deep for JSON");
        }
        switch (value.kind()) {
        case Kind::None:
            out.append("null");
            return;
        case Kind::Bool:
            out.append(value.integer() != 0 ? "true" : "false");
            return;
        case Kind::Int:
            out.append(fmt::format("{}", value.integer()));
            return;
        case Kind::Float:
            out.append(std::isnan(value.number())   ? "NaN"
                       : std::isinf(value.number()) ? (value.number() > 0 ? "Infinity" : "-Infinity")
                                                    : floatText(value.number()));
            return;
        case Kind::String:
            appendJsonString(value.text(), style_.ascii, out);
            return;
        case Kind::List:
        case Kind::Tuple:
            writeList(value.sequence().items, depth);
            return;
        case Kind::Dict:
            writeDict(value.dict(), depth);
            return;
        default:
            throw base::BadInput(fmt::format("{} cannot be written as JSON",
                                             value.is(Kind::Undefined) ? value.undefinedName() + " is undefined and"
                                                                       : std::string(typeName(value))));
        }
    }

private:
    void newLine(int depth) {
        if (style_.multiLine) {
            out.append("\n");
            for (int i = 0; i < depth; ++i) {
                out.append(style_.indent);
            }
        }
    }

    void writeList(const std::vector<Value>& items, int depth) {
        out.append("[");
        for (std::size_t i = 0; i < items.size(); ++i) {
            out.append(i > 0 ? separator_ : "");
            newLine(depth + 1);
            write(items[i], depth + 1);
        }
        if (!items.empty()) {
            newLine(depth);
        }
        out.append("]");
    }

    void writeDict(const Dict& dict, int depth) {
        std::vector<std::pair<Value, Value>> entries = dict.entries;
        if (style_.sortKeys) {
            std::ranges::stable_sort(entries, [](const auto& a, const auto& b) {
                return printed(a.first).bytes() < printed(b.first).bytes();
            });
        }
        out.append("{");
        bool first = true;
        for (const auto& [key, value] : entries) {
            out.append(first ? "" : separator_);
            first = false;
            newLine(depth + 1);
            writeKey(key);
            out.append(style_.keySeparator);
            write(value, depth + 1);
        }
        if (!entries.empty()) {
            newLine(depth);
        }
        out.append("}");
    }

    void writeKey(const Value& key) {
        if (key.is(Kind::String)) {
            appendJsonString(key.text(), style_.ascii, out);
            return;
        }
        if (!key.isNumber() && !key.is(Kind::None)) {
            throw base::BadInput(fmt::format("a key of type {} cannot be written as JSON", typeName(key)));
        }
        out.append("\"");
        write(key, 0);
        out.append("\"");
    }

    const JsonStyle& style_;
    std::string separator_;
};

} // namespace

bool isPythonSpace(char32_t c) {
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::size_t spaceBytesAt(std::string_view text, std::size_t position) {
    const auto first = static_cast<unsigned char>(text[position]);
    if (first < 0x80) {
        return isPythonSpace(first) ? 1 : 0;
    }
    std::size_t next = position;
    return isPythonSpace(nextCodePoint(text, next)) ? next - position : 0;
}

std::size_t trimmedBegin(std::string_view text, std::size_t begin, std::size_t end) {
    while (begin < end) {
        const std::size_t bytes = spaceBytesAt(text, begin);
        if (bytes == 0) {
            break;
        }
        begin += bytes;
    }
    return std::min(begin, end);
}

std::size_t trimmedEnd(std::string_view text, std::size_t begin, std::size_t end) {
    while (end > begin && isPythonSpace(codePointBefore(text, end))) {
        do {
            --end;
        } while ((static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U);
    }
    return end;
}

std::size_t byteOfIndex(std::string_view text, std::size_t index) {
    std::size_t at = 0;
    while (index > 0 && at < text.size()) {
        at += utf8Length(text[at]);
        --index;
    }
    return std::min(at, text.size());
}

std::optional<std::string> unescaped(std::string_view literal) {
    std::string out;
    for (std::size_t at = 0; at < literal.size();) {
        const char c = literal[at++];
        if (c != '\\') {
            out += c;
        } else if (at == literal.size() || !readEscape(literal, at, out)) {
            return std::nullopt;
        }
    }
    return out;
}

std::string floatText(double value) {
    if (std::isnan(value)) {
        return "nan";
    }
    if (std::isinf(value)) {
        return value > 0 ? "inf" : "-inf";
    }
    std::array<char, 64> buffer{};
    const auto scientific =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
    std::string text(buffer.data(), scientific.ptr);
    const std::size_t e = text.find('e');
    const int exponent = std::stoi(text.substr(e + 1));
    constexpr int kFirstScientific = 16; // Python's rule
    if (exponent < -4 || exponent >= kFirstScientific) {
        return text;
    }
    const auto fixed = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
    std::string out(buffer.data(), fixed.ptr);
    return out.find('.') == std::string::npos ? out + ".0" : out;
}

Text printed(const Value& value) {
    if (value.is(Kind::String)) {
        return value.text();
    }
    Printer printer;
    printer.print(value, false, 0);
    return std::move(printer.out);
}

Text represented(const Value& value) {
    Printer printer;
    printer.print(value, true, 0);
    return std::move(printer.out);
}

Text jsonText(const Value& value, const JsonStyle& style) {
    JsonWriter writer(style);
    writer.write(value, 0);
    return std::move(writer.out);
}

std::string_view typeName(const Value& value) {
    constexpr std::array<std::string_view, 14> kNames = {"undefined", "NoneType",  "bool",  "int",     "float",
                                                         "str",       "list",      "tuple", "view",    "generator",
                                                         "dict",      "namespace", "loop",  "function"};
    return kNames[static_cast<std::size_t>(value.kind())];
}

} // namespace vitrine::engine::jinja
