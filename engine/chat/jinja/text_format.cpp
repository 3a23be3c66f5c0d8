// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/jinja/text_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

#include "engine/chat/jinja/python_text.h"
#include "engine/chat/jinja/text_operations.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine::jinja {

namespace {

constexpr std::int64_t kMostPlaces = 10'000;

/// What stands between the sign and the letter of a conversion.
struct Conversion {
    bool left = false, plus = false, space = false, zero = false, alternate = false, center = false;
    std::string fill = " ";
    std::int64_t width = 0;
    std::int64_t precision = -1;
    bool thousands = false;
    char type = 's';
};

std::int64_t readNumber(TemplateRun& run, std::string_view text, std::size_t& at) {
    std::int64_t value = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
        value = value * 10 + (text[at++] - '0');
        if (value > kMostPlaces) {
            run.fail("the format asks for too many places");
        }
    }
    return value;
}

std::string withThousands(std::string digits) {
    const std::size_t end = std::min(digits.find('.'), digits.size());
    const std::size_t begin = digits.starts_with('-') ? 1 : 0;
    for (std::size_t at = end; at > begin + 3; at -= 3) {
        digits.insert(at - 3, ",");
    }
    return digits;
}

std::string numberText(TemplateRun& run, const Value& value, const Conversion& how) {
    std::string out;
    const int places = static_cast<int>(how.precision < 0 ? 6 : how.precision);
    switch (how.type) {
    case 'd':
    case 'i':
    case 'u':
        if (!value.isNumber()) {
            run.fail(fmt::format("%d needs a number, not a value of type {}", typeName(value)));
        }
        out = fmt::format("{}", value.isWhole() ? value.integer() : run.wholeOf(value.number()));
        break;
    case 'x':
    case 'X':
    case 'o':
    case 'b': {
        const std::int64_t number = run.needInteger(value);
        const std::uint64_t size =
            number < 0 ? -static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
        out = (number < 0 ? "-" : "") + (how.type == 'x'   ? fmt::format("{:x}", size)
                                         : how.type == 'X' ? fmt::format("{:X}", size)
                                         : how.type == 'o' ? fmt::format("{:o}", size)
                                                           : fmt::format("{:b}", size));
        break;
    }
    default:
        if (!value.isNumber()) {
            run.fail(fmt::format("%{} needs a number, not a value of type {}", how.type, typeName(value)));
        }
        out = how.type == 'f' || how.type == 'F'   ? fmt::format("{:.{}f}", value.number(), places)
              : how.type == 'e' || how.type == 'E' ? fmt::format("{:.{}e}", value.number(), places)
              : how.type == '%'                    ? fmt::format("{:.{}f}%", value.number() * 100, places)
                                                   : fmt::format("{:.{}g}", value.number(), std::max(places, 1));
    }
    if (how.thousands) {
        out = withThousands(out);
    }
    if ((how.plus || how.space) && !out.starts_with('-')) {
        out.insert(0, how.plus ? "+" : " ");
    }
    return out;
}

Text fitted(TemplateRun& run, Text text, const Conversion& how, bool number) {
    if (!number && how.precision >= 0) {
        text = text.part(0, byteOfIndex(text.bytes(), static_cast<std::size_t>(how.precision)));
    }
    if (number && how.zero && !how.left) {
        const std::size_t sign = !text.empty() && (text.bytes()[0] == '-' || text.bytes()[0] == '+') ? 1 : 0;
        Text out = text.part(0, sign);
        out.append(padded(run, text.part(sign, text.size()), how.width - static_cast<std::int64_t>(sign), "0", 1));
        return out;
    }
    if (how.center) { // unlike str.center, the odd one stands on the right
        const auto size = static_cast<std::int64_t>(countCodePoints(text.bytes()));
        text = padded(run, text, size + std::max<std::int64_t>(how.width - size, 0) / 2, how.fill, 1);
    }
    return padded(run, text, how.width, how.fill, how.center || how.left ? 0 : 1);
}

bool isNumberType(char type) {
    return std::string_view("diuxXobeEfFgG%").find(type) != std::string_view::npos;
}

/// A format of str.format: "[[fill]align][sign][#][0][width][,][.precision][type]".
Conversion readBraceFormat(TemplateRun& run, std::string_view text, bool number) {
    Conversion how;
    how.left = !number;
    how.type = number ? 'g' : 's';
    std::size_t at = 0;
    const std::string_view aligns = "<>^=";
    const std::size_t fill = text.empty() ? 0 : utf8Length(text[0]);
    if (fill < text.size() && aligns.find(text[fill]) != std::string_view::npos) {
        how.fill = text.substr(0, fill);
        at = fill;
    }
    if (at < text.size() && aligns.find(text[at]) != std::string_view::npos) {
        how.left = text[at] == '<';
        how.center = text[at] == '^';
        ++at;
    }
    for (; at < text.size() && std::string_view("+- #").find(text[at]) != std::string_view::npos; ++at) {
        how.plus = how.plus || text[at] == '+';
        how.space = how.space || text[at] == ' ';
    }
    how.zero = at < text.size() && text[at] == '0';
    how.width = readNumber(run, text, at);
    if (at < text.size() && text[at] == ',') {
        how.thousands = true;
        ++at;
    }
    if (at < text.size() && text[at] == '.') {
        how.precision = readNumber(run, text, ++at);
    }
    if (at < text.size()) {
        how.type = text[at++];
    }
    if (at < text.size() || (how.type != 's' && !isNumberType(how.type))) {
        run.fail(fmt::format("the format \"{}\" is not known", text.substr(0, 40)));
    }
    return how;
}

