// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/moe.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(RouterTopKGpu, TiesGoToTheLowerExpertInBothOrders) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(12);
    std::uniform_int_distribution<int> steps(-6, 6);
    for (const auto& [experts, k] : {std::pair{32, 4}, std::pair{128, 8}, std::pair{7, 7}, std::pair{700, 3}}) {
        for (const RouterOrder order : {RouterOrder::TopKThenSoftmax, RouterOrder::SoftmaxThenTopK}) {
            for (const bool normalize : {false, true}) {
                TestTensor logits(DType::BF16, Shape{19, experts}), ids(DType::I32, Shape{19, k});
                TestTensor weights(DType::F32, Shape{19, k});
                std::vector<double> values;
                for (int i = 0; i < 19 * experts; ++i) {
                    values.push_back(0.5 * steps(random));
                }
                logits.fill(values);
                const auto make = [&](auto&& at) {
                    return RouterTopK{at(logits), at(ids), at(weights), order, normalize};
                };
                testing::expectSameOnGpu(*testing::gpu(), make, {&ids}, 0);
                testing::expectSameOnGpu(*testing::gpu(), make, {&weights}, 3e-5);
            }
        }
    }
}

TEST(MoeCombineGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(13);
    for (const auto& [type, hidden, withResidual] :
         {std::tuple{DType::BF16, 2880, true}, std::tuple{DType::F32, 33, true}, std::tuple{DType::BF16, 64, false}}) {
        TestTensor x(type, Shape{5 * 4, hidden}), weights(DType::F32, Shape{5, 4}), out(type, Shape{5, hidden});
        TestTensor residual;
        x.fillNormal(random);
        weights.fillNormal(random);
        if (withResidual) {
            residual = TestTensor(type, Shape{5, hidden}, hidden + 8);
            residual.fillNormal(random);
        }
        testing::expectSameOnGpu(
            *testing::gpu(), [&](auto&& at) { return MoeCombine{at(x), at(weights), at(residual), at(out)}; }, {&out},
            type == DType::F32 ? 1e-6 : 4e-3);
    }
}

} // namespace
} // namespace vitrine::kernels
