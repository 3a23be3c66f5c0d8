// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/pack_weight.h"

#include <cmath>
#include <limits>

#include "kernels/ops/linear/weights.h"
#include "tests/kernels/ops/linear/pack_weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::PackForm;
using testing::PackRig;

unsigned codeAt(const PackRig& rig, std::size_t i) {
    const std::uint8_t byte = rig.data.view().as<const std::uint8_t>()[i / 2];
    return i % 2 == 0 ? byte & 15U : byte >> 4;
}

TEST(PackWeight, SevenIsTheRuleOfFakeInt4) {
    CpuContext context(3);
    std::mt19937 random(21);
    for (const std::int64_t group : {8, 32, 96}) {
        PackRig rig(random, {WeightFormat::Int4, group}, DType::F32, 2, 5, 96);
        testing::runOp(context, rig.onHost());
        const std::vector<double> x = rig.x.values(), scales = rig.scales.values();
        for (std::size_t begin = 0; begin < x.size(); begin += static_cast<std::size_t>(group)) {
            float largest = 0;
            for (std::size_t i = begin; i < begin + static_cast<std::size_t>(group); ++i) {
                largest = std::max(largest, std::abs(static_cast<float>(x[i])));
            }
            const float scale = std::max(largest / 7, 1e-5F);
            ASSERT_EQ(scales[begin / static_cast<std::size_t>(group)], scale);
            for (std::size_t i = begin; i < begin + static_cast<std::size_t>(group); ++i) {
                const float code = std::clamp(std::nearbyint(static_cast<float>(x[i]) / scale), -7.0F, 7.0F);
                ASSERT_EQ(static_cast<int>(codeAt(rig, i)) - 8, code) << "value " << i;
            }
        }
    }
}

TEST(PackWeight, InBfloat16TheWeightAndTheScaleAreRounded) {
    CpuContext context(1);
    std::mt19937 random(22);
    PackForm form;
    form.type = DType::BF16;
    PackRig rig(random, form, DType::F32, 1, 1, 32);
    rig.x.fill(std::vector<double>(32, 0.0));
    rig.x.view().as<float>()[0] = 1.001F;  // 1 in BF16
    rig.x.view().as<float>()[1] = 0.2146F; // 1.5 times the scale as BF16 has it, and 1.4999 as float32
    testing::runOp(context, rig.onHost());
    EXPECT_EQ(rig.scales.values()[0], 0.142578125) << "1 / 7";
    const NearestBf16 round;
    EXPECT_EQ(static_cast<int>(codeAt(rig, 1)) - 8, std::nearbyint(round(0.2146F) / 0.142578125F));
    EXPECT_EQ(codeAt(rig, 0), 15U);
}

TEST(PackWeight, CountsTheCodesThatChanged) {
    CpuContext context(2);
    std::mt19937 random(23);
    for (const PackForm& form : {PackForm{}, PackForm{WeightFormat::Fp8, 32, 16}, PackForm{WeightFormat::Mxfp4}}) {
        PackRig rig(random, form, DType::BF16, 2, 33, 64);
        testing::runOp(context, rig.onHost());
        const std::int64_t first = rig.changes();
        EXPECT_GT(first, 2 * 33 * 64 / 2) << "random bytes stood there";
        testing::runOp(context, rig.onHost());
        EXPECT_EQ(rig.changes(), first) << "the same values have the same codes";
        const std::uint8_t before = rig.data.view().as<std::uint8_t>()[77]++;
        testing::runOp(context, rig.onHost());
        EXPECT_EQ(rig.data.view().as<std::uint8_t>()[77], before);
        EXPECT_EQ(rig.changes(), first + (form.format != WeightFormat::Fp8 && before % 16 == 15 ? 2 : 1));
    }
}

TEST(PackWeight, WhatIsNoNumberStaysNone) {
    CpuContext context(1);
    std::mt19937 random(24);
    for (const PackForm& form : {PackForm{}, PackForm{WeightFormat::Fp8, 32, 2}, PackForm{WeightFormat::Mxfp4}}) {
        for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
            PackRig rig(random, form, DType::F32, 1, 4, 64);
            rig.x.view().as<float>()[64 + 40] = bad;
            const PackWeight op = rig.onHost();
            testing::runOp(context, op);
            testing::TestTensor out(DType::F32, rig.shape);
            testing::runOp(context, Dequantize{op.out, out});
            EXPECT_TRUE(std::isnan(out.values()[64 + 40]));
            EXPECT_TRUE(std::isfinite(out.values()[3 * 64 + 40]));
            EXPECT_TRUE(std::isfinite(out.values()[64 + 3])) << "the other group of the row";
        }
    }
}

TEST(PackWeight, CheckRefusesWhatItCannotFill) {
    std::mt19937 random(25);
    PackRig rig(random, {}, DType::F32, 1, 4, 64);
    const PackWeight good = rig.onHost();
    check(good);
    const auto refused = [&](const char* field, const auto& damage) {
        PackWeight op = good;
        damage(op);
        testing::expectCheckNames(op, field);
    };
    refused("x", [](PackWeight& op) { op.x.shape = Shape{1, 8, 32}; });
    refused("out", [](PackWeight& op) { op.out.group = 48; });
    refused("type", [](PackWeight& op) { op.type = DType::I8; });
    refused("out.scales", [](PackWeight& op) { op.type = DType::BF16; });
    refused("changed", [](PackWeight& op) { op.changed.dtype = DType::F32; });
}

} // namespace
} // namespace vitrine::kernels
