// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/policy_loss.h"

#include <algorithm>

#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

/// A policy loss with tensors of its own. Fields that are left out of the op are still there.
struct PolicyScene {
    TestTensor logProbs, targets, advantages, weights, old, rollout, reference, entropies, gradients, sums;
    bool hasOld = true, hasRollout = true, hasReference = true, hasEntropies = true, hasGradients = true;
    float clipLow = 0.2F, clipHigh = 0.28F, klCoefficient = 0.04F, importanceCap = 0;

    PolicyScene(DType type, std::int64_t rows, DType oldType)
        : logProbs(type, Shape{rows}), targets(DType::I32, Shape{rows}), advantages(DType::F32, Shape{rows}),
          weights(DType::F32, Shape{rows}), old(oldType, Shape{rows}), rollout(DType::F32, Shape{rows}),
          reference(DType::F32, Shape{rows}), entropies(type, Shape{rows}), gradients(type, Shape{rows}),
          sums(DType::F64, Shape{PolicySums::kCount}) {
        sums.fill(std::vector<double>(PolicySums::kCount, 0.0));
    }

    /// Values near each other; every fifth token does not count.
    void fillRandom(std::mt19937& random) {
        std::normal_distribution<double> normal;
        std::vector<std::vector<double>> values(7);
        std::vector<std::int32_t> ids;
        for (std::int64_t row = 0; row < logProbs.view().shape[0]; ++row) {
            const double base = -std::fabs(normal(random)) * 2;
            values[0].push_back(base);
            for (std::size_t i = 1; i < 4; ++i) {
                values[i].push_back(base + 0.4 * normal(random));
            }
            values[4].push_back(normal(random));
            values[5].push_back(0.01 * std::fabs(normal(random)));
            values[6].push_back(std::fabs(normal(random)));
            ids.push_back(row % 5 == 4 ? -1 : static_cast<std::int32_t>(row));
        }
        TestTensor* const tensors[] = {&logProbs, &old, &rollout, &reference, &advantages, &weights, &entropies};
        for (std::size_t i = 0; i < values.size(); ++i) {
            tensors[i]->fill(values[i]);
        }
        targets.fillInts(ids);
    }

    PolicyLoss op() const {
        PolicyLoss out{logProbs, targets, advantages, weights, {}, {}, {}, {}, 0, 0, 0, 0, {}, sums, {}};
        const auto give = [](TensorView& field, bool has, const TestTensor& tensor) {
            field = has ? tensor.view() : TensorView{};
        };
        give(out.old, hasOld, old);
        give(out.rollout, hasRollout, rollout);
        give(out.reference, hasReference, reference);
        give(out.entropies, hasEntropies, entropies);
        give(out.gradLogProbs, hasGradients, gradients);
        out.clipLow = clipLow;
        out.clipHigh = clipHigh;
        out.klCoefficient = klCoefficient;
        out.importanceCap = importanceCap;
        return out;
    }
};

struct PolicyReference {
    std::vector<double> sums = std::vector<double>(PolicySums::kCount, 0.0), gradients;
};

