// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <array>

#include "kernels/ops/experts/moe.h"
#include "kernels/ops/fused/blocks.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/experts/expert_testing.h"

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

TEST(RouterTopKGpu, SigmoidScoresByGroups) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(16);
    for (const auto& [experts, groups, kept, k] :
         {std::tuple{8, 4, 2, 3}, std::tuple{256, 8, 4, 8}, std::tuple{384, 1, 1, 8}, std::tuple{33, 11, 2, 5}}) {
        for (const bool normalize : {false, true}) {
            TestTensor logits(DType::F32, Shape{19, experts}), correction(DType::F32, Shape{experts});
            TestTensor ids(DType::I32, Shape{19, k}), weights(DType::F32, Shape{19, k});
            logits.fillNormal(random, 2);
            correction.fillNormal(random, 0.3);
            const auto make = [&](auto&& at) {
                RouterTopK op{at(logits), at(ids), at(weights), RouterOrder::SigmoidThenTopK, normalize};
                op.groups = {at(correction), groups, kept, 2.5F};
                return op;
            };
            testing::expectSameOnGpu(*testing::gpu(), make, {&ids}, 0);
            testing::expectSameOnGpu(*testing::gpu(), make, {&weights}, 3e-5);
        }
    }
}

/// A router over 77 tokens with experts for two of three, in any order.
struct GivenOnGpu {
    GivenOnGpu(std::mt19937& random, RouterOrder by, bool divides, std::int64_t experts, std::int64_t k)
        : logits(DType::F32, Shape{77, experts}, experts + 4), correction(DType::F32, Shape{experts}),
          given(testing::chooseExperts(random, 77, k, experts)), ids(DType::I32, Shape{77, k}),
          weights(DType::F32, Shape{77, k}), differing(DType::F32, Shape{77, 1}), order(by), normalize(divides) {
        logits.fillNormal(random, 2);
        correction.fillNormal(random, 0.3);
        for (std::int64_t token = 0; token < 77; token += 3) {
            given.view().as<std::int32_t>()[token * k] = -1;
        }
    }
    template <class At> RouterTopK operator()(At&& at) const {
        RouterTopK op{at(logits), at(ids), at(weights), order, normalize};
        op.groups = {at(correction), 4, 3, 2.5F};
        if (replays) {
            op.given = at(given);
            op.differing = at(differing);
        }
        return op;
    }

    TestTensor logits, correction, given, ids, weights, differing;
    RouterOrder order;
    bool normalize, replays = true;
};

constexpr RouterOrder kRouterOrders[] = {RouterOrder::TopKThenSoftmax, RouterOrder::SoftmaxThenTopK,
                                         RouterOrder::SigmoidThenTopK};

TEST(RouterTopKGpu, GivenExpertsAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(17);
    for (const auto& [experts, k] : {std::pair{32, 4}, {128, 8}, {512, 10}, {40, 1}, {64, 40}}) {
        for (const RouterOrder order : kRouterOrders) {
            for (const bool normalize : {false, true}) {
                GivenOnGpu router(random, order, normalize, experts, k);
                testing::expectSameOnGpu(*testing::gpu(), router,
                                         std::vector<testing::ComparedOutput>{
                                             {&router.ids, 0}, {&router.differing, 0}, {&router.weights, 3e-5}});
            }
        }
    }
}

TEST(RouterTopKGpu, ItsOwnChoiceGivenBackChangesNothing) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(18);
    for (const RouterOrder order : kRouterOrders) {
        for (const bool normalize : {false, true}) {
            GivenOnGpu router(random, order, normalize, 128, 8);
            const auto results = [&] {
                testing::OnDevice device(*testing::gpu());
                RouterTopK op = router(device);
                device.run(op);
                device.download(router.ids);
                device.download(router.weights);
                return std::pair(router.ids.values(), router.weights.values());
            };
            router.replays = false;
            const auto own = results();
            router.replays = true;
            router.given.fillInts({own.first.begin(), own.first.end()});
            EXPECT_EQ(results(), own); // to the bit
        }
    }
}

TEST(RouterTopKGpu, ImprobableGivenExpertsHaveWeightsAndGradients) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(19);
    for (const RouterOrder order : {RouterOrder::TopKThenSoftmax, RouterOrder::SoftmaxThenTopK}) {
        GivenOnGpu router(random, order, true, 32, 4);
        for (std::int64_t i = 0; i < 77; ++i) {
            for (std::int64_t j = 0; j < 4; ++j) {
                const std::int32_t id = router.given.view().as<std::int32_t>()[i * 4 + j];
                router.logits.view().as<float>()[i * 36 + std::max(id, 0)] -= 300;
            }
        }
        testing::expectSameOnGpu(*testing::gpu(), router, {&router.weights}, 3e-5);
        TestTensor gradWeights(DType::F32, Shape{77, 4}), gradLogits(DType::F32, Shape{77, 32});
        gradWeights.fillNormal(random);
        const auto make = [&](auto&& at) {
            RouterTopKBackward op{router(at), at(gradWeights), {}, at(gradLogits)};
            return op;
        };
        testing::expectSameOnGpu(*testing::gpu(), make, {&gradLogits}, 1e-5);
    }
}

struct RouteCase {
    std::int64_t tokens, dim, experts, k;
    RouterOrder order;
    RmsNormOrder form;
    DType bias = DType::BF16, type = DType::BF16;
};

