// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Routers whose experts are given: their weights, what the router would have chosen, the gradient.

#include <set>

#include "tests/kernels/ops/experts/expert_testing.h"
#include "tests/kernels/ops/experts/router_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

constexpr int kRoutedTokens = 33;

/// A way from logits to weights.
struct RouterForm {
    RouterOrder order;
    bool normalize;
};
constexpr RouterForm kRouterForms[] = {{RouterOrder::TopKThenSoftmax, false},
                                       {RouterOrder::SoftmaxThenTopK, false},
                                       {RouterOrder::SoftmaxThenTopK, true},
                                       {RouterOrder::SigmoidThenTopK, false},
                                       {RouterOrder::SigmoidThenTopK, true}};

/// A router over random logits; the experts of two of three tokens are given, in any order.
struct GivenRouter {
    GivenRouter(std::mt19937& random, const RouterForm& form, DType type, std::int64_t experts, std::int64_t k)
        : logits(type, Shape{kRoutedTokens, experts}, experts + 8), correction(DType::F32, Shape{experts}),
          given(testing::chooseExperts(random, kRoutedTokens, k, experts)), ids(DType::I32, Shape{kRoutedTokens, k}),
          weights(DType::F32, Shape{kRoutedTokens, k}), differing(DType::F32, Shape{kRoutedTokens, 1}),
          op{logits, ids, weights, form.order, form.normalize} {
        logits.fillNormal(random, 2);
        correction.fillNormal(random, 0.3);
        if (form.order == RouterOrder::SigmoidThenTopK) {
            op.groups = {correction, experts % 8 == 0 ? 4 : 1, experts % 8 == 0 ? 3 : 1, 2.5F};
        }
        for (std::int64_t token = 0; token < kRoutedTokens; token += 3) {
            given.view().as<std::int32_t>()[token * k] = -1;
        }
    }
    static bool isGiven(std::size_t token) { return token % 3 != 0; }

    TestTensor logits, correction, given, ids, weights, differing;
    RouterTopK op;
};

/// The weights of these experts by the definition.
std::vector<double> weightsOfGiven(const RouterTopK& op, const std::vector<double>& logits,
                                   const std::vector<double>& ids) {
    const bool sigmoid = op.order == RouterOrder::SigmoidThenTopK;
    const std::vector<double> shares = testing::softmax(logits);
    std::vector<double> out;
    double sum = 0;
    for (const double id : ids) {
        const auto at = static_cast<std::size_t>(id);
        out.push_back(sigmoid ? 1 / (1 + std::exp(-logits[at])) : shares[at]);
        sum += out.back();
    }
    const bool divides = op.normalize || op.order == RouterOrder::TopKThenSoftmax;
    for (double& weight : out) {
        weight *= (sigmoid ? 2.5 : 1.0) / (divides ? sum : 1.0);
    }
    return out;
}

std::vector<double> rowOf(const std::vector<double>& all, std::size_t row, std::int64_t width) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(row) * width;
    return {first, first + width};
}

TEST(RouterTopK, GivenExpertsHaveTheWeightsOfTheirLogits) {
    std::mt19937 random(21);
    CpuContext context(2);
    for (const RouterForm& form : kRouterForms) {
        for (const DType type : {DType::F32, DType::BF16}) {
            for (const auto& [experts, k] : {std::pair{4, 2}, {32, 4}, {128, 8}, {5, 5}, {7, 1}}) {
                SCOPED_TRACE(::testing::Message() << experts << " experts, form " << (&form - kRouterForms));
                GivenRouter router(random, form, type, experts, k);
                testing::runOp(context, router.op);
                const std::vector<double> own = router.ids.values(), ownWeights = router.weights.values();
                router.op.given = router.given;
                router.op.differing = router.differing;
                testing::runOp(context, router.op);
                const std::vector<double> ids = router.ids.values(), weights = router.weights.values();
                std::vector<double> expectedIds, expectedWeights, expectedDiffering;
                for (std::size_t token = 0; token < kRoutedTokens; ++token) {
                    const std::vector<double> chosen = rowOf(own, token, k);
                    std::vector<double> row = chosen, rowWeights = rowOf(ownWeights, token, k);
                    if (GivenRouter::isGiven(token)) {
                        row = rowOf(router.given.values(), token, k);
                        rowWeights = weightsOfGiven(router.op, rowOf(router.logits.values(), token, experts), row);
                    } else {
                        EXPECT_EQ(rowOf(weights, token, k), rowWeights); // to the bit
                    }
                    const std::set<double> set(chosen.begin(), chosen.end());
                    expectedDiffering.push_back(static_cast<double>(
                        std::count_if(row.begin(), row.end(), [&](double id) { return set.count(id) == 0; })));
                    expectedIds.insert(expectedIds.end(), row.begin(), row.end());
                    expectedWeights.insert(expectedWeights.end(), rowWeights.begin(), rowWeights.end());
                }
                EXPECT_EQ(ids, expectedIds);
                testing::expectNear(router.weights, expectedWeights, 2e-6);
                EXPECT_EQ(router.differing.values(), expectedDiffering);
                EXPECT_TRUE(router.differing.guardsIntact());
            }
        }
    }
}

