// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/moe.h"

#include <algorithm>
#include <numeric>

#include "kernels/ops/experts/own_experts.h"
#include "kernels/ops/experts/router_shares.h"
#include "tests/kernels/ops/experts/expert_testing.h"
#include "tests/kernels/ops/experts/router_testing.h"

namespace vitrine::kernels {
namespace {

using testing::denseStack;
using testing::mxfp4Stack;
using testing::RouterScene;
using testing::softmax;
using testing::TestStack;
using testing::TestTensor;

TEST(RouterTopK, BothOrdersAgainstSorting) {
    std::mt19937 random(1);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::BF16}) {
        for (const auto& [experts, k] : {std::pair{4, 2}, {32, 4}, {128, 8}, {5, 5}, {7, 1}}) {
            for (const int form : {0, 1, 2}) {
                TestTensor logits(type, Shape{33, experts});
                logits.fillNormal(random, 2);
                TestTensor ids(DType::I32, Shape{33, k});
                TestTensor weights(DType::F32, Shape{33, k});
                const RouterOrder order = form == 0 ? RouterOrder::TopKThenSoftmax : RouterOrder::SoftmaxThenTopK;
                testing::runOp(context, RouterTopK{logits, ids, weights, order, form == 2});
                const std::vector<double> all = logits.values();
                std::vector<double> expectedIds, expectedWeights;
                for (int row = 0; row < 33; ++row) {
                    const std::vector<double> values(all.begin() + row * experts, all.begin() + (row + 1) * experts);
                    std::vector<int> sorted(static_cast<std::size_t>(experts));
                    std::iota(sorted.begin(), sorted.end(), 0);
                    std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
                        return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
                    });
                    std::vector<double> chosen;
                    const std::vector<double> shares = softmax(values);
                    for (int j = 0; j < k; ++j) {
                        const auto id = static_cast<std::size_t>(sorted[static_cast<std::size_t>(j)]);
                        expectedIds.push_back(static_cast<double>(id));
                        chosen.push_back(form == 0 ? values[id] : shares[id]);
                    }
                    if (form == 0) {
                        chosen = softmax(chosen);
                    }
                    const double sum = form == 2 ? std::accumulate(chosen.begin(), chosen.end(), 0.0) : 1;
                    for (const double weight : chosen) {
                        expectedWeights.push_back(weight / sum);
                    }
                }
                EXPECT_EQ(ids.values(), expectedIds);
                testing::expectNear(weights, expectedWeights, 1e-6);
            }
        }
    }
}

/// The experts of a row by the definition: groups by the sum of their two best, then experts of the kept groups.
std::vector<int> chosenByGroups(const std::vector<double>& choice, int groups, int kept, int k) {
    const auto size = static_cast<int>(choice.size()) / groups;
    const auto at = [&](int expert) { return choice[static_cast<std::size_t>(expert)]; };
    const auto bestFirst = [](std::vector<int>& order, const auto& value) {
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return value(a) > value(b); });
    };
    std::vector<int> order(static_cast<std::size_t>(groups));
    std::iota(order.begin(), order.end(), 0);
    bestFirst(order, [&](int group) {
        std::vector<double> members(choice.begin() + group * size, choice.begin() + (group + 1) * size);
        std::sort(members.rbegin(), members.rend());
        return members[0] + (size > 1 ? members[1] : 0.0);
    });
    std::vector<int> experts;
    for (int j = 0; j < kept; ++j) {
        for (int i = 0; i < size; ++i) {
            experts.push_back(order[static_cast<std::size_t>(j)] * size + i);
        }
    }
    std::sort(experts.begin(), experts.end());
    bestFirst(experts, at);
    experts.resize(static_cast<std::size_t>(k));
    return experts;
}

