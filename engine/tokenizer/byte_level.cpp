// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/byte_level.h"

#include <array>

#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

namespace {

constexpr char32_t kFirstSubstitute = 0x100; // bytes that are not printable get U+0100, U+0101, ... in order

constexpr bool standsForItself(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<char32_t, 256> makeAlphabet() {
    std::array<char32_t, 256> codes{};
    char32_t next = kFirstSubstitute;
    for (unsigned byte = 0; byte < 256; ++byte) {
        codes[byte] = standsForItself(byte) ? byte : next++;
    }
    return codes;
}

constexpr std::array<char32_t, 256> kAlphabet = makeAlphabet();
constexpr std::size_t kCodes = 0x144; // one past the last substitute

constexpr std::array<int, kCodes> makeInverse() {
    std::array<int, kCodes> bytes{};
    bytes.fill(-1);
    for (int byte = 0; byte < 256; ++byte) {
        bytes[kAlphabet[static_cast<std::size_t>(byte)]] = byte;
    }
    return bytes;
}

constexpr std::array<int, kCodes> kInverse = makeInverse();

} // namespace

std::string bytesToAlphabet(std::string_view text) {
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    for (const char c : text) {
        appendUtf8(out, kAlphabet[static_cast<unsigned char>(c)]);
    }
    return out;
}

std::optional<std::string> alphabetToBytes(std::string_view piece) {
    std::string out;
    out.reserve(piece.size());
    for (std::size_t i = 0; i < piece.size();) {
        const char32_t code = nextCodePoint(piece, i);
        if (code >= kCodes || kInverse[code] < 0) {
            return std::nullopt;
        }
        out += static_cast<char>(kInverse[code]);
    }
    return out;
}

} // namespace vitrine::engine