PolicyReference policyReference(const PolicyScene& scene) {
    PolicyReference out;
    const std::vector<double> logProbs = scene.logProbs.values(), targets = scene.targets.values();
    const std::vector<double> old = scene.hasOld ? scene.old.values() : logProbs, rollout = scene.rollout.values();
    const std::vector<double> reference = scene.reference.values(), advantages = scene.advantages.values();
    const std::vector<double> weights = scene.weights.values(), entropies = scene.entropies.values();
    const auto low = 1 - static_cast<double>(scene.clipLow), high = 1 + static_cast<double>(scene.clipHigh);
    const auto cap = static_cast<double>(scene.importanceCap), beta = static_cast<double>(scene.klCoefficient);
    const auto series = [](double x) { // k3 without cancellation
        double term = x * x / 2, sum = 0;
        for (int i = 3; i < 60; ++i) {
            sum += term;
            term *= x / i;
        }
        return sum;
    };
    for (std::size_t i = 0; i < logProbs.size(); ++i) {
        out.gradients.push_back(0);
        if (targets[i] < 0) {
            continue;
        }
        const double ratio = std::exp(logProbs[i] - old[i]), gap = old[i] - rollout[i];
        const bool weighs = scene.hasRollout && cap > 0;
        const double share = weights[i] * (weighs ? std::min(std::exp(gap), cap) : 1);
        const bool clipped = (advantages[i] > 0 && ratio > high) || (advantages[i] < 0 && ratio < low);
        const double bound = std::min(std::max(ratio, low), high);
        out.sums[PolicySums::Loss] -= share * advantages[i] * (clipped ? bound : ratio);
        out.gradients.back() -= clipped ? 0 : share * advantages[i] * ratio;
        out.sums[PolicySums::Clipped] += clipped ? 1 : 0;
        out.sums[PolicySums::Ratio] += ratio;
        out.sums[PolicySums::Tokens] += 1;
        out.sums[PolicySums::Entropy] += scene.hasEntropies ? entropies[i] : 0;
        if (scene.hasReference) {
            const double k3 = series(reference[i] - logProbs[i]);
            out.sums[PolicySums::Kl] += k3;
            out.sums[PolicySums::Loss] += weights[i] * beta * k3;
            out.gradients.back() += weights[i] * beta * (1 - std::exp(reference[i] - logProbs[i]));
        }
        if (scene.hasRollout) {
            out.sums[PolicySums::Gap] += std::fabs(gap);
            out.sums[PolicySums::Mismatch] += series(gap);
            out.sums[PolicySums::Truncated] += weighs && std::exp(gap) > cap ? 1 : 0;
        }
    }
    return out;
}

TEST(PolicyLoss, AgainstTheFormula) {
    std::mt19937 random(1);
    CpuContext context(2);
    for (const auto& [type, oldType] : {std::pair{DType::F32, DType::F32},
                                        {DType::F32, DType::F64},
                                        {DType::F64, DType::F32},
                                        {DType::F64, DType::F64}}) {
        for (int given = 0; given < 16; ++given) {
            for (const float cap : {0.0F, 1.1F}) {
                SCOPED_TRACE(::testing::Message() << dtypeName(type) << ", given " << given << ", cap " << cap);
                PolicyScene scene(type, 203, oldType);
                scene.fillRandom(random);
                scene.hasOld = (given & 1) != 0;
                scene.hasRollout = (given & 2) != 0;
                scene.hasReference = (given & 4) != 0;
                scene.hasEntropies = (given & 8) != 0;
                scene.importanceCap = cap;
                const PolicyReference expected = policyReference(scene);
                testing::runOp(context, scene.op());
                testing::expectNear(scene.sums, expected.sums, 1e-11);
                testing::expectNear(scene.gradients, expected.gradients, type == DType::F64 ? 1e-15 : 0, 2);
                scene.hasGradients = false;
                testing::runOp(context, scene.op());
                std::vector<double> twice = expected.sums;
                for (double& sum : twice) {
                    sum *= 2;
                }
                testing::expectNear(scene.sums, twice, 2e-11);
            }
        }
    }
}

TEST(PolicyLoss, GradientIsTheSlopeOfTheLoss) {
    std::mt19937 random(2);
    CpuContext context(1);
    PolicyScene scene(DType::F64, 60, DType::F64);
    scene.fillRandom(random);
    scene.importanceCap = 1.2F;
    testing::runOp(context, scene.op());
    const std::vector<double> x = scene.logProbs.values(), gradients = scene.gradients.values();
    EXPECT_GT(scene.sums.values()[PolicySums::Clipped], 2);
    EXPECT_GT(scene.sums.values()[PolicySums::Truncated], 2);
    scene.hasGradients = false;
    const auto lossAt = [&](std::size_t i, double move) {
        std::vector<double> moved = x;
        moved[i] += move;
        scene.logProbs.fill(moved);
        scene.sums.fill(std::vector<double>(PolicySums::kCount, 0.0));
        testing::runOp(context, scene.op());
        return scene.sums.values()[PolicySums::Loss];
    };
    const double step = 1e-6;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double slope = (lossAt(i, step) - lossAt(i, -step)) / (2 * step);
        EXPECT_NEAR(gradients[i], slope, 1e-8) << i;
    }
}