TEST(RouterTopK, SigmoidScoresByGroups) {
    std::mt19937 random(7);
    CpuContext context(2);
    for (const auto& [experts, groups, kept, k] :
         {std::tuple{8, 4, 2, 3}, {256, 8, 4, 8}, {384, 1, 1, 8}, {6, 3, 3, 2}, {4, 2, 1, 2}}) {
        for (const bool corrected : {false, true}) {
            TestTensor logits(DType::F32, Shape{21, experts});
            TestTensor correction(DType::BF16, Shape{experts});
            TestTensor ids(DType::I32, Shape{21, k}), weights(DType::F32, Shape{21, k});
            logits.fillNormal(random, 2);
            correction.fillNormal(random, 0.3);
            RouterTopK op{logits, ids, weights, RouterOrder::SigmoidThenTopK, corrected};
            op.groups = {corrected ? correction.view() : TensorView{}, groups, kept, 2.5F};
            testing::runOp(context, op);
            const std::vector<double> all = logits.values(), added = correction.values();
            std::vector<double> expectedIds, expectedWeights;
            for (int row = 0; row < 21; ++row) {
                std::vector<double> scores, choice;
                for (int e = 0; e < experts; ++e) {
                    scores.push_back(1 / (1 + std::exp(-all[static_cast<std::size_t>(row * experts + e)])));
                    choice.push_back(scores.back() + (corrected ? added[static_cast<std::size_t>(e)] : 0.0));
                }
                double sum = 0;
                const std::vector<int> chosen = chosenByGroups(choice, groups, kept, k);
                for (const int id : chosen) {
                    sum += scores[static_cast<std::size_t>(id)];
                }
                for (const int id : chosen) {
                    expectedIds.push_back(id);
                    expectedWeights.push_back(2.5 * scores[static_cast<std::size_t>(id)] / (corrected ? sum : 1));
                }
            }
            EXPECT_EQ(ids.values(), expectedIds);
            testing::expectNear(weights, expectedWeights, 1e-5);
        }
    }
}

TEST(RouterTopK, RefusesGroupsThatDoNotDivideTheExperts) {
    CpuContext context(1);
    TestTensor logits(DType::F32, Shape{1, 6}), ids(DType::I32, Shape{1, 3}), weights(DType::F32, Shape{1, 3});
    const auto with = [&](std::int64_t groups, std::int64_t kept) {
        RouterTopK op{logits, ids, weights, RouterOrder::SigmoidThenTopK, true};
        op.groups.groups = groups;
        op.groups.kept = kept;
        return op;
    };
    check(with(3, 2));
    EXPECT_THROW(check(with(4, 2)), base::Internal);
    EXPECT_THROW(check(with(3, 4)), base::Internal);
    EXPECT_THROW(check(with(3, 1)), base::Internal); // 2 experts for 3 places
    EXPECT_THROW(check(with(6, 3)), base::Internal); // a group of one
}

TEST(RouterTopK, TiesGoToTheLowerExpert) {
    CpuContext context(1);
    TestTensor logits(DType::F32, Shape{1, 6});
    logits.fill({1, 3, 3, 0, 3, 1});
    TestTensor ids(DType::I32, Shape{1, 5});
    TestTensor weights(DType::F32, Shape{1, 5});
    testing::runOp(context, RouterTopK{logits, ids, weights, RouterOrder::TopKThenSoftmax, false});
    EXPECT_EQ(ids.values(), (std::vector<double>{1, 2, 4, 0, 5}));
}

TEST(RouterTopK, BrokenLogitsStillChooseDifferentExperts) {
    CpuContext context(1);
    TestTensor logits(DType::F32, Shape{1, 4});
    TestTensor ids(DType::I32, Shape{1, 4});
    TestTensor weights(DType::F32, Shape{1, 4});
    testing::runOp(context, RouterTopK{logits, ids, weights, RouterOrder::TopKThenSoftmax, false}); // all NaN
    std::vector<double> chosen = ids.values();
    std::sort(chosen.begin(), chosen.end());
    EXPECT_EQ(chosen, (std::vector<double>{0, 1, 2, 3}));
}

