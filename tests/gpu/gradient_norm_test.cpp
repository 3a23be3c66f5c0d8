// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/gradient_norm.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(SquaredNormGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(61);
    for (const DType type : {DType::F32, DType::BF16, DType::F16}) {
        for (const std::int64_t n : {0, 1, 4096, 70001, 9 << 20}) {
            for (const bool accumulate : {false, true}) {
                SCOPED_TRACE(::testing::Message() << dtypeName(type) << ", " << n << ", accumulate " << accumulate);
                TestTensor x(type, Shape{n, 1}), out(DType::F64, Shape{1});
                x.fillNormal(random, 0.01);
                if (accumulate) {
                    out.fill({3});
                }
                testing::expectSameOnGpu(
                    *testing::gpu(), [&](auto&& at) { return SquaredNorm{at(x), at(out), accumulate, {}}; }, {&out},
                    1e-9);
            }
        }
    }
}

TEST(SquaredNormGpu, SameFromRunToRun) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(62);
    TestTensor x(DType::BF16, Shape{1 << 20}), first(DType::F64, Shape{1}), second(DType::F64, Shape{1});
    x.fillNormal(random);
    testing::OnDevice device(*testing::gpu());
    for (TestTensor* out : {&first, &second}) {
        SquaredNorm op{device(x), device(*out), false, {}};
        device.run(op);
        device.download(*out);
    }
    EXPECT_EQ(first.values(), second.values());
}

TEST(ClipScaleGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    for (const auto& [sum, most] : {std::pair{16.0, 1.0F}, {0.25, 1.0F}, {0.0, 1.0F}, {1e12, 0.0F}}) {
        const float clip = most;
        TestTensor squared(DType::F64, Shape{1}), scale(DType::F32, Shape{1}), norm(DType::F32, Shape{1});
        squared.fill({sum});
        testing::expectSameOnGpu(*testing::gpu(),
                                 [&](auto&& at) { return ClipScale{at(squared), clip, at(scale), at(norm)}; },
                                 {{&scale, 1e-7}, {&norm, 1e-7}});
    }
}

} // namespace
} // namespace vitrine::kernels