TEST(PolicyLoss, RatioIsExactlyOneWithoutOld) {
    std::mt19937 random(3);
    CpuContext context(1);
    PolicyScene scene(DType::F32, 100, DType::F32);
    scene.fillRandom(random);
    scene.clipLow = scene.clipHigh = 0; // nothing is clipped all the same
    scene.hasOld = scene.hasReference = scene.hasRollout = false;
    testing::runOp(context, scene.op());
    EXPECT_EQ(scene.sums.values()[PolicySums::Ratio], 80);
    EXPECT_EQ(scene.sums.values()[PolicySums::Tokens], 80);
    EXPECT_EQ(scene.sums.values()[PolicySums::Clipped], 0);
    const std::vector<double> advantages = scene.advantages.values(), weights = scene.weights.values();
    const std::vector<double> gradients = scene.gradients.values();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        const double expected = i % 5 == 4 ? 0 : -weights[i] * advantages[i];
        EXPECT_EQ(gradients[i], static_cast<double>(static_cast<float>(expected))) << i;
    }
}

/// With r = 1 and bounds of 1, or r beyond a bound of which only the side of the advantage counts.
TEST(PolicyLoss, ClipsOnTheSideOfTheAdvantage) {
    CpuContext context(1);
    PolicyScene scene(DType::F64, 6, DType::F64);
    const double up = std::log(2.0), down = -std::log(2.0);
    scene.logProbs.fill({up, up, down, down, 0, 0});
    scene.old.fill({0, 0, 0, 0, 0, 0});
    scene.advantages.fill({1, -1, 1, -1, 1, -1});
    scene.weights.fill({1, 1, 1, 1, 1, 1});
    scene.targets.fillInts({0, 0, 0, 0, 0, 0});
    scene.hasReference = scene.hasRollout = scene.hasEntropies = false;
    scene.clipLow = scene.clipHigh = 0.25F;
    testing::runOp(context, scene.op());
    testing::expectNear(scene.gradients, {0, 2, -0.5, 0, -1, 1}, 1e-15);
    EXPECT_EQ(scene.sums.values()[PolicySums::Clipped], 2);
    EXPECT_NEAR(scene.sums.values()[PolicySums::Loss], -1.25 + 2 - 0.5 + 0.75 - 1 + 1, 1e-14);
    scene.clipLow = scene.clipHigh = 0; // r = 1 lies on both bounds: the terms are equal
    scene.sums.fill(std::vector<double>(PolicySums::kCount, 0.0));
    testing::runOp(context, scene.op());
    testing::expectNear(scene.gradients, {0, 2, -0.5, 0, -1, 1}, 1e-15);
    EXPECT_EQ(scene.sums.values()[PolicySums::Clipped], 2);
}

TEST(PolicyLoss, ImportanceIsCutToTheCap) {
    CpuContext context(1);
    PolicyScene scene(DType::F64, 3, DType::F64);
    scene.logProbs.fill({-1, -1, -1});
    scene.rollout.fill({-3, -1.5, 0});
    scene.advantages.fill({1, 1, 1});
    scene.weights.fill({1, 1, 1});
    scene.targets.fillInts({0, 0, 0});
    scene.hasOld = scene.hasReference = scene.hasEntropies = false;
    testing::runOp(context, scene.op());
    testing::expectNear(scene.gradients, {-1, -1, -1}, 0);
    EXPECT_EQ(scene.sums.values()[PolicySums::Truncated], 0) << "off";
    scene.importanceCap = 2;
    testing::runOp(context, scene.op());
    testing::expectNear(scene.gradients, {-2, -std::exp(0.5), -std::exp(-1.0)}, 1e-15);
    EXPECT_EQ(scene.sums.values()[PolicySums::Truncated], 1);
    EXPECT_NEAR(scene.sums.values()[PolicySums::Gap], 2 * 3.5, 1e-14) << "of both runs";
}

TEST(PolicyLoss, TinyDifferencesHaveTinyDivergences) {
    CpuContext context(1);
    for (const double distance : {1e-3, 1e-5, 1e-7, -1e-6}) {
        PolicyScene scene(DType::F64, 1, DType::F64);
        scene.logProbs.fill({-distance});
        scene.reference.fill({0});
        scene.rollout.fill({0});
        scene.advantages.fill({0});
        scene.weights.fill({1});
        scene.targets.fillInts({0});
        scene.klCoefficient = 1;
        scene.hasOld = scene.hasEntropies = false;
        testing::runOp(context, scene.op());
        const double expected = distance * distance / 2 * (1 + distance / 3);
        EXPECT_NEAR(scene.sums.values()[PolicySums::Kl], expected, 1e-6 * expected + 1e-22);
        EXPECT_NEAR(scene.sums.values()[PolicySums::Loss], expected, 1e-6 * expected + 1e-22);
        EXPECT_NEAR(scene.sums.values()[PolicySums::Mismatch], distance * distance / 2 * (1 - distance / 3),
                    1e-6 * expected + 1e-22);
        EXPECT_NEAR(scene.gradients.values()[0], -std::expm1(distance), 1e-15 * std::fabs(distance));
    }
}