void expectExperts(CpuContext& context, std::mt19937& random, const TestStack& stack, std::int64_t tokens,
                   std::int64_t k, std::int64_t experts, std::int64_t out, std::int64_t in, bool xPerToken,
                   DType type) {
    TestTensor x(type, Shape{xPerToken ? tokens : tokens * k, in});
    TestTensor ids(DType::I32, Shape{tokens, k});
    TestTensor bias(DType::BF16, Shape{experts, out});
    TestTensor result(type, Shape{tokens * k, out}, out + 3);
    x.fillNormal(random);
    bias.fillNormal(random);
    std::vector<std::int32_t> numbers;
    for (std::int64_t t = 0; t < tokens; ++t) {
        std::vector<std::int32_t> all(static_cast<std::size_t>(experts));
        std::iota(all.begin(), all.end(), 0);
        std::shuffle(all.begin(), all.end(), random);
        numbers.insert(numbers.end(), all.begin(), all.begin() + k);
    }
    ids.fillInts(numbers);
    ExpertMatmul op{x, xPerToken, ids, stack.view, bias, result, {}};
    testing::runOp(context, op);
    const std::vector<double> xs = x.values();
    const std::vector<double> biases = bias.values();
    std::vector<double> expected;
    double largest = 1;
    for (std::int64_t pair = 0; pair < tokens * k; ++pair) {
        const std::int64_t expert = numbers[static_cast<std::size_t>(pair)];
        const std::int64_t row = xPerToken ? pair / k : pair;
        for (std::int64_t o = 0; o < out; ++o) {
            double sum = biases[static_cast<std::size_t>(expert * out + o)];
            double magnitude = 0;
            for (std::int64_t i = 0; i < in; ++i) {
                const double term = xs[static_cast<std::size_t>(row * in + i)] *
                                    stack.values[static_cast<std::size_t>((expert * out + o) * in + i)];
                sum += term;
                magnitude += std::fabs(term);
            }
            largest = std::max(largest, magnitude);
            expected.push_back(sum);
        }
    }
    testing::expectNear(result, expected, largest * 4e-7);
}

TEST(ExpertMatmul, AgainstDouble) {
    std::mt19937 random(2);
    testing::forEachSimd([&](CpuContext& context) {
        for (const std::int64_t tokens : {1, 3, 17, 70}) {
            for (const DType type : {DType::F32, DType::BF16}) {
                const TestStack quantized = mxfp4Stack(random, 6, 37, 96);
                expectExperts(context, random, quantized, tokens, 4, 6, 37, 96, true, type);
                expectExperts(context, random, quantized, tokens, 2, 6, 37, 96, false, type);
                const TestStack dense = denseStack(random, DType::BF16, 5, 70, 41, false);
                expectExperts(context, random, dense, tokens, 3, 5, 70, 41, true, type);
                const TestStack transposed = denseStack(random, DType::BF16, 5, 70, 41, true);
                expectExperts(context, random, transposed, tokens, 3, 5, 70, 41, tokens % 2 == 1, type);
            }
        }
    });
}

TEST(ExpertMatmul, ATokenIsTheSameAloneAndTogether) {
    std::mt19937 random(3);
    testing::forEachSimd([&](CpuContext& context) {
        const TestStack stack = mxfp4Stack(random, 4, 33, 64);
        for (const std::int64_t tokens : {24, 80}) { // by dot products, and in tiles
            TestTensor x(DType::F32, Shape{tokens, 64});
            TestTensor ids(DType::I32, Shape{tokens, 2});
            TestTensor all(DType::F32, Shape{2 * tokens, 33});
            x.fillNormal(random);
            std::vector<std::int32_t> numbers;
            for (std::int32_t i = 0; i < tokens; ++i) {
                numbers.push_back(i % 4);
                numbers.push_back((i + 1 + i / 7) % 4);
            }
            ids.fillInts(numbers);
            testing::runOp(context, ExpertMatmul{x, true, ids, stack.view, {}, all, {}});
            const std::vector<double> together = all.values();
            for (std::int64_t t = 0; t < tokens; ++t) {
                TestTensor one(DType::F32, Shape{2, 33});
                testing::runOp(
                    context,
                    ExpertMatmul{sliceRows(x, t, t + 1), true, sliceRows(ids, t, t + 1), stack.view, {}, one, {}});
                const std::vector<double> alone = one.values();
                ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + t * 66)) << t;
            }
        }
    });
}

