// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/expert_tiles.h"

#include <gtest/gtest.h>

#include "kernels/core/device_traits.h"
#include "kernels/ops/fused/expert_mlp_tiles.h"

namespace vitrine::kernels {
namespace {

/// A stack without memory: shapes and types decide.
WeightView int4Stack(std::int64_t experts, std::int64_t out, std::int64_t in, std::int64_t group) {
    WeightView weight;
    weight.format = WeightFormat::Int4;
    weight.data = TensorView{nullptr, DType::U8, Shape{experts, out, in / 2}, 0};
    weight.scales = TensorView{nullptr, DType::BF16, Shape{experts, out, (in + group - 1) / group}, 0};
    weight.group = group;
    weight.shape = Shape{experts, out, in};
    return weight;
}

bool inTiles(const WeightView& weight) {
    return multipliesInTiles({weight, {}, {}});
}

TEST(ExpertTiles, TakeInt4WhoseGroupsGoTogetherWithLoads) {
    for (const std::int64_t group : {32, 64, 128, 256, 384, 512}) {
        EXPECT_TRUE(inTiles(int4Stack(4, 64, 384, group))) << "group " << group;
    }
    EXPECT_FALSE(inTiles(int4Stack(4, 64, 384, 96)));
    EXPECT_FALSE(inTiles(int4Stack(4, 64, 384, 192)));
    EXPECT_FALSE(inTiles(int4Stack(4, 64, 384, 16)));
    EXPECT_FALSE(inTiles(int4Stack(4, 64, 368, 32)));
    EXPECT_FALSE(inTiles(int4Stack(4, 72, 384, 32)));
    WeightView ordered = int4Stack(4, 64, 384, 32);
    ordered.order = TensorView{&ordered, DType::I32, Shape{4, 384}, 0};
    EXPECT_FALSE(inTiles(ordered));
    WeightView inBlocks = int4Stack(4, 64, 384, 32);
    inBlocks.rowGroup = 64;
    EXPECT_FALSE(inTiles(inBlocks));
}

TEST(ExpertTiles, FewTokensLeaveInt4ToPairs) {
    EXPECT_FALSE(manyInTiles(4, int4Stack(8, 64, 384, 32)));
    EXPECT_TRUE(manyInTiles(5, int4Stack(8, 64, 384, 32)));
    WeightView dense;
    dense.shape = Shape{8, 64, 384};
    EXPECT_TRUE(manyInTiles(1, dense));
}

TEST(ExpertTiles, ScratchOfInt4ExpertsHoldsTheirTiles) {
    ExpertMlp op;
    op.x = TensorView{nullptr, DType::BF16, Shape{96, 384}, 0};
    op.ids = TensorView{nullptr, DType::I32, Shape{96, 2}, 0};
    op.weights = TensorView{nullptr, DType::F32, Shape{96, 2}, 0};
    op.gateUp.weight = int4Stack(4, 512, 384, 32);
    op.down.weight = int4Stack(4, 384, 256, 32);
    op.out = op.x;
    ASSERT_TRUE(ExpertMlpTiles::fits(op));
    DeviceTraits traits;
    traits.features = featuresOf("sm_90a");
    EXPECT_GE(scratch(op, traits), ExpertMlpTiles(op, ScratchLayout()).bytes);
    EXPECT_LT(scratch(op, DeviceTraits{}), ExpertMlpTiles(op, ScratchLayout()).bytes);
}

} // namespace
} // namespace vitrine::kernels
