// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/png.h"

#include <gtest/gtest.h>
#include <vector>

#include "base/error.h"

namespace vitrine::base {
namespace {

std::uint32_t wordAt(const std::string& bytes, std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
    }
    return value;
}

TEST(Png, OnePixelByteForByte) {
    const std::vector<std::uint8_t> red{255, 0, 0};
    const std::string png = encodePng(1, 1, red);
    // Signature, IHDR of 13 bytes, tEXt of 16 bytes, IDAT of 15 bytes (zlib head 2, block head 5, row 4, checksum 4),
    // IEND.
    ASSERT_EQ(png.size(), 8U + 25 + 28 + 27 + 12);
    EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1A\n");
    EXPECT_EQ(wordAt(png, 8), 13U);
    EXPECT_EQ(png.substr(12, 4), "IHDR");
    EXPECT_EQ(wordAt(png, 29), 0x907753DEU) << "checksum of the header of a picture of 1 x 1 RGB pixels";
    EXPECT_EQ(wordAt(png, 33), 16U);
    EXPECT_EQ(png.substr(37, 20), std::string("tEXtSoftware\0Vitrine", 20));
    EXPECT_EQ(wordAt(png, 61), 15U);
    EXPECT_EQ(png.substr(69, 7), std::string("\x78\x01\x01\x04\x00\xFB\xFF", 7));
    EXPECT_EQ(png.substr(76, 4), std::string("\0\xFF\0\0", 4));
    EXPECT_EQ(wordAt(png, 80), 0x03010100U) << "Adler-32 of the row";
    EXPECT_EQ(png.substr(png.size() - 8, 4), "IEND");
    EXPECT_EQ(wordAt(png, png.size() - 4), 0xAE426082U);
}

TEST(Png, LargePicturesTakeSeveralBlocks) {
    const std::vector<std::uint8_t> pixels(3 * 200 * 300, 7);
    const std::string png = encodePng(200, 300, pixels);
    EXPECT_EQ(wordAt(png, 61), 2U + 3 * 5 + 300 * 601 + 4);
}

TEST(Png, KnowsItsOwn) {
    const std::string png = encodePng(1, 1, std::vector<std::uint8_t>(3));
    EXPECT_TRUE(isEncodedPng(png));
    std::string other = png;
    other.replace(other.find("Vitrine"), 7, "Another");
    EXPECT_FALSE(isEncodedPng(other));
    EXPECT_FALSE(isEncodedPng(png.substr(0, 33)));
}

TEST(Png, RefusesWrongSizes) {
    const std::vector<std::uint8_t> pixels(12);
    EXPECT_THROW(encodePng(2, 1, pixels), Internal);
    EXPECT_THROW(encodePng(0, 4, {}), Internal);
}

} // namespace
} // namespace vitrine::base