TEST(ExpertMatmul, CostCountsOnlyTheExpertsTouched) {
    std::mt19937 random(4);
    const TestStack stack = mxfp4Stack(random, 16, 8, 64);
    TestTensor x(DType::F32, Shape{2, 64});
    TestTensor ids(DType::I32, Shape{2, 4});
    TestTensor out(DType::F32, Shape{8, 8});
    const ExpertMatmul op{x, true, ids, stack.view, {}, out, {}};
    const std::uint64_t perExpert = 8 * (32 + 2);
    EXPECT_EQ(cost(op, DeviceTraits{}).bytesRead, 2U * 64 * 4 + 8 * 4 + 8 * perExpert);
}

TEST(ExpertMatmul, WrongExpertNumbersThrow) {
    std::mt19937 random(5);
    CpuContext context(1);
    const TestStack stack = mxfp4Stack(random, 2, 8, 32);
    TestTensor x(DType::F32, Shape{1, 32});
    x.fillNormal(random);
    TestTensor ids(DType::I32, Shape{1, 1});
    TestTensor out(DType::F32, Shape{1, 8});
    for (const int id : {2, -2}) {
        ids.fillInts({id});
        EXPECT_THROW(testing::runOp(context, ExpertMatmul{x, true, ids, stack.view, {}, out, {}}), base::Internal);
    }
}

/// Choices of experts that another rank has: their rows stay as they are, and the sum leaves them out.
TEST(OwnExperts, OtherRanksExpertsAreLeftOut) {
    std::mt19937 random(7);
    CpuContext context(2);
    for (const std::int64_t tokens : {3, 90}) {
        constexpr std::int64_t kChoices = 2, kOut = 8, kStack = 6;
        const TestStack stack = mxfp4Stack(random, kStack, kOut, 32);
        TestTensor x(DType::F32, Shape{tokens, 32}), weights(DType::F32, Shape{tokens, kChoices});
        x.fillNormal(random);
        weights.fillNormal(random);
        TestTensor ids(DType::I32, Shape{tokens, kChoices});
        std::vector<std::int32_t> chosen;
        for (std::int64_t i = 0; i < tokens * kChoices; ++i) {
            chosen.push_back(static_cast<std::int32_t>(random() % kStack));
        }
        ids.fillInts(chosen);
        const auto sumOf = [&](std::int64_t first, std::int64_t count) {
            TestTensor own(DType::I32, Shape{tokens, kChoices}), rows(DType::F32, Shape{tokens * kChoices, kOut});
            TestTensor sum(DType::F32, Shape{tokens, kOut});
            testing::runOp(context, OwnExperts{ids, own, first, count});
            WeightView part = stack.view;
            part.shape = Shape{count, kOut, 32};
            part.data = sliceRows(stack.view.data, first, first + count);
            part.scales = sliceRows(stack.view.scales, first, first + count);
            testing::runOp(context, ExpertMatmul{x, true, own, part, {}, rows, {}});
            testing::runOp(context, MoeCombine{rows, weights, {}, sum, {}, own});
            return sum.values();
        };
        const std::vector<double> whole = sumOf(0, kStack), low = sumOf(0, 2), high = sumOf(2, 4);
        for (std::size_t i = 0; i < whole.size(); ++i) {
            ASSERT_NEAR(low[i] + high[i], whole[i], 1e-4);
        }
    }
}

