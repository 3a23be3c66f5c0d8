// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/matmul_gradients.h"

#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

struct GradientsCase {
    std::int64_t rows, in, out;
    DType type, result;
    std::int64_t extraStride = 0;
};

const std::vector<GradientsCase> kCases{
    {1, 64, 96, DType::BF16, DType::BF16},       {200, 128, 320, DType::BF16, DType::BF16},
    {200, 128, 320, DType::BF16, DType::F32},    {33, 65, 31, DType::BF16, DType::BF16},
    {33, 65, 31, DType::BF16, DType::F32, 3},    {40, 64, 48, DType::F16, DType::F16, 48},
    {40, 64, 48, DType::F16, DType::F32},        {50, 96, 70, DType::F32, DType::F32},
    {50, 97, 71, DType::F32, DType::F32, 5},     {8, 256, 128, DType::BF16, DType::BF16},
    {1024, 256, 192, DType::BF16, DType::F32, 8}};

double toleranceOf(const GradientsCase& item) {
    return item.result == DType::F32 ? 1e-5 : 1e-2;
}

TEST(MatmulGradientsGpu, InputAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(1);
    for (const GradientsCase& item : kCases) {
        for (const bool transposed : {false, true}) {
            for (const bool accumulate : {false, true}) {
                SCOPED_TRACE(::testing::Message() << item.rows << " rows, in " << item.in << ", out " << item.out
                                                  << ", transposed " << transposed << ", accumulate " << accumulate);
                TestTensor gradOut(item.type, Shape{item.rows, item.out}, item.out + item.extraStride);
                TestTensor weight(item.type, transposed ? Shape{item.in, item.out} : Shape{item.out, item.in});
                TestTensor gradX(item.result, Shape{item.rows, item.in}, item.in + item.extraStride);
                gradOut.fillNormal(random);
                weight.fillNormal(random, 1 / std::sqrt(static_cast<double>(item.out)));
                if (accumulate) {
                    gradX.fillNormal(random);
                }
                const auto make = [&](auto&& at) {
                    MatmulInputGradient op;
                    op.gradOut = at(gradOut);
                    op.weight = kernels::denseWeight(at(weight), transposed);
                    op.gradX = at(gradX);
                    op.accumulate = accumulate;
                    return op;
                };
                testing::expectSameOnGpu(*testing::gpu(), make, {&gradX}, toleranceOf(item));
            }
        }
    }
}

/// Few rows and F32 rows read the packed weight; many BF16 rows go through BF16 in scratch.
TEST(MatmulGradientsGpu, InputOfPackedWeights) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(3);
    std::vector<testing::TestWeight> weights;
    weights.push_back(testing::nf4Weight(random, 130, 192, false));
    weights.push_back(testing::nf4Weight(random, 131, 320, true));
    weights.push_back(testing::mxfp4Weight(random, 129, 96));
    for (const testing::TestWeight& weight : weights) {
        const std::int64_t in = weight.view.inFeatures(), out = weight.view.outFeatures();
        for (const std::int64_t rows : {1, 16, 17, 300}) {
            for (const auto& [type, result] :
                 {std::pair{DType::BF16, DType::BF16}, {DType::BF16, DType::F32}, {DType::F32, DType::F32}}) {
                for (const bool accumulate : {false, true}) {
                    SCOPED_TRACE(::testing::Message() << rows << " rows of " << dtypeName(type) << ", in " << in
                                                      << ", out " << out << ", accumulate " << accumulate);
                    TestTensor gradOut(type, Shape{rows, out}, out + 5);
                    TestTensor gradX(result, Shape{rows, in}, in + 3);
                    gradOut.fillNormal(random);
                    if (accumulate) {
                        gradX.fillNormal(random);
                    }
                    const auto make = [&](auto&& at) {
                        MatmulInputGradient op;
                        op.gradOut = at(gradOut);
                        op.weight = testing::viewAt(weight, at);
                        op.gradX = at(gradX);
                        op.accumulate = accumulate;
                        op.scale = accumulate ? 0.5F : 1.0F;
                        return op;
                    };
                    testing::expectSameOnGpu(*testing::gpu(), make, {&gradX}, type == DType::F32 ? 1e-5 : 1e-2);
                }
            }
        }
    }
}

TEST(MatmulGradientsGpu, WeightAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(2);
    std::vector<GradientsCase> cases = kCases;
    cases.push_back({0, 40, 33, DType::BF16, DType::F32, 5});
    cases.push_back({0, 40, 33, DType::BF16, DType::BF16});
    for (const GradientsCase& item : cases) {
        for (const bool accumulate : {false, true}) {
            SCOPED_TRACE(::testing::Message() << item.rows << " rows, in " << item.in << ", out " << item.out
                                              << ", accumulate " << accumulate);
            TestTensor x(item.type, Shape{item.rows, item.in}, item.in + item.extraStride);
            TestTensor gradOut(item.type, Shape{item.rows, item.out}, item.out + item.extraStride);
            TestTensor gradWeight(item.result, Shape{item.out, item.in}, item.in + item.extraStride);
            x.fillNormal(random);
            gradOut.fillNormal(random);
            if (accumulate) {
                gradWeight.fillNormal(random);
            }
            const auto make = [&](auto&& at) {
                return MatmulWeightGradient{at(x), at(gradOut), at(gradWeight), accumulate};
            };
            testing::expectSameOnGpu(*testing::gpu(), make, {&gradWeight}, toleranceOf(item));
        }
    }
}

TEST(MatmulGradientsGpu, RefuseWhatTheyDoNotMultiply) {
    VITRINE_NEEDS_GPU();
    testing::OnDevice at(*testing::gpu());
    TestTensor gradOut(DType::BF16, Shape{20, 8});
    TestTensor x(DType::F32, Shape{20, 32}), gradWeight(DType::F32, Shape{8, 32});
    MatmulWeightGradient weight{at(x), at(gradOut), at(gradWeight), false};
    EXPECT_THROW(at.run(weight), base::Unsupported);
}

} // namespace
} // namespace vitrine::kernels