/// The value of "0.name[key]".
Value fieldValue(TemplateRun& run, std::string_view field, const Call& call, std::size_t& next) {
    std::size_t at = std::min(field.find_first_of(".["), field.size());
    const std::string_view first = field.substr(0, at);
    Value value;
    std::size_t index = 0;
    const auto [end, problem] = std::from_chars(first.data(), first.data() + first.size(), index);
    if (first.empty() || (problem == std::errc() && end == first.data() + first.size())) {
        index = first.empty() ? next++ : index;
        if (index >= call.items.size()) {
            run.fail("the format has more fields than there are values");
        }
        value = call.items[index];
    } else {
        const auto found = std::ranges::find_if(call.keywords, [&](const auto& each) { return each.first == first; });
        if (found == call.keywords.end()) {
            run.fail(fmt::format("the format needs a value for {}", first));
        }
        value = found->second;
    }
    while (at < field.size()) {
        const bool bracket = field[at] == '[';
        const std::size_t stop =
            std::min(bracket ? field.find(']', at) : field.find_first_of(".[", at + 1), field.size());
        const std::string_view name = field.substr(at + 1, stop - at - 1);
        if (bracket && !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos) {
            std::int64_t number = 0;
            std::from_chars(name.data(), name.data() + name.size(), number);
            value = run.item(value, Value::integer(number));
        } else {
            value = bracket ? run.item(value, run.heap().string(std::string(name))) : run.attribute(value, name);
        }
        at = stop + (bracket ? 1 : 0);
    }
    return value;
}

} // namespace

Text percentFormat(TemplateRun& run, const Text& format, const Value& values) {
    Text out;
    std::size_t next = 0;
    const std::string& bytes = format.bytes();
    const auto take = [&]() -> Value {
        if (!values.is(Kind::Tuple)) {
            if (next++ > 0) {
                run.fail("the format has more fields than there are values");
            }
            return values;
        }
        if (next >= values.sequence().items.size()) {
            run.fail("the format has more fields than there are values");
        }
        return values.sequence().items[next++];
    };
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t sign = std::min(bytes.find('%', at), bytes.size());
        out.append(format, at, sign);
        at = sign + 1;
        if (sign == bytes.size()) {
            break;
        }
        run.step();
        std::optional<Value> named;
        if (at < bytes.size() && bytes[at] == '(') {
            const std::size_t end = bytes.find(')', at);
            if (end == std::string::npos || !values.is(Kind::Dict)) {
                run.fail("a format with names needs a dict");
            }
            named = run.item(values, run.heap().string(bytes.substr(at + 1, end - at - 1)));
            at = end + 1;
        }
        Conversion how;
        for (; at < bytes.size() && std::string_view("-+ 0#").find(bytes[at]) != std::string_view::npos; ++at) {
            how.left = how.left || bytes[at] == '-';
            how.plus = how.plus || bytes[at] == '+';
            how.space = how.space || bytes[at] == ' ';
            how.zero = how.zero || bytes[at] == '0';
        }
        how.width = readNumber(run, bytes, at);
        if (at < bytes.size() && bytes[at] == '.') {
            how.precision = readNumber(run, bytes, ++at);
        }
        if (at >= bytes.size()) {
            run.fail("the format ends inside a field");
        }
        how.type = bytes[at++];
        if (how.type == '%') {
            out.append("%");
            continue;
        }
        const Value value = named ? *named : take();
        if (how.type == 's' || how.type == 'r') {
            out.append(fitted(run, how.type == 's' ? printed(value) : represented(value), how, false));
        } else if (isNumberType(how.type)) {
            out.append(fitted(run, Text(numberText(run, value, how)), how, true));
        } else {
            run.fail(fmt::format("the format %{} is not known", how.type));
        }
    }
    if (values.is(Kind::Tuple) && next < values.sequence().items.size()) {
        run.fail("the format has fewer fields than there are values");
    }
    return out;
}

Text braceFormat(TemplateRun& run, const Text& format, const Call& call) {
    Text out;
    std::size_t next = 0;
    const std::string& bytes = format.bytes();
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
        out.append(format, at, brace);
        if (brace == bytes.size()) {
            break;
        }
        run.step();
        if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
            out.append(format, brace, brace + 1);
            at = brace + 2;
            continue;
        }
        const std::size_t end = bytes.find('}', brace);
        if (bytes[brace] == '}' || end == std::string::npos) {
            run.fail("the format has a brace without a partner");
        }
        const std::string_view inside = std::string_view(bytes).substr(brace + 1, end - brace - 1);
        const std::size_t colon = std::min(inside.find(':'), inside.size());
        const std::size_t mark = std::min(inside.substr(0, colon).find('!'), colon);
        const Value value = fieldValue(run, inside.substr(0, mark), call, next);
        const bool number = value.isNumber() && !value.is(Kind::Bool);
        const std::string_view how = inside.substr(std::min(colon + 1, inside.size()));
        const Text text = inside.substr(mark, 2) == "!r" ? represented(value) : printed(value);
        if (how.empty()) {
            out.append(text);
        } else {
            Conversion conversion = readBraceFormat(run, how, number);
            const bool asNumber =
                number && (conversion.type != 'g' || conversion.precision >= 0 || conversion.thousands);
            if (asNumber && conversion.type == 'g' && value.isWhole()) {
                conversion.type = 'd';
            }
            out.append(fitted(run, asNumber ? Text(numberText(run, value, conversion)) : text, conversion, number));
        }
        at = end + 1;
    }
    return out;
}

} // namespace vitrine::engine::jinja
