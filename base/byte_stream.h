// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Bytes written and read one value after the other: little-endian words, LEB128 varints, zigzag for signed values,
// texts as a varint size and their bytes. The reader checks every step and throws BadInput "NAME: what".
// Not thread-safe; the reader borrows the bytes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace vitrine::base {

inline constexpr std::size_t kMaxVarintBytes = 10;

class ByteWriter {
public:
    void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
    void putByte(std::uint8_t value) { bytes_.push_back(static_cast<std::byte>(value)); }
    void putBytes(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    void putUnsigned(std::uint64_t value);
    void putSigned(std::int64_t value);
    void putFixed(std::uint64_t value);
    void putText(std::string_view text);

    /// Appends `count` bytes for the caller to fill; the pointer holds until the next call.
    std::byte* grow(std::size_t count) {
        bytes_.resize(bytes_.size() + count);
        return bytes_.data() + bytes_.size() - count;
    }

    std::span<const std::byte> bytes() const { return bytes_; }
    std::vector<std::byte> release() { return std::move(bytes_); }

private:
    std::vector<std::byte> bytes_;
};

class ByteReader {
public:
    ByteReader(std::span<const std::byte> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

    std::size_t remaining() const { return bytes_.size(); }
    std::span<const std::byte> take(std::uint64_t count);
    std::uint8_t takeByte() { return static_cast<std::uint8_t>(take(1)[0]); }
    std::uint64_t takeUnsigned();
    std::int64_t takeSigned();
    std::uint64_t takeFixed();
    std::string takeText();

    /// A reader of the next `count` bytes, which this one skips.
    ByteReader sub(std::uint64_t count) { return ByteReader(take(count), name_); }

    /// Throws unless everything has been read.
    void expectEnd() const;

    /// "NAME: why; the data are damaged"
    BadInput damaged(std::string_view why) const;

private:
    std::span<const std::byte> bytes_;
    std::string name_;
};

} // namespace vitrine::base