TEST(RouterTopK, ItsOwnChoiceGivenBackChangesNothing) {
    std::mt19937 random(22);
    CpuContext context(2);
    for (const RouterForm& form : kRouterForms) {
        GivenRouter router(random, form, DType::F32, 64, 6);
        testing::runOp(context, router.op);
        const std::vector<double> ids = router.ids.values(), weights = router.weights.values();
        router.given.fillInts({ids.begin(), ids.end()});
        router.op.given = router.given;
        for (const bool counted : {false, true}) {
            router.op.differing = counted ? router.differing.view() : TensorView{};
            testing::runOp(context, router.op);
            EXPECT_EQ(router.ids.values(), ids);
            EXPECT_EQ(router.weights.values(), weights);
        }
        EXPECT_EQ(router.differing.values(), std::vector<double>(kRoutedTokens, 0));
    }
}

TEST(RouterTopK, WeightsOfImprobableGivenExpertsAreStillASoftmax) {
    CpuContext context(1);
    for (const RouterForm& form : {kRouterForms[0], kRouterForms[2]}) {
        TestTensor logits(DType::F32, Shape{1, 4}), given(DType::I32, Shape{1, 2});
        TestTensor ids(DType::I32, Shape{1, 2}), weights(DType::F32, Shape{1, 2});
        logits.fill({0, -300, -301, 1});
        given.fillInts({2, 1});
        RouterTopK op{logits, ids, weights, form.order, form.normalize};
        op.given = given;
        testing::runOp(context, op);
        testing::expectNear(weights, {1 / (1 + std::exp(1.0)), 1 / (1 + std::exp(-1.0))}, 1e-6);
    }
}

/// The five rows of a scene with other experts than its router chooses, but for one row.
TestTensor othersThanChosen(std::mt19937& random, const testing::RouterScene& scene) {
    const std::int64_t k = scene.forward.ids.shape[1];
    TestTensor given = testing::chooseExperts(random, scene.forward.ids.shape[0], k, scene.forward.logits.shape[1]);
    given.view().as<std::int32_t>()[2 * k] = -1;
    return given;
}

TEST(RouterTopKBackward, GivenExpertsGetTheGradient) {
    std::mt19937 random(23);
    CpuContext context(2);
    for (const auto& [experts, k] : {std::pair{6, 2}, {33, 4}, {5, 5}, {4, 1}}) {
        for (const RouterForm& form : {kRouterForms[0], kRouterForms[1], kRouterForms[2]}) {
            for (const bool balanced : {false, true}) {
                testing::RouterScene scene(random, experts, k, form.order, form.normalize);
                const TestTensor given = othersThanChosen(random, scene);
                scene.forward.given = given;
                testing::runOp(context, scene.forward);
                RouterTopKBackward op{scene.forward, scene.byWeight, {}, scene.gradLogits};
                op.gradProbabilities = balanced ? scene.byProbability.view() : TensorView{};
                testing::runOp(context, op);
                testing::expectGradient(scene.logits, scene.gradLogits.values(), [&] { return scene.loss(balanced); });
            }
        }
    }
}

TEST(RouterTopKBackward, ImprobableGivenExpertsGetTheGradient) {
    std::mt19937 random(24);
    CpuContext context(1);
    for (const RouterForm& form : {kRouterForms[0], kRouterForms[2]}) {
        testing::RouterScene scene(random, 6, 2, form.order, form.normalize);
        TestTensor given(DType::I32, Shape{5, 2});
        given.fillInts({0, 1, 1, 0, 0, 2, 2, 0, 1, 2});
        for (std::int64_t token = 0; token < 5; ++token) {
            for (std::int64_t e = 0; e < 3; ++e) {
                scene.logits.view().as<double>()[token * 6 + e] -= 70; // a share of 1e-30
            }
        }
        scene.forward.given = given;
        testing::runOp(context, scene.forward);
        testing::runOp(context, RouterTopKBackward{scene.forward, scene.byWeight, {}, scene.gradLogits});
        testing::expectGradient(scene.logits, scene.gradLogits.values(), [&] { return scene.loss(false); });
    }
}

TEST(RouterTopK, CheckOfGivenExpertsNamesTheField) {
    std::mt19937 random(25);
    GivenRouter router(random, kRouterForms[0], DType::F32, 8, 2);
    RouterTopK good = router.op;
    good.given = router.given;
    good.differing = router.differing;
    check(good);
    RouterTopK op = good;
    op.given.shape = Shape{kRoutedTokens, 1};
    testing::expectCheckNames(op, "given");
    op = good;
    op.given.dtype = DType::F32;
    testing::expectCheckNames(op, "given");
    op = good;
    op.given = op.ids;
    testing::expectCheckNames(op, "given");
    op = good;
    op.differing.shape = Shape{kRoutedTokens};
    testing::expectCheckNames(op, "differing");
    op = good;
    op.given = {};
    testing::expectCheckNames(op, "differing");
}

} // namespace
} // namespace vitrine::kernels