TEST(MoeCombine, WeightedSumInOrder) {
    std::mt19937 random(6);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::BF16, DType::F64}) {
        for (const bool residual : {false, true}) {
            TestTensor x(type, Shape{9 * 4, 700});
            TestTensor weights(DType::F32, Shape{9, 4});
            TestTensor out(type, Shape{9, 700}, 720);
            x.fillNormal(random);
            weights.fillNormal(random);
            std::vector<double> expected(9 * 700, 0.0);
            if (residual) {
                out.fillNormal(random);
                expected = out.values();
            }
            const std::vector<double> xs = x.values();
            const std::vector<double> ws = weights.values();
            for (std::size_t t = 0; t < 9; ++t) {
                for (std::size_t i = 0; i < 700; ++i) {
                    for (std::size_t j = 0; j < 4; ++j) {
                        expected[t * 700 + i] += ws[t * 4 + j] * xs[(t * 4 + j) * 700 + i];
                    }
                }
            }
            testing::runOp(context, MoeCombine{x, weights, residual ? out.view() : TensorView{}, out});
            testing::expectNear(out, expected, type == DType::F64 ? 1e-13 : 3e-6);
        }
    }
}

TEST(MoeCombine, RowsByExpertGiveTheSameSumsAndNoWeightsSumThemAsTheyAre) {
    std::mt19937 random(7);
    CpuContext context(2);
    const testing::TestGroups groups(random, 23, 3, 6, 5);
    for (const DType type : {DType::F32, DType::BF16, DType::F64}) {
        TestTensor x(type, Shape{69, 40}), sorted(type, Shape{69, 40}), weights(DType::F32, Shape{23, 3});
        TestTensor expected(type, Shape{23, 40}), out(type, Shape{23, 40}, 48), ones(DType::F32, Shape{23, 3});
        x.fillNormal(random);
        weights.fillNormal(random);
        ones.fill(std::vector<double>(69, 1));
        testing::runOp(context, GatherPairs{x, groups.pairs, sorted}); // one pair for each row of x
        for (const bool weighted : {true, false}) {
            testing::runOp(context, MoeCombine{x, weighted ? weights : ones, {}, expected, {}});
            testing::runOp(context,
                           MoeCombine{sorted, weighted ? weights.view() : TensorView{}, {}, out, groups.places});
            EXPECT_EQ(out.values(), expected.values());
        }
    }
    TestTensor x(DType::F32, Shape{69, 8}), out(DType::F32, Shape{23, 8});
    MoeCombine op{x, {}, {}, out, groups.places};
    check(op);
    op.places.shape = Shape{68};
    testing::expectCheckNames(op, "places");
}

TEST(RouterTopKBackward, AgainstFiniteDifferences) {
    std::mt19937 random(8);
    CpuContext context(2);
    for (const auto& [experts, k] : {std::pair{6, 2}, {33, 4}, {5, 5}, {4, 1}}) {
        for (const int form : {0, 1, 2}) {
            for (const bool balanced : {false, true}) {
                SCOPED_TRACE(::testing::Message() << experts << " experts, form " << form << ", balanced " << balanced);
                RouterScene scene(random, experts, k,
                                  form == 0 ? RouterOrder::TopKThenSoftmax : RouterOrder::SoftmaxThenTopK, form == 2);
                testing::runOp(context, scene.forward);
                RouterTopKBackward op{scene.forward, scene.byWeight, {}, scene.gradLogits};
                op.gradProbabilities = balanced ? scene.byProbability.view() : TensorView{};
                testing::runOp(context, op);
                testing::expectGradient(scene.logits, scene.gradLogits.values(), [&] { return scene.loss(balanced); });
                EXPECT_TRUE(scene.gradLogits.guardsIntact());
            }
        }
    }
}

