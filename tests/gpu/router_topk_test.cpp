// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/blocks.h"
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

TEST(RouteGpu, ManyTokensAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    struct Case {
        std::int64_t tokens, dim, experts, k;
        RouterOrder order;
        RmsNormForm form;
        DType bias = DType::BF16, type = DType::BF16;
    };
    const RouterOrder chosen = RouterOrder::TopKThenSoftmax, all = RouterOrder::SoftmaxThenTopK;
    std::mt19937 random(14);
    for (const Case& c :
         std::vector<Case>{{65, 96, 5, 2, chosen, RmsNormForm::OnePlusWeight},
                           {300, 2880, 32, 4, chosen, RmsNormForm::ScaleThenCast},
                           {513, 2048, 128, 8, all, RmsNormForm::CastThenScale, DType::None},
                           {70, 160, 33, 4, all, RmsNormForm::CastThenScale, DType::F32},
                           {100, 72, 8, 2, chosen, RmsNormForm::ScaleThenCast},
                           {100, 64, 8, 2, chosen, RmsNormForm::ScaleThenCast, DType::F32, DType::F32}}) {
        SCOPED_TRACE(::testing::Message() << c.tokens << " tokens, dim " << c.dim << ", " << c.experts << " experts");
        TestTensor x(c.type, Shape{c.tokens, c.dim}, c.dim + 8), norm(c.type, Shape{c.dim});
        TestTensor router(c.type, Shape{c.experts, c.dim}), bias;
        x.fillNormal(random);
        norm.fillNormal(random, 0.3);
        router.fillNormal(random, 3 / std::sqrt(static_cast<double>(c.dim)));
        if (c.bias != DType::None) {
            bias = TestTensor(c.bias, Shape{c.experts});
            bias.fillNormal(random);
        }
        TestTensor normed(c.type, Shape{c.tokens, c.dim}), ids(DType::I32, Shape{c.tokens, c.k});
        TestTensor weights(DType::F32, Shape{c.tokens, c.k});
        const auto make = [&](auto&& at) {
            Route op;
            op.x = at(x);
            op.norm = {at(norm), 1e-5F, c.form};
            op.router.weight.dense = at(router);
            op.router.bias = at(bias);
            op.order = c.order;
            op.normalize = true;
            op.normed = at(normed);
            op.ids = at(ids);
            op.weights = at(weights);
            return op;
        };
        testing::expectSameOnGpu(*testing::gpu(), make, {&normed}, c.type == DType::F32 ? 1e-5 : 4e-3);
        // The weights of the chosen hardly change when rounding swaps two experts that are nearly equal; the experts do.
        testing::expectSameOnGpu(*testing::gpu(), make, {&weights}, c.type == DType::F32 ? 3e-5 : 2e-2);
        CpuContext cpu(2);
        testing::runOp(cpu, make([](const TestTensor& tensor) { return tensor.view(); }));
        const std::vector<double> expected = ids.values();
        testing::OnDevice device(*testing::gpu());
        auto op = make(device);
        device.giveScratch(op);
        execute(*testing::gpu(), op);
        device.synchronize();
        device.download(ids);
        EXPECT_TRUE(ids.guardsIntact());
        const std::vector<double> actual = ids.values();
        std::int64_t other = 0;
        for (std::size_t i = 0; i < actual.size(); ++i) {
            other += actual[i] != expected[i] ? 1 : 0;
        }
        EXPECT_LE(other, ids.view().shape.count() / 50);
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
