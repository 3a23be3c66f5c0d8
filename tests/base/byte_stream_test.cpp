// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/byte_stream.h"

#include <gtest/gtest.h>
#include <limits>

namespace vitrine::base {
namespace {

constexpr std::uint64_t kMaxUnsigned = std::numeric_limits<std::uint64_t>::max();
constexpr std::int64_t kMinSigned = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMaxSigned = std::numeric_limits<std::int64_t>::max();

TEST(ByteStream, RoundTrips) {
    ByteWriter out;
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, kMaxUnsigned}) {
        out.putUnsigned(value);
        out.putFixed(value);
    }
    for (const std::int64_t value : {kMinSigned, std::int64_t{-1}, std::int64_t{0}, std::int64_t{64}, kMaxSigned}) {
        out.putSigned(value);
    }
    out.putText("Grüße");
    out.putText("");
    out.putByte(200);
    ByteReader in(out.bytes(), "test");
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, kMaxUnsigned}) {
        EXPECT_EQ(in.takeUnsigned(), value);
        EXPECT_EQ(in.takeFixed(), value);
    }
    for (const std::int64_t value : {kMinSigned, std::int64_t{-1}, std::int64_t{0}, std::int64_t{64}, kMaxSigned}) {
        EXPECT_EQ(in.takeSigned(), value);
    }
    EXPECT_EQ(in.takeText(), "Grüße");
    EXPECT_EQ(in.takeText(), "");
    EXPECT_THROW(in.expectEnd(), BadInput);
    EXPECT_EQ(in.takeByte(), 200);
    EXPECT_NO_THROW(in.expectEnd());
}

TEST(ByteStream, NothingIsReadBeyondTheEnd) {
    const std::vector<std::byte> bytes(3, std::byte{0xFF});
    EXPECT_THROW(ByteReader(bytes, "test").take(4), BadInput);
    EXPECT_THROW(ByteReader(bytes, "test").take(kMaxUnsigned), BadInput);
    EXPECT_THROW(ByteReader(bytes, "test").takeUnsigned(), BadInput);
    EXPECT_THROW(ByteReader(bytes, "test").takeFixed(), BadInput);
    EXPECT_THROW(ByteReader(bytes, "test").takeText(), BadInput);
    EXPECT_THROW(ByteReader({}, "test").takeByte(), BadInput);
}

TEST(ByteStream, AVarintOfMoreThan64BitsIsRefused) {
    std::vector<std::byte> bytes(9, std::byte{0xFF});
    bytes.push_back(std::byte{1});
    EXPECT_EQ(ByteReader(bytes, "test").takeUnsigned(), kMaxUnsigned);
    bytes.back() = std::byte{2};
    EXPECT_THROW(ByteReader(bytes, "test").takeUnsigned(), BadInput);
    bytes.back() = std::byte{0x81};
    bytes.push_back(std::byte{0});
    EXPECT_THROW(ByteReader(bytes, "test").takeUnsigned(), BadInput);
}

} // namespace
} // namespace vitrine::base
