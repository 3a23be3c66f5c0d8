// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rms_norm.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

struct RmsNormBackwardCase {
    std::int64_t rows, dim;
    DType x, weight, grad, out;
    std::int64_t extraStride = 0;
};

const DType kWide = DType::F32, kNarrow = DType::BF16, kHalf = DType::F16;

TEST(RmsNormBackwardGpu, AsOnTheCpuInEveryForm) {
    VITRINE_NEEDS_GPU();
    const std::vector<RmsNormBackwardCase> cases{
        {1, 2880, kNarrow, kNarrow, kNarrow, kNarrow}, {700, 64, kNarrow, kNarrow, kNarrow, kNarrow},
        {5, 77, kWide, kNarrow, kWide, kWide, 3},      {2100, 128, kWide, kWide, kNarrow, kNarrow, 16},
        {1100, 1032, kHalf, kHalf, kHalf, kHalf},      {300, 16384, kNarrow, kNarrow, kNarrow, kNarrow, 8},
        {9, 8192, kWide, kWide, kWide, kWide},         {4, 9001, kNarrow, kWide, kWide, kNarrow},
        {3, 511, kNarrow, kNarrow, kNarrow, kWide},    {0, 64, kNarrow, kNarrow, kNarrow, kNarrow}};
    std::mt19937 random(21);
    for (const RmsNormBackwardCase& item : cases) {
        for (const RmsNormOrder form : {RmsNormOrder::CastThenScale, RmsNormOrder::OnePlusWeight}) {
            for (const bool options : {true, false}) {
                SCOPED_TRACE(::testing::Message() << item.rows << " x " << item.dim << ", options " << options);
                const Shape shape{item.rows, item.dim};
                TestTensor x(item.x, shape, item.dim + item.extraStride), weight(item.weight, Shape{item.dim});
                TestTensor gradOut(item.grad, shape, item.dim + item.extraStride);
                TestTensor residual(item.out, shape, item.dim + item.extraStride), none;
                TestTensor gradX(item.out, shape, item.dim + item.extraStride), gradWeight(kWide, Shape{item.dim});
                x.fillNormal(random, 3);
                weight.fillNormal(random);
                gradOut.fillNormal(random);
                residual.fillNormal(random);
                gradWeight.fillNormal(random);
                const auto make = [&](auto&& at) {
                    const RmsNorm forward{at(x), at(weight), {}, 1e-5F, form};
                    return RmsNormBackward{
                        forward, at(gradOut), at(options ? residual : none), at(gradX), at(options ? gradWeight : none),
                        {}};
                };
                std::vector<testing::ComparedOutput> outputs{{&gradX, item.out == kWide ? 2e-6 : 4e-3}};
                if (options) {
                    outputs.push_back({&gradWeight, 4e-6});
                }
                testing::expectSameOnGpu(*testing::gpu(), make, outputs);
            }
        }
    }
}

TEST(RmsNormBackwardGpu, OverTheResidualAndOverGradOut) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(22);
    for (const std::int64_t dim : {64, 3000, 16384}) {
        TestTensor x(kNarrow, Shape{7, dim}), weight(kNarrow, Shape{dim}), gradOut(kNarrow, Shape{7, dim});
        TestTensor residual(kNarrow, Shape{7, dim}), gradWeight(kWide, Shape{dim});
        x.fillNormal(random);
        weight.fillNormal(random);
        gradOut.fillNormal(random);
        residual.fillNormal(random);
        gradWeight.fillNormal(random);
        const auto over = [&](const TestTensor& gradX) {
            return [&](auto&& at) {
                return RmsNormBackward{{at(x), at(weight), {}}, at(gradOut), at(residual), at(gradX),
                                       at(gradWeight),          {}};
            };
        };
        testing::expectSameOnGpu(*testing::gpu(), over(residual), {&residual, &gradWeight}, 4e-3);
        testing::expectSameOnGpu(*testing::gpu(), over(gradOut), {&gradOut, &gradWeight}, 4e-3);
    }
}

TEST(RmsNormBackwardGpu, TheSameFromRunToRun) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(23);
    TestTensor x(kNarrow, Shape{3000, 256}), weight(kNarrow, Shape{256}), gradOut(kNarrow, Shape{3000, 256});
    TestTensor gradX(kNarrow, Shape{3000, 256}), gradWeight(kWide, Shape{256});
    x.fillNormal(random);
    weight.fillNormal(random);
    gradOut.fillNormal(random);
    std::vector<double> expected;
    for (int run = 0; run < 3; ++run) {
        gradWeight.fill(std::vector<double>(256, 0.5));
        testing::OnDevice at(*testing::gpu());
        RmsNormBackward op{{at(x), at(weight), {}}, at(gradOut), {}, at(gradX), at(gradWeight), {}};
        at.run(op);
        at.download(gradWeight);
        expected = expected.empty() ? gradWeight.values() : expected;
        EXPECT_EQ(gradWeight.values(), expected);
    }
}

TEST(RmsNormBackwardGpu, DoublesAreRefusedByName) {
    VITRINE_NEEDS_GPU();
    TestTensor x(DType::F64, Shape{1, 8}), weight(DType::F64, Shape{8}), grads(DType::F64, Shape{1, 8});
    EXPECT_THROW(execute(*testing::gpu(), RmsNormBackward{{x, weight, {}}, grads, {}, grads, {}, {}}),
                 base::Unsupported);
}

} // namespace
} // namespace vitrine::kernels