TEST(PolicyLoss, NaNShowsAndUncountedTokensAreNotLookedAt) {
    CpuContext context(1);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const bool counts : {false, true}) {
        std::mt19937 random(4);
        PolicyScene scene(DType::F32, 3, DType::F32);
        scene.fillRandom(random);
        scene.importanceCap = 2;
        scene.logProbs.fill({-1, nan, -1});
        scene.targets.fillInts({0, counts ? 0 : -1, 0});
        testing::runOp(context, scene.op());
        EXPECT_EQ(std::isnan(scene.gradients.values()[1]), counts);
        EXPECT_EQ(std::isnan(scene.sums.values()[PolicySums::Loss]), counts);
        EXPECT_FALSE(std::isnan(scene.gradients.values()[0]));
        EXPECT_EQ(scene.sums.values()[PolicySums::Tokens], counts ? 3 : 2);
    }
}

TEST(PolicyLoss, NoRows) {
    CpuContext context(1);
    PolicyScene scene(DType::F32, 0, DType::F32);
    scene.sums.fill(std::vector<double>(PolicySums::kCount, 1.5));
    testing::runOp(context, scene.op());
    testing::expectNear(scene.sums, std::vector<double>(PolicySums::kCount, 1.5), 0, 0);
}

TEST(PolicyLoss, CheckNamesTheField) {
    const PolicyScene scene(DType::F32, 3, DType::F64);
    const PolicyLoss good = scene.op();
    check(good);
    const auto expectWrong = [&](const std::string& field, const auto& spoil) {
        PolicyLoss op = good;
        spoil(op);
        testing::expectCheckNames(op, field);
    };
    expectWrong("logProbs", [](PolicyLoss& op) { op.logProbs.dtype = DType::BF16; });
    expectWrong("targets", [](PolicyLoss& op) { op.targets.dtype = DType::I64; });
    expectWrong("advantages", [](PolicyLoss& op) { op.advantages.shape = Shape{2}; });
    expectWrong("weights", [](PolicyLoss& op) { op.weights.dtype = DType::F64; });
    expectWrong("old", [](PolicyLoss& op) { op.old.shape = Shape{4}; });
    expectWrong("rollout", [](PolicyLoss& op) { op.rollout.dtype = DType::F64; });
    expectWrong("reference", [](PolicyLoss& op) { op.reference.shape = Shape{3, 1}; });
    expectWrong("entropies", [](PolicyLoss& op) { op.entropies.dtype = DType::F64; });
    expectWrong("clipLow", [](PolicyLoss& op) { op.clipLow = -0.1F; });
    expectWrong("clipHigh", [](PolicyLoss& op) { op.clipHigh = -0.1F; });
    expectWrong("klCoefficient", [](PolicyLoss& op) { op.klCoefficient = -1; });
    expectWrong("importanceCap", [](PolicyLoss& op) { op.importanceCap = -1; });
    expectWrong("gradLogProbs", [](PolicyLoss& op) { op.gradLogProbs.data = op.logProbs.data; });
    expectWrong("sums", [](PolicyLoss& op) { op.sums.dtype = DType::F32; });
    expectWrong("sums", [](PolicyLoss& op) { op.sums.shape = Shape{3}; });
}

TEST(PolicyLoss, CostIsWhatItMoves) {
    PolicyScene scene(DType::F32, 3, DType::F64);
    const Cost whole = cost(scene.op(), DeviceTraits{});
    EXPECT_EQ(whole.bytesRead, 3U * (7 * 4 + 8) + PolicySums::kCount * 8U);
    EXPECT_EQ(whole.bytesWritten, 3U * 4 + PolicySums::kCount * 8U);
    scene.hasOld = scene.hasRollout = scene.hasReference = scene.hasEntropies = scene.hasGradients = false;
    EXPECT_EQ(cost(scene.op(), DeviceTraits{}).bytesRead, 3U * 4 * 4 + PolicySums::kCount * 8U);
}

} // namespace
} // namespace vitrine::kernels
