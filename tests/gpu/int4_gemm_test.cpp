// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// INT4 products of more than a few rows on tensor cores: every size of tile, groups of every kind, axes that end within
// a tile, and results of both types.

#include "tests/gpu/packed_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestWeight;

struct GemmCase {
    std::int64_t out, in;
    std::vector<std::int64_t> rows;
};

TEST(Int4GemmGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(31);
    // Few outputs: blocks share them. Many: each row count has tiles of its own (Int4Tiles::choose).
    const std::vector<GemmCase> cases{{2048 + 8, 4096, {16, 17, 63, 127}},
                                      {8192 + 64, 512, {9, 31, 64, 127, 250, 400}},
                                      {1000, 2880, {15, 33, 65, 128, 129, 600}}};
    for (const GemmCase& shape : cases) {
        std::vector<TestWeight> weights;
        weights.push_back(testing::integerWeight(random, shape.out, shape.in, {4, 32, DType::BF16, false, false}));
        weights.push_back(testing::integerWeight(random, shape.out, shape.in, {4, 128, DType::F16, true, false}));
        for (const TestWeight& weight : weights) {
            for (const std::int64_t rows : shape.rows) {
                testing::expectPackedProductAsOnTheCpu(random, weight, rows, DType::BF16, 16);
            }
        }
    }
}

TEST(Int4GemmGpu, GroupsOfEveryKindAndResultsOfFloats) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(32);
    for (const std::int64_t in : {768, 800}) {
        std::vector<TestWeight> weights;
        weights.push_back(testing::integerWeight(random, 520, in, {4, 64, DType::BF16, true, false}));
        weights.push_back(testing::integerWeight(random, 520, in, {4, 32, DType::F32, true, false}));
        weights.push_back(testing::integerWeight(random, 520, in, {4, 256, DType::BF16, false, false}));
        weights.push_back(testing::integerWeight(random, 520, in, {4, in, DType::F32, false, false}));
        for (const TestWeight& weight : weights) {
            for (const std::int64_t rows : {24, 100, 1100}) {
                testing::expectPackedProductAsOnTheCpu(random, weight, rows, DType::BF16, 16);
                testing::expectPackedProductAsOnTheCpu(random, weight, rows, DType::F32, 16);
            }
        }
    }
}

} // namespace
} // namespace vitrine::kernels