TEST(RouterTopKBackward, NarrowGradientsFollowTheWideOnes) {
    std::mt19937 random(9);
    CpuContext context(2);
    for (const RouterOrder order : {RouterOrder::TopKThenSoftmax, RouterOrder::SoftmaxThenTopK}) {
        for (const DType type : {DType::F32, DType::BF16}) {
            RouterScene scene(random, 32, 4, order, true);
            TestTensor logits(type, Shape{5, 32}), byWeight(DType::F32, Shape{5, 4}), gradLogits(type, Shape{5, 32});
            testing::fillBoth(random, logits, scene.logits, 2);
            testing::fillBoth(random, byWeight, scene.byWeight);
            testing::runOp(context, scene.forward);
            testing::runOp(context, RouterTopKBackward{scene.forward, scene.byWeight, {}, scene.gradLogits});
            RouterTopK forward = scene.forward;
            forward.logits = logits;
            testing::runOp(context, RouterTopKBackward{forward, byWeight, {}, gradLogits});
            testing::expectClose(gradLogits, scene.gradLogits.values(), 1e-6);
        }
    }
}

TEST(RouterShares, AreProbabilitiesAndTheChoice) {
    std::mt19937 random(11);
    CpuContext context(2);
    for (const auto& [experts, k] : {std::pair{6, 2}, {33, 4}, {4, 4}}) {
        RouterScene scene(random, experts, k, RouterOrder::TopKThenSoftmax, false);
        testing::runOp(context, scene.forward);
        TestTensor out(DType::F32, Shape{5, 2 * experts});
        testing::runOp(context, RouterShares{scene.forward, out});
        const std::vector<double> logits = scene.logits.values(), ids = scene.ids.values();
        std::vector<double> expected;
        for (int t = 0; t < 5; ++t) {
            const auto first = logits.begin() + static_cast<std::ptrdiff_t>(t) * experts;
            const std::vector<double> row = softmax({first, first + experts});
            expected.insert(expected.end(), row.begin(), row.end());
            const auto chosen = ids.begin() + static_cast<std::ptrdiff_t>(t) * k;
            for (int e = 0; e < experts; ++e) {
                expected.push_back(std::find(chosen, chosen + k, e) == chosen + k ? 0 : 1);
            }
        }
        testing::expectClose(out, expected, 1e-6);
        EXPECT_TRUE(out.guardsIntact());
    }
}

TEST(RouterShares, CheckNamesTheField) {
    std::mt19937 random(12);
    const RouterScene scene(random, 6, 2, RouterOrder::TopKThenSoftmax, false);
    const TestTensor out(DType::F32, Shape{5, 12});
    const RouterShares good{scene.forward, out};
    check(good);
    RouterShares op = good;
    op.out.shape = Shape{5, 6};
    testing::expectCheckNames(op, "out");
    op = good;
    op.out.dtype = DType::BF16;
    testing::expectCheckNames(op, "out");
}

TEST(RouterTopKBackward, CheckNamesTheField) {
    std::mt19937 random(10);
    RouterScene scene(random, 6, 2, RouterOrder::TopKThenSoftmax, false);
    const RouterTopKBackward good{scene.forward, scene.byWeight, scene.byProbability, scene.gradLogits};
    check(good);
    RouterTopKBackward op = good;
    op.gradWeights.shape = Shape{5, 3};
    testing::expectCheckNames(op, "gradWeights");
    op = good;
    op.gradWeights.dtype = DType::BF16;
    testing::expectCheckNames(op, "gradWeights");
    op = good;
    op.gradProbabilities.shape = Shape{5};
    testing::expectCheckNames(op, "gradProbabilities");
    op = good;
    op.gradLogits.shape = Shape{4, 6};
    testing::expectCheckNames(op, "gradLogits");
    op = good;
    op.gradLogits = op.forward.logits;
    testing::expectCheckNames(op, "gradLogits");
}

} // namespace
} // namespace vitrine::kernels
