// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/pack_weight.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/ops/linear/weights.h"
#include "tests/kernels/ops/linear/pack_weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::PackBase;
using testing::PackForm;
using testing::PackRig;
using testing::TestTensor;

unsigned codeAt(const PackRig& rig, std::size_t i) {
    const std::uint8_t byte = rig.out.data.view().as<const std::uint8_t>()[i / 2];
    return i % 2 == 0 ? byte & 15U : byte >> 4;
}

TEST(PackWeight, SevenIsTheRuleOfFakeInt4) {
    CpuContext context(3);
    std::mt19937 random(21);
    for (const std::int64_t group : {8, 32, 96}) {
        PackRig rig(random, {WeightFormat::Int4, group}, DType::F32, 2, 5, 96);
        testing::runOp(context, rig.onHost());
        const std::vector<double> x = rig.x.values(), scales = rig.out.scales.values();
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
    EXPECT_EQ(rig.out.scales.values()[0], 0.142578125) << "1 / 7";
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
        const std::uint8_t before = rig.out.data.view().as<std::uint8_t>()[77]++;
        testing::runOp(context, rig.onHost());
        EXPECT_EQ(rig.out.data.view().as<std::uint8_t>()[77], before);
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
            const PackWeights op = rig.onHost();
            testing::runOp(context, op);
            testing::TestTensor out(DType::F32, rig.shape);
            testing::runOp(context, Dequantize{op.weights.front().out, out});
            EXPECT_TRUE(std::isnan(out.values()[64 + 40]));
            EXPECT_TRUE(std::isfinite(out.values()[3 * 64 + 40]));
            EXPECT_TRUE(std::isfinite(out.values()[64 + 3])) << "the other group of the row";
        }
    }
}

TEST(PackWeight, CheckRefusesWhatItCannotFill) {
    std::mt19937 random(25);
    PackRig rig(random, {}, DType::F32, 1, 4, 64);
    const PackWeight good = rig.weight([](TestTensor& tensor) { return tensor.view(); });
    check(PackWeights{{&good, 1}, {}});
    const auto refused = [&](const char* field, const auto& damage) {
        PackWeight weight = good;
        PackWeights op{{&weight, 1}, rig.changed.view()};
        damage(weight, op);
        testing::expectCheckNames(op, field);
    };
    refused("x", [](PackWeight& weight, PackWeights&) { weight.x.shape = weight.x.data.shape = Shape{1, 8, 32}; });
    refused("x", [](PackWeight& weight, PackWeights&) { weight.x.transposed = true; });
    refused("out", [](PackWeight& weight, PackWeights&) { weight.out.group = 48; });
    refused("type", [](PackWeight& weight, PackWeights&) { weight.type = DType::I8; });
    refused("out.scales", [](PackWeight& weight, PackWeights&) { weight.type = DType::BF16; });
    refused("changed", [](PackWeight&, PackWeights& op) { op.changed.dtype = DType::F32; });
    refused("values", [](PackWeight& weight, PackWeights&) { weight.values = weight.x.data; });
}

TEST(PackWeight, CheckRefusesOtherAdapters) {
    std::mt19937 random(26);
    PackRig rig(random, {WeightFormat::Mxfp4}, PackBase{DType::F32, WeightFormat::Mxfp4, 4}, 2, 8, 64);
    const PackWeight good = rig.weight([](TestTensor& tensor) { return tensor.view(); });
    check(PackWeights{{&good, 1}, {}});
    const auto refused = [&](const char* field, const auto& damage) {
        PackWeight weight = good;
        damage(weight);
        testing::expectCheckNames(PackWeights{{&weight, 1}, {}}, field);
    };
    refused("out", [](PackWeight& weight) { weight.out = weight.x; });
    refused("adapter.a", [](PackWeight& weight) { weight.adapter.a.shape = Shape{2, 4, 32}; });
    refused("adapter.b", [](PackWeight& weight) { weight.adapter.b.shape = Shape{2, 8, 3}; });
    refused("adapter.b", [](PackWeight& weight) { weight.adapter.b.dtype = DType::F32; });
}

/// Every format that a weight may have before, and every one that it may have then.
TEST(PackWeight, AnAdapterIsAddedBeforeTheValuesAreRounded) {
    std::mt19937 random(std::random_device{}());
    constexpr std::int64_t kExperts = 3, kOut = 37, kIn = 256, kRank = 5;
    for (const PackForm& form :
         {PackForm{}, PackForm{WeightFormat::Int4, 64, 1, DType::BF16, IntegerRule::CompressedTensors},
          PackForm{WeightFormat::Fp8, 32, 2}, PackForm{WeightFormat::Mxfp4}}) {
        for (const WeightFormat before : {WeightFormat::Dense, form.format}) {
            for (const DType adapter : {DType::F32, DType::BF16}) {
                SCOPED_TRACE(::testing::Message()
                             << static_cast<int>(before) << " to " << static_cast<int>(form.format));
                CpuContext context(2);
                PackRig rig(random, form, PackBase{DType::BF16, before, kRank, adapter, DType::F32}, kExperts, kOut,
                            kIn);
                const PackWeights op = rig.onHost();
                testing::runOp(context, op);
                TestTensor sum(DType::F32, rig.shape);
                float* const values = sum.view().as<float>();
                if (before == WeightFormat::Dense) {
                    const std::vector<double> x = rig.x.values();
                    std::ranges::transform(x, values, [](double each) { return static_cast<float>(each); });
                } else {
                    testing::runOp(context, Dequantize{op.weights.front().x, sum});
                }
                const std::vector<double> a = rig.a.values(), b = rig.b.values();
                for (std::int64_t i = 0; i < kExperts * kOut * kIn; ++i) {
                    const std::int64_t row = i / kIn;
                    float low = 0;
                    for (std::int64_t r = 0; r < kRank; ++r) {
                        low +=
                            static_cast<float>(b[static_cast<std::size_t>(row * kRank + r)]) *
                            static_cast<float>(a[static_cast<std::size_t>((row / kOut * kRank + r) * kIn + i % kIn)]);
                    }
                    values[i] += 0.37F * low;
                }
                PackRig plain(random, form, DType::F32, kExperts, kOut, kIn);
                std::memcpy(plain.x.view().data, values, sum.view().bytes());
                testing::runOp(context, plain.onHost());
                EXPECT_EQ(rig.out.data.values(), plain.out.data.values());
                EXPECT_EQ(rig.out.scales.values(), plain.out.scales.values());
                TestTensor stood(DType::F32, rig.shape);
                testing::runOp(context, Dequantize{op.weights.front().out, stood});
                EXPECT_EQ(rig.values.values(), stood.values()) << "what the codes stand for";
                EXPECT_TRUE(rig.out.data.guardsIntact() && rig.out.scales.guardsIntact() && rig.values.guardsIntact());
            }
        }
    }
}

TEST(PackWeight, SeveralWeightsCountTogether) {
    std::mt19937 random(27);
    CpuContext context(2);
    PackRig first(random, {}, DType::F32, 1, 4, 64), second(random, {WeightFormat::Mxfp4}, DType::BF16, 2, 8, 96);
    const auto host = [](TestTensor& tensor) { return tensor.view(); };
    const std::array weights = {first.weight(host), second.weight(host)};
    testing::runOp(context, PackWeights{weights, first.changed.view()});
    const std::int64_t all = first.changes();
    EXPECT_GT(all, (4 * 64 + 2 * 8 * 96) / 2);
    testing::runOp(context, PackWeights{weights, first.changed.view()});
    EXPECT_EQ(first.changes(), all);
}

} // namespace
} // namespace vitrine::kernels
