// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/sha256.h"

#include <gtest/gtest.h>

namespace vitrine::base {
namespace {

// FIPS 180-4 examples.
TEST(Sha256, KnownAnswers) {
    EXPECT_EQ(sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sha256Hex(std::string(1'000'000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesMakeNoDifference) {
    std::string text;
    for (int i = 0; i < 300; ++i) {
        text.push_back(static_cast<char>(i * 7));
    }
    for (std::size_t length = 0; length <= text.size(); ++length) {
        Sha256 pieces;
        for (std::size_t at = 0; at < length; at += 13) {
            pieces.add(std::string_view(text).substr(at, std::min<std::size_t>(13, length - at)));
        }
        EXPECT_EQ(pieces.hex(), sha256Hex(text.substr(0, length))) << length;
    }
}

} // namespace
} // namespace vitrine::base
