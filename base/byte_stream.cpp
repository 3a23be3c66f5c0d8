// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/byte_stream.h"

#include <cstring>
#include <fmt/format.h>

namespace vitrine::base {

void ByteWriter::putUnsigned(std::uint64_t value) {
    while (value >= 0x80) {
        putByte(static_cast<std::uint8_t>(value | 0x80));
        value >>= 7;
    }
    putByte(static_cast<std::uint8_t>(value));
}

void ByteWriter::putSigned(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    putUnsigned((bits << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
}

void ByteWriter::putFixed(std::uint64_t value) {
    std::byte* const out = grow(sizeof value);
    for (std::size_t i = 0; i < sizeof value; ++i) {
        out[i] = static_cast<std::byte>(value >> (8 * i));
    }
}

void ByteWriter::putText(std::string_view text) {
    putUnsigned(text.size());
    putBytes(std::as_bytes(std::span(text)));
}

std::span<const std::byte> ByteReader::take(std::uint64_t count) {
    if (count > bytes_.size()) {
        throw damaged("ends too early");
    }
    const std::span<const std::byte> taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
}

std::uint64_t ByteReader::takeUnsigned() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < kMaxVarintBytes; ++i) {
        const std::uint64_t byte = takeByte();
        // The tenth byte has room for one bit.
        if (i + 1 == kMaxVarintBytes && byte > 1) {
            break;
        }
        value |= (byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            return value;
        }
    }
    throw damaged("a number is too large");
}

std::int64_t ByteReader::takeSigned() {
    const std::uint64_t bits = takeUnsigned();
    return static_cast<std::int64_t>((bits >> 1) ^ ((bits & 1) != 0 ? ~std::uint64_t{0} : 0));
}

std::uint64_t ByteReader::takeFixed() {
    const std::span<const std::byte> bytes = take(sizeof(std::uint64_t));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        value |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    }
    return value;
}

std::string ByteReader::takeText() {
    const std::span<const std::byte> text = take(takeUnsigned());
    return {reinterpret_cast<const char*>(text.data()), text.size()};
}

void ByteReader::expectEnd() const {
    if (!bytes_.empty()) {
        throw damaged("has more bytes than it should");
    }
}

BadInput ByteReader::damaged(std::string_view why) const {
    return BadInput(fmt::format("{}: {}; the data are damaged", name_, why));
}

} // namespace vitrine::base
