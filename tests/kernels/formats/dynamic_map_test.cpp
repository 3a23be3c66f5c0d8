// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/dynamic_map.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace vitrine::kernels {
namespace {

void expectAscending(const DynamicMap& map) {
    EXPECT_TRUE(std::is_sorted(map.begin(), map.end()));
    EXPECT_EQ(std::adjacent_find(map.begin(), map.end()), map.end()) << "two codes of one value";
    EXPECT_TRUE(std::binary_search(map.begin(), map.end(), 0.0F));
    EXPECT_EQ(map.back(), 1.0F);
}

TEST(DynamicMap, SignedHasBothSides) {
    const DynamicMap map = signedDynamicMap();
    expectAscending(map);
    EXPECT_EQ(map[127], 0.0F);
    EXPECT_NEAR(map[254], 0.9929688F, 1e-7F);
    EXPECT_NEAR(map[128], 5.5e-7F, 1e-13F);
    EXPECT_NEAR(map[129], 3.25e-6F, 1e-12F);
    for (std::size_t i = 0; i < 127; ++i) {
        EXPECT_EQ(map[i], -map[254 - i]);
    }
}

TEST(DynamicMap, UnsignedIsTwiceAsFine) {
    const DynamicMap map = unsignedDynamicMap();
    expectAscending(map);
    EXPECT_EQ(map[0], 0.0F);
    EXPECT_NEAR(map[1], 3.25e-7F, 1e-13F);
    EXPECT_NEAR(map[2], 7.75e-7F, 1e-13F);
    EXPECT_NEAR(map[254], 0.99648438F, 1e-7F);
}

} // namespace
} // namespace vitrine::kernels
