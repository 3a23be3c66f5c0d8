// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/int4_tiles.h"

#include <gtest/gtest.h>

namespace vitrine::kernels {
namespace {

constexpr std::int64_t kMultiprocessors = 132;

TEST(Int4Tiles, FewRowsTakeTheNarrowestTilesThatHoldThem) {
    for (const auto& [rows, columns] : {std::pair{9, 16}, {16, 16}, {17, 32}, {32, 32}, {33, 64}, {64, 64}}) {
        const Int4Tiles tiles = Int4Tiles::choose(rows, 8192, 8192, kMultiprocessors);
        EXPECT_EQ(tiles.columns, columns) << rows;
        EXPECT_EQ(tiles.split, 2) << rows;
        EXPECT_EQ(tiles.parts, 1) << rows; // 128 blocks are there without
    }
}

TEST(Int4Tiles, BlocksShareFewOutputs) {
    EXPECT_EQ(Int4Tiles::choose(32, 14336, 4096, kMultiprocessors).parts, 2);
    EXPECT_EQ(Int4Tiles::choose(32, 14336, 28672, kMultiprocessors).parts, 1);
    EXPECT_EQ(Int4Tiles::choose(32, 1024, 4096, kMultiprocessors).parts, 1) << "too short to be shared";
}

TEST(Int4Tiles, ManyRowsTakeTwoRowTilesWhereTheyFit) {
    const Int4Tiles tall = Int4Tiles::choose(4096, 8192, 8192, kMultiprocessors);
    EXPECT_EQ(tall.rowTiles, 2);
    EXPECT_EQ(tall.outputs(), 256);
    const Int4Tiles low = Int4Tiles::choose(4096, 8192, 8192, kMultiprocessors, false);
    EXPECT_EQ(low.rowTiles, 1);
    EXPECT_EQ(low.outputs(), 128);
}

} // namespace
} // namespace vitrine::kernels
