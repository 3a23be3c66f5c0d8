// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/character_map.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/tokenizer/regex.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

namespace {

/// The bytes of base64 with its padding; nothing for text that is none.
std::optional<std::string> bytesOfBase64(std::string_view text) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (text.size() % 4 != 0) {
        return std::nullopt;
    }
    for (int i = 0; i < 2 && text.ends_with('='); ++i) {
        text.remove_suffix(1);
    }
    std::array<int, 256> values{};
    values.fill(-1);
    for (std::size_t i = 0; i < kDigits.size(); ++i) {
        values[static_cast<unsigned char>(kDigits[i])] = static_cast<int>(i);
    }
    std::string out;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
        const int value = values[static_cast<unsigned char>(c)];
        if (value < 0) {
            return std::nullopt;
        }
        bits = bits << 6U | static_cast<std::uint32_t>(value);
        count += 6;
        if (count >= 8) {
            count -= 8;
            out += static_cast<char>(bits >> static_cast<unsigned>(count) & 0xFFU);
        }
    }
    return out;
}

// The parts of a unit: the place of its children, the byte that leads to it, a value, and whether it ends a text.
std::uint32_t childrenOf(std::uint32_t unit) {
    return unit >> 10U << ((unit & (1U << 9U)) >> 6U);
}
std::uint32_t labelOf(std::uint32_t unit) {
    return unit & (1U << 31U | 0xFFU);
}
std::uint32_t valueOf(std::uint32_t unit) {
    return unit & ~(1U << 31U);
}
bool endsText(std::uint32_t unit) {
    return (unit >> 8U & 1U) != 0;
}

const Regex& graphemes() {
    static const Regex kGraphemes(R"(\X)", "Precompiled");
    return kGraphemes;
}

} // namespace

CharacterMap CharacterMap::read(const JsonField& field) {
    const auto bytes = bytesOfBase64(field.asString());
    CharacterMap map;
    if (!bytes) {
        field.bad("is not base64");
    }
    if (bytes->empty()) {
        return map;
    }
    std::uint32_t treeBytes = 0;
    if (bytes->size() < sizeof treeBytes) {
        field.bad("ends before its tree");
    }
    std::memcpy(&treeBytes, bytes->data(), sizeof treeBytes);
    if (treeBytes % sizeof(std::uint32_t) != 0 || treeBytes > bytes->size() - sizeof treeBytes) {
        field.bad("has a tree that is longer than the bytes");
    }
    map.units_.resize(treeBytes / sizeof(std::uint32_t));
    std::memcpy(map.units_.data(), bytes->data() + sizeof treeBytes, treeBytes);
    map.replacements_ = bytes->substr(sizeof treeBytes + treeBytes);
    if (!isValidUtf8(map.replacements_)) {
        field.bad("has replacements that are not valid UTF-8");
    }
    return map;
}

std::optional<std::string_view> CharacterMap::replacementOf(std::string_view text) const {
    if (units_.empty()) {
        return std::nullopt;
    }
    std::uint64_t at = childrenOf(units_[0]);
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        at ^= byte;
        if (byte == 0 || at >= units_.size() || labelOf(units_[at]) != byte) {
            return std::nullopt;
        }
        const std::uint32_t unit = units_[at];
        at ^= childrenOf(unit);
        if (!endsText(unit)) {
            continue;
        }
        const std::uint32_t place = at < units_.size() ? valueOf(units_[at]) : UINT32_MAX;
        if (place > replacements_.size()) {
            return std::nullopt; // a damaged tree
        }
        const std::string_view rest = std::string_view(replacements_).substr(place);
        const std::string_view found = rest.substr(0, rest.find('\0'));
        return isValidUtf8(found) ? std::optional(found) : std::nullopt;
    }
    return std::nullopt;
}

void CharacterMap::appendGrapheme(std::string_view grapheme, std::string& out) const {
    constexpr std::size_t kLongest = 5; // bytes of what is replaced as a whole
    if (grapheme.size() <= kLongest) {
        if (const auto whole = replacementOf(grapheme)) {
            out += *whole;
            return;
        }
    }
    for (std::size_t at = 0; at < grapheme.size();) {
        const std::string_view character = grapheme.substr(at, utf8Length(grapheme[at]));
        out += replacementOf(character).value_or(character);
        at += character.size();
    }
}

std::string CharacterMap::apply(std::string_view text, std::size_t mostBytes) const {
    if (units_.empty()) {
        return std::string(text);
    }
    std::string out;
    out.reserve(text.size());
    const bool plain =
        std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80 && c != '\r'; });
    if (plain) { // each character is a grapheme
        for (std::size_t at = 0; at < text.size() && out.size() <= mostBytes; ++at) {
            appendGrapheme(text.substr(at, 1), out);
        }
        return out;
    }
    for (const auto& [begin, end] : graphemes().findAll(text)) {
        if (out.size() > mostBytes) {
            break;
        }
        appendGrapheme(text.substr(begin, end - begin), out);
    }
    return out;
}

} // namespace vitrine::engine
