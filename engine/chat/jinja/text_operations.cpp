// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/jinja/text_operations.h"

#include <algorithm>
#include <limits>

#include "engine/chat/jinja/python_text.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine::jinja {

namespace {

constexpr std::int64_t kWidest = std::int64_t{1} << 20;

bool isCased(std::string_view character) {
    return toLowercase(character) != toUppercase(character);
}

bool isInClass(std::string_view character, char32_t c, CharacterClass wanted) {
    switch (wanted) {
    case CharacterClass::Alphanumeric:
        return isNumeric(c) || isLetter(c);
    case CharacterClass::Letters:
        return isLetter(c);
    case CharacterClass::Ascii:
        return c < 0x80;
    case CharacterClass::Digits:
        return isDecimal(c);
    case CharacterClass::Numbers:
        return isNumeric(c);
    case CharacterClass::Lower:
        return !isCased(character) || toLowercase(character) == character;
    case CharacterClass::Upper:
        return !isCased(character) || toUppercase(character) == character;
    case CharacterClass::Spaces:
        return isPythonSpace(c);
    }
    return false;
}

} // namespace

Text withCase(const Text& text, CaseChange change) {
    Text out;
    bool wordGoesOn = false;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = at + utf8Length(text.bytes()[at]);
        const std::string_view character = std::string_view(text.bytes()).substr(at, end - at);
        const bool begins = change == CaseChange::Capitalize ? at == 0 : change == CaseChange::Title && !wordGoesOn;
        const bool upper =
            change == CaseChange::Upper || (change == CaseChange::Swap && toLowercase(character) == character);
        out.append(begins                       ? toTitlecase(character)
                   : upper                      ? toUppercase(character)
                   : change == CaseChange::Fold ? foldCase(character)
                                                : toLowercase(character),
                   text.originAt(at));
        wordGoesOn = isCased(character);
        at = end;
    }
    return out;
}

bool consistsOf(std::string_view text, CharacterClass wanted) {
    bool any = wanted == CharacterClass::Ascii;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        const char32_t c = nextCodePoint(text, at);
        const std::string_view character = text.substr(begin, at - begin);
        if (!isInClass(character, c, wanted)) {
            return false;
        }
        const bool cased = wanted == CharacterClass::Lower || wanted == CharacterClass::Upper;
        any = any || !cased || isCased(character);
    }
    return any;
}

Text stripped(const Text& text, const std::string* letters, bool left, bool right) {
    const std::string& bytes = text.bytes();
    std::size_t begin = 0;
    std::size_t end = bytes.size();
    if (letters == nullptr) {
        begin = left ? trimmedBegin(bytes, 0, end) : 0;
        end = right ? trimmedEnd(bytes, begin, end) : end;
        return text.part(begin, end);
    }
    const auto isOneOf = [&](std::size_t at, std::size_t length) {
        const std::string_view wanted = std::string_view(bytes).substr(at, length);
        for (std::size_t i = 0; i < letters->size(); i += utf8Length((*letters)[i])) {
            if (std::string_view(*letters).substr(i, utf8Length((*letters)[i])) == wanted) {
                return true;
            }
        }
        return false;
    };
    while (left && begin < end && isOneOf(begin, utf8Length(bytes[begin]))) {
        begin += utf8Length(bytes[begin]);
    }
    while (right && end > begin) {
        std::size_t last = end - 1;
        while (last > begin && (static_cast<unsigned char>(bytes[last]) & 0xC0U) == 0x80U) {
            --last;
        }
        if (!isOneOf(last, end - last)) {
            break;
        }
        end = last;
    }
    return text.part(begin, end);
}

std::vector<std::pair<std::size_t, std::size_t>> splitRanges(std::string_view text, const std::string* separator,
                                                             std::int64_t most, bool fromRight) {
    std::vector<std::pair<std::size_t, std::size_t>> parts;
    const std::int64_t limit = most < 0 ? std::numeric_limits<std::int64_t>::max() : most;
    std::size_t begin = 0;
    std::size_t end = text.size();
    const auto more = [&] { return static_cast<std::int64_t>(parts.size()) < limit; };
    if (separator != nullptr) {
        while (more()) {
            const std::size_t at = fromRight ? text.substr(0, end).rfind(*separator) : text.find(*separator, begin);
            if (at == std::string_view::npos) {
                break;
            }
            parts.emplace_back(fromRight ? at + separator->size() : begin, fromRight ? end : at);
            (fromRight ? end : begin) = fromRight ? at : at + separator->size();
        }
        parts.emplace_back(begin, end);
    } else if (!fromRight) {
        for (begin = trimmedBegin(text, 0, end); begin < end; begin = trimmedBegin(text, begin, end)) {
            std::size_t stop = begin;
            while (more() && stop < end && spaceBytesAt(text, stop) == 0) {
                stop += utf8Length(text[stop]);
            }
            stop = more() ? stop : end; // the rest keeps its white space
            parts.emplace_back(begin, stop);
            begin = stop;
        }
    } else {
        for (end = trimmedEnd(text, 0, end); end > 0; end = trimmedEnd(text, 0, end)) {
            std::size_t start = end;
            while (more() && start > 0 && !isPythonSpace(codePointBefore(text, start))) {
                do {
                    --start;
                } while ((static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80U);
            }
            start = more() ? start : 0;
            parts.emplace_back(start, end);
            end = start;
        }
    }
    if (fromRight) {
        std::ranges::reverse(parts);
    }
    return parts;
}

Text replaced(TemplateRun& run, const Text& text, std::string_view from, const Text& to, std::int64_t most) {
    Text out;
    std::size_t at = 0;
    for (std::int64_t done = 0; most < 0 || done < most; ++done) {
        std::size_t found = text.bytes().find(from, at);
        if (from.empty()) { // stands before every character and at the end
            found = done == 0 ? 0 : at < text.size() ? at + utf8Length(text.bytes()[at]) : std::string::npos;
        }
        if (found == std::string::npos) {
            break;
        }
        run.step();
        run.heap().charge(to.size());
        out.append(text, at, found);
        out.append(to);
        at = found + from.size();
    }
    out.append(text, at, text.size());
    return out;
}

Text padded(TemplateRun& run, const Text& text, std::int64_t width, std::string_view fill, int side) {
    const auto size = static_cast<std::int64_t>(countCodePoints(text.bytes()));
    const std::int64_t missing = std::max<std::int64_t>(width - size, 0);
    if (missing > kWidest) {
        run.fail("the width is too large");
    }
    // Python puts the odd one to the left where the width is odd.
    const std::int64_t left = side == 0 ? 0 : side == 1 ? missing : missing / 2 + (missing & width & 1);
    Text out;
    for (std::int64_t i = 0; i < left; ++i) {
        out.append(fill);
    }
    out.append(text);
    for (std::int64_t i = left; i < missing; ++i) {
        out.append(fill);
    }
    return out;
}

} // namespace vitrine::engine::jinja
