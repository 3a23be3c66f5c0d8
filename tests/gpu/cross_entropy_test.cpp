// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/cross_entropy.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

struct LossCase {
    DType type, gradient;
    std::int64_t rows, vocab, extraStride = 0;
    float cap = 0;
};

/// Whole pieces and single elements, few threads and many, one step of a block and several.
const std::vector<LossCase> kLossCases{
    {DType::BF16, DType::BF16, 5, 512},          {DType::BF16, DType::BF16, 7, 40000, 8, 30},
    {DType::F32, DType::F32, 6, 33, 2},          {DType::F32, DType::BF16, 5, 20001, 0, 50},
    {DType::F32, DType::F32, 3, 151936},         {DType::BF16, DType::F32, 4, 8200, 56},
    {DType::F16, DType::F16, 5, 1000, 0, 12.5F}, {DType::BF16, DType::BF16, 2, 262144}};

/// Every fourth row is ignored.
std::vector<std::int32_t> lossTargets(std::mt19937& random, std::int64_t rows, std::int64_t vocab) {
    std::uniform_int_distribution<std::int32_t> uniform(0, static_cast<std::int32_t>(vocab - 1));
    std::vector<std::int32_t> targets;
    for (std::int64_t row = 0; row < rows; ++row) {
        targets.push_back(row % 4 == 3 ? -100 : uniform(random));
    }
    targets[0] = static_cast<std::int32_t>(vocab - 1);
    return targets;
}

TEST(CrossEntropyGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(31);
    for (const LossCase& item : kLossCases) {
        SCOPED_TRACE(::testing::Message() << dtypeName(item.type) << ", vocab " << item.vocab << ", cap " << item.cap);
        const Shape shape{item.rows, item.vocab};
        TestTensor logits(item.type, shape, item.vocab + item.extraStride), targets(DType::I32, Shape{item.rows});
        TestTensor losses(DType::F32, Shape{item.rows});
        TestTensor gradients(item.gradient, shape, item.vocab + item.extraStride);
        logits.fillNormal(random, 5);
        targets.fillInts(lossTargets(random, item.rows, item.vocab));
        testing::expectSameOnGpu(*testing::gpu(),
                                 [&](auto&& at) {
                                     return CrossEntropy{at(logits),    at(targets), item.cap, at(losses),
                                                         at(gradients), 0.125F,      {}};
                                 },
                                 {{&losses, 4e-6}, {&gradients, item.gradient == DType::F32 ? 4e-6 : 4e-3}});
        losses.poison();
        testing::expectSameOnGpu(
            *testing::gpu(),
            [&](auto&& at) { return CrossEntropy{at(logits), at(targets), item.cap, at(losses), {}, 1, {}}; },
            {&losses}, 4e-6);
    }
}

TEST(CrossEntropyGpu, GradientTakesThePlaceOfTheLogits) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(32);
    for (const auto& [type, narrow] :
         {std::pair{DType::F32, DType::BF16}, {DType::F32, DType::F32}, {DType::BF16, DType::BF16}}) {
        for (const std::int64_t vocab : {264, 7001, 20003, 50000}) {
            SCOPED_TRACE(::testing::Message() << dtypeName(type) << ", " << dtypeName(narrow) << ", " << vocab);
            const std::int64_t rows = 5, stride = vocab + 16;
            TestTensor logits(type, Shape{rows, vocab}, stride), targets(DType::I32, Shape{rows});
            TestTensor losses(DType::F32, Shape{rows}), gradients(narrow, Shape{rows, vocab});
            logits.fillNormal(random, 4);
            targets.fillInts(lossTargets(random, rows, vocab));
            testing::OnDevice device(*testing::gpu());
            CrossEntropy op{device(logits), device(targets), 20, device(losses), device(gradients), 1, {}};
            device.run(op);
            TensorView place = op.logits;
            place.dtype = narrow;
            place.strides[0] = stride * bitsOf(type) / bitsOf(narrow);
            op.gradLogits = place;
            device.run(op);
            device.download(gradients);
            device.download(logits);
            EXPECT_TRUE(logits.guardsIntact());
            const std::vector<double> expected = gradients.values();
            std::vector<double> actual(static_cast<std::size_t>(rows * vocab));
            for (std::int64_t row = 0; row < rows; ++row) {
                loadFloats(narrow, logits.view().data, row * place.stride0(), vocab, actual.data() + row * vocab);
            }
            EXPECT_EQ(actual, expected);
        }
    }
}

TEST(CrossEntropyGpu, WhatIsWrongShowsAsNaN) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(33);
    TestTensor logits(DType::F32, Shape{3, 64}), targets(DType::I32, Shape{3});
    TestTensor losses(DType::F32, Shape{3}), gradients(DType::F32, Shape{3, 64});
    logits.fillNormal(random);
    logits.view().as<float>()[64 + 7] = std::numeric_limits<float>::quiet_NaN();
    targets.fillInts({64, 3, 5}); // no such id, a NaN in the row, a good row
    testing::OnDevice device(*testing::gpu());
    CrossEntropy op{device(logits), device(targets), 0, device(losses), device(gradients), 1, {}};
    device.run(op);
    device.download(losses);
    device.download(gradients);
    EXPECT_TRUE(std::isnan(losses.values()[0]) && std::isnan(losses.values()[1]));
    EXPECT_TRUE(std::isnan(gradients.values()[0]) && std::isnan(gradients.values()[64]));
    EXPECT_TRUE(std::isfinite(losses.values()[2]) && std::isfinite(gradients.values()[128]));
}

TEST(CrossEntropyGpu, NoRows) {
    VITRINE_NEEDS_GPU();
    TestTensor logits(DType::F32, Shape{0, 64}), targets(DType::I32, Shape{0}), losses(DType::F32, Shape{0});
    testing::expectSameOnGpu(
        *testing::gpu(), [&](auto&& at) { return CrossEntropy{at(logits), at(targets), 0, at(losses), {}, 1, {}}; },
        {&losses}, 0);
}

TEST(SumLossesGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(34);
    for (const DType type : {DType::F32, DType::F64}) {
        for (const std::int64_t rows : {0, 1, 1000, 32771}) {
            for (const bool accumulate : {false, true}) {
                TestTensor losses(DType::F32, Shape{rows}), out(type, Shape{1});
                losses.fillNormal(random, 3);
                if (accumulate) {
                    out.fill({12.25});
                }
                testing::expectSameOnGpu(
                    *testing::gpu(), [&](auto&& at) { return SumLosses{at(losses), at(out), accumulate}; }, {&out},
                    type == DType::F32 ? 1e-4 : 1e-9);
            }
        }
    }
}

} // namespace
} // namespace vitrine::kernels