/// A Route over random data.
struct RouteScene {
    RouteScene(const RouteCase& c, std::mt19937& random)
        : item(c), x(c.type, Shape{c.tokens, c.dim}, c.dim + 8), norm(c.type, Shape{c.dim}),
          router(c.type, Shape{c.experts, c.dim}), normed(c.type, Shape{c.tokens, c.dim}),
          ids(DType::I32, Shape{c.tokens, c.k}), weights(DType::F32, Shape{c.tokens, c.k}) {
        x.fillNormal(random);
        norm.fillNormal(random, 0.3);
        router.fillNormal(random, 3 / std::sqrt(static_cast<double>(c.dim)));
        if (c.bias != DType::None) {
            bias = TestTensor(c.bias, Shape{c.experts});
            bias.fillNormal(random);
        }
    }
    template <class At> Route operator()(At&& at) const {
        Route op;
        op.x = at(x);
        op.norm = {at(norm), 1e-5F, item.form};
        op.router.weight = denseWeight(at(router));
        op.router.bias = at(bias);
        op.order = item.order;
        op.normalize = true;
        op.normed = at(normed);
        op.ids = at(ids);
        op.weights = at(weights);
        return op;
    }
    /// Of the first tokens only; the three results.
    std::array<std::vector<double>, 3> runOnGpu(std::int64_t tokens) {
        testing::OnDevice device(*testing::gpu());
        Route op = (*this)(device);
        for (TensorView* rows : {&op.x, &op.normed, &op.ids, &op.weights}) {
            *rows = sliceRows(*rows, 0, tokens);
        }
        device.run(op);
        std::array<std::vector<double>, 3> out;
        std::size_t next = 0;
        for (TestTensor* tensor : {&normed, &ids, &weights}) {
            device.download(*tensor);
            EXPECT_TRUE(tensor->guardsIntact());
            std::vector<double> values = tensor->values();
            values.resize(static_cast<std::size_t>(tokens * tensor->view().shape[1]));
            out[next++] = std::move(values);
        }
        return out;
    }

    RouteCase item;
    TestTensor x, norm, router, bias, normed, ids, weights;
};

constexpr RouterOrder kChosen = RouterOrder::TopKThenSoftmax, kAll = RouterOrder::SoftmaxThenTopK;

TEST(RouteGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(14);
    for (const RouteCase& c :
         std::vector<RouteCase>{{65, 96, 5, 2, kChosen, RmsNormOrder::OnePlusWeight},
                                {300, 2880, 32, 4, kChosen, RmsNormOrder::ScaleThenCast},
                                {513, 2048, 128, 8, kAll, RmsNormOrder::CastThenScale, DType::None},
                                {70, 160, 33, 4, kAll, RmsNormOrder::CastThenScale, DType::F32},
                                {100, 72, 8, 2, kChosen, RmsNormOrder::ScaleThenCast},
                                {100, 64, 8, 2, kChosen, RmsNormOrder::ScaleThenCast, DType::F32, DType::F32},
                                {64, 2880, 32, 4, kChosen, RmsNormOrder::ScaleThenCast},
                                {33, 1024, 128, 8, kAll, RmsNormOrder::CastThenScale, DType::None},
                                {50, 8192, 8, 2, kAll, RmsNormOrder::OnePlusWeight, DType::F32},
                                {49, 32, 3, 3, kChosen, RmsNormOrder::ScaleThenCast},
                                {27, 2880, 32, 4, kChosen, RmsNormOrder::CastThenScale},
                                {1025, 96, 5, 2, kChosen, RmsNormOrder::OnePlusWeight},
                                {1100, 2880, 32, 4, kChosen, RmsNormOrder::ScaleThenCast}}) {
        SCOPED_TRACE(::testing::Message() << c.tokens << " tokens, dim " << c.dim << ", " << c.experts << " experts");
        RouteScene scene(c, random);
        testing::expectSameOnGpu(*testing::gpu(), scene, {&scene.normed}, c.type == DType::F32 ? 1e-5 : 4e-3);
        // The weights of the chosen hardly change when rounding swaps two experts that are nearly equal; the experts
        // do.
        testing::expectSameOnGpu(*testing::gpu(), scene, {&scene.weights}, c.type == DType::F32 ? 3e-5 : 2e-2);
        CpuContext cpu(2);
        testing::runOp(cpu, scene([](const TestTensor& tensor) { return tensor.view(); }));
        const std::vector<double> expected = scene.ids.values();
        const std::vector<double> actual = scene.runOnGpu(c.tokens)[1];
        std::int64_t other = 0;
        for (std::size_t i = 0; i < actual.size(); ++i) {
            other += actual[i] != expected[i] ? 1 : 0;
        }
        const std::int64_t oneSwap = c.tokens > 64 ? 0 : 2; // more than a fiftieth of so few
        EXPECT_LE(other, scene.ids.view().shape.count() / 50 + oneSwap);
    }
}

/// What a token of a batch chooses hangs neither on the other tokens nor on their number.
TEST(RouteGpu, TokensDoNotDependOnTheBatch) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(15);
    RouteScene scene({64, 2880, 32, 4, kChosen, RmsNormOrder::ScaleThenCast}, random);
    const auto all = scene.runOnGpu(64);
    for (const std::int64_t tokens : {63, 41, 32, 25}) {
        const auto some = scene.runOnGpu(tokens);
        for (std::size_t i = 0; i < all.size(); ++i) {
            EXPECT_TRUE(std::equal(some[i].begin(), some[i].end(), all[i].begin()))
                << tokens << " tokens, result " << i;
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
