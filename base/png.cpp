// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/png.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"

namespace vitrine::base {

namespace {

constexpr int kLongestSide = 32768;
constexpr std::string_view kSignature = "\x89PNG\r\n\x1A\n";
constexpr std::string_view kProgram("Software\0Vitrine", 16); ///< key and value of a tEXt chunk
constexpr std::size_t kStoredBlock = 65535;                   ///< of deflate

void append32(std::string& out, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
        out += static_cast<char>(value >> shift);
    }
}

std::uint32_t crc32(std::string_view bytes) {
    static const std::array<std::uint32_t, 256> kTable = [] {
        std::array<std::uint32_t, 256> table{};
        for (std::uint32_t i = 0; i < table.size(); ++i) {
            std::uint32_t value = i;
            for (int bit = 0; bit < 8; ++bit) {
                value = (value & 1U) != 0 ? 0xEDB88320U ^ (value >> 1) : value >> 1;
            }
            table[i] = value;
        }
        return table;
    }();
    std::uint32_t crc = 0xFFFFFFFFU;
    for (const char byte : bytes) {
        crc = kTable[(crc ^ static_cast<std::uint8_t>(byte)) & 0xFFU] ^ (crc >> 8);
    }
    return ~crc;
}

std::uint32_t adler32(std::string_view bytes) {
    std::uint32_t a = 1;
    std::uint32_t b = 0;
    for (const char byte : bytes) {
        a = (a + static_cast<std::uint8_t>(byte)) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

void appendChunk(std::string& out, std::string_view type, std::string_view data) {
    append32(out, static_cast<std::uint32_t>(data.size()));
    const std::size_t begin = out.size();
    out += type;
    out += data;
    append32(out, crc32(std::string_view(out).substr(begin)));
}

/// A zlib stream of stored blocks.
std::string stored(std::string_view bytes) {
    std::string out = "\x78\x01";
    for (std::size_t i = 0; i < bytes.size(); i += kStoredBlock) {
        const std::size_t size = std::min(kStoredBlock, bytes.size() - i);
        out += i + size == bytes.size() ? '\1' : '\0';
        for (const std::size_t value : {size, ~size}) {
            out += static_cast<char>(value & 0xFFU);
            out += static_cast<char>(value >> 8 & 0xFFU);
        }
        out += bytes.substr(i, size);
    }
    append32(out, adler32(bytes));
    return out;
}

} // namespace

std::string encodePng(int width, int height, std::span<const std::uint8_t> rgb) {
    const bool sides = width >= 1 && height >= 1 && width <= kLongestSide && height <= kLongestSide;
    const std::size_t rowBytes = sides ? static_cast<std::size_t>(width) * 3 : 0;
    if (!sides || rgb.size() != rowBytes * static_cast<std::size_t>(height)) {
        throw Internal("PNG: the pixels do not fit the picture's sides");
    }
    std::string rows;
    rows.reserve(rgb.size() + static_cast<std::size_t>(height));
    for (std::size_t begin = 0; begin < rgb.size(); begin += rowBytes) {
        rows += '\0'; // no filter
        rows.append(reinterpret_cast<const char*>(rgb.data() + begin), rowBytes);
    }
    std::string header;
    append32(header, static_cast<std::uint32_t>(width));
    append32(header, static_cast<std::uint32_t>(height));
    header += std::string_view("\x08\x02\x00\x00\x00", 5); // 8 bits, RGB
    std::string out(kSignature);
    appendChunk(out, "IHDR", header);
    appendChunk(out, "tEXt", kProgram);
    appendChunk(out, "IDAT", stored(rows));
    appendChunk(out, "IEND", "");
    return out;
}

bool isEncodedPng(std::string_view head) {
    constexpr std::size_t kHeaderChunk = 25;
    std::string program;
    appendChunk(program, "tEXt", kProgram);
    return head.starts_with(kSignature) && head.size() > kSignature.size() + kHeaderChunk &&
           head.substr(kSignature.size() + kHeaderChunk).starts_with(program);
}

} // namespace vitrine::base
