// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/codec.h"

#include <gtest/gtest.h>
#include <random>

#include "base/error.h"

namespace vitrine::base {
namespace {

std::vector<std::byte> someBytes(std::size_t count, unsigned seed, unsigned values) {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) {
        byte = static_cast<std::byte>(random() % values);
    }
    return bytes;
}

TEST(Codec, RoundTrips) {
    for (const std::size_t count : {0U, 1U, 100U, 70000U, 1000000U}) {
        for (const unsigned values : {1U, 4U, 256U}) {
            const std::vector<std::byte> bytes = someBytes(count, 1, values);
            EXPECT_EQ(decompress(compress(bytes), count), bytes);
        }
    }
    const std::vector<std::byte> bytes = someBytes(5000, 2, 4);
    EXPECT_EQ(decompress(compress(bytes, 9), 5000), bytes);
}

TEST(Codec, RefusesMoreThanAllowed) {
    const std::vector<std::byte> packed = compress(someBytes(1000, 1, 2));
    EXPECT_THROW(decompress(packed, 999), BadInput);
    EXPECT_NO_THROW(decompress(packed, 1000));
}

TEST(Codec, RefusesOtherBytes) {
    EXPECT_THROW(decompress({}, 100), BadInput);
    EXPECT_THROW(decompress(someBytes(100, 3, 256), 1000), BadInput);
    std::vector<std::byte> two = compress(someBytes(100, 1, 2));
    const std::vector<std::byte> one = two;
    two.insert(two.end(), one.begin(), one.end());
    EXPECT_THROW(decompress(two, 1000), BadInput);
    std::vector<std::byte> longer = one;
    longer.push_back(std::byte{0});
    EXPECT_THROW(decompress(longer, 1000), BadInput);
}

TEST(Codec, AFalseSizeIsRefusedBeforeAnythingIsAllocated) {
    // Magic, descriptor "8-byte content size, one segment", size 2^60, one empty last raw block.
    std::vector<std::byte> frame;
    for (const unsigned byte : {0x28U, 0xB5U, 0x2FU, 0xFDU, 0xE0U, 0U, 0U, 0U, 0U, 0U, 0U, 0U, 0x10U, 1U, 0U, 0U}) {
        frame.push_back(static_cast<std::byte>(byte));
    }
    EXPECT_THROW(decompress(frame, std::size_t{1} << 62), BadInput);
}

TEST(Codec, DamageIsAnErrorOrOtherBytesOfAtMostTheLimit) {
    const std::vector<std::byte> packed = compress(someBytes(3000, 5, 7));
    std::mt19937 random(11);
    for (int round = 0; round < 5000; ++round) {
        std::vector<std::byte> damaged = packed;
        damaged[random() % damaged.size()] ^= static_cast<std::byte>(1 + random() % 255);
        if (random() % 4 == 0) {
            damaged.resize(random() % damaged.size());
        }
        try {
            EXPECT_LE(decompress(damaged, 4000).size(), 4000U);
        } catch (const BadInput&) {
        }
    }
}

TEST(Codec, ChecksumSeesEveryBitAndTheLength) {
    for (const std::size_t count : {1U, 7U, 8U, 9U, 40U}) {
        std::vector<std::byte> bytes = someBytes(count, 9, 256);
        const std::uint64_t sum = checksum64(bytes);
        for (std::size_t bit = 0; bit < count * 8; ++bit) {
            bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            EXPECT_NE(checksum64(bytes), sum);
            bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        }
        bytes.push_back(std::byte{0});
        EXPECT_NE(checksum64(bytes), sum);
    }
}

} // namespace
} // namespace vitrine::base
