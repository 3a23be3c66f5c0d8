// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/policy_loss.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

/// Tokens of a policy, of which every fifth does not count; the sums begin at what an earlier call left.
struct PolicyTokens {
    TestTensor logProbs, targets, advantages, weights, old, rollout, reference, entropies, gradients, sums;

    PolicyTokens(std::mt19937& random, DType type, DType oldType, std::int64_t rows)
        : logProbs(type, Shape{rows}), targets(DType::I32, Shape{rows}), advantages(DType::F32, Shape{rows}),
          weights(DType::F32, Shape{rows}), old(oldType, Shape{rows}), rollout(DType::F32, Shape{rows}),
          reference(DType::F32, Shape{rows}), entropies(type, Shape{rows}), gradients(type, Shape{rows}),
          sums(DType::F64, Shape{PolicySums::kCount}) {
        for (TestTensor* tensor : {&logProbs, &old, &rollout, &reference}) {
            tensor->fillNormal(random, 0.4);
        }
        for (TestTensor* tensor : {&advantages, &weights, &entropies}) {
            tensor->fillNormal(random);
        }
        std::vector<std::int32_t> ids;
        for (std::int64_t row = 0; row < rows; ++row) {
            ids.push_back(row % 5 == 4 ? -1 : 7);
        }
        targets.fillInts(ids);
        resetSums();
    }

    void resetSums() { sums.fill(std::vector<double>(PolicySums::kCount, 12.25)); }

    /// The bits of `given` say which optional tensors are there.
    template <class At> PolicyLoss op(At&& at, int given, float cap) const {
        const auto optional = [&](int bit, const TestTensor& tensor) {
            return (given >> bit & 1) != 0 ? at(tensor) : TensorView{};
        };
        PolicyLoss out{};
        out.logProbs = at(logProbs);
        out.targets = at(targets);
        out.advantages = at(advantages);
        out.weights = at(weights);
        out.old = optional(0, old);
        out.rollout = optional(1, rollout);
        out.reference = optional(2, reference);
        out.entropies = optional(3, entropies);
        out.gradLogProbs = optional(4, gradients);
        out.clipLow = 0.2F;
        out.clipHigh = 0.28F;
        out.klCoefficient = 0.05F;
        out.importanceCap = cap;
        out.sums = at(sums);
        return out;
    }
};

constexpr int kAllGiven = 31;

void expectPolicyOnGpu(PolicyTokens& tokens, int given, float cap) {
    std::vector<testing::ComparedOutput> outputs{{&tokens.sums, 1e-12}};
    if ((given & 16) != 0) {
        outputs.push_back({&tokens.gradients, tokens.gradients.view().dtype == DType::F64 ? 1e-14 : 1e-7});
    }
    testing::expectSameOnGpu(*testing::gpu(), [&](auto&& at) { return tokens.op(at, given, cap); }, outputs);
}

TEST(PolicyLossGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(51);
    for (const auto& [type, oldType] : {std::pair{DType::F32, DType::F32},
                                        {DType::F32, DType::F64},
                                        {DType::F64, DType::F32},
                                        {DType::F64, DType::F64}}) {
        for (const std::int64_t rows : {0, 1, 33, 1024, 32771}) {
            for (const float cap : {0.0F, 1.3F}) {
                SCOPED_TRACE(::testing::Message() << dtypeName(type) << ", old " << dtypeName(oldType) << ", rows "
                                                  << rows << ", cap " << cap);
                PolicyTokens tokens(random, type, oldType, rows);
                expectPolicyOnGpu(tokens, kAllGiven, cap);
            }
        }
    }
}

TEST(PolicyLossGpu, WithoutOptionalTensors) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(52);
    for (int given = 0; given < kAllGiven; ++given) {
        SCOPED_TRACE(given);
        PolicyTokens tokens(random, DType::F32, DType::F32, 2500);
        expectPolicyOnGpu(tokens, given, 1.3F);
        if ((given & 1) == 0) {
            EXPECT_EQ(tokens.sums.values()[PolicySums::Ratio], 2000 + 12.25) << "each ratio is exactly 1";
        }
    }
}

TEST(PolicyLossGpu, RepeatsToTheBit) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(53);
    PolicyTokens tokens(random, DType::F32, DType::F32, 32771);
    std::vector<double> first;
    for (int i = 0; i < 3; ++i) {
        tokens.resetSums();
        testing::OnDevice device(*testing::gpu());
        PolicyLoss op = tokens.op(device, kAllGiven, 1.3F);
        device.run(op);
        device.download(tokens.sums);
        first = i == 0 ? tokens.sums.values() : first;
        EXPECT_EQ(tokens.sums.values(), first);
    }
}

TEST(PolicyLossGpu, NaNShows) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(54);
    PolicyTokens tokens(random, DType::F32, DType::F32, 100);
    tokens.logProbs.view().as<float>()[1] = std::numeric_limits<float>::quiet_NaN();
    tokens.logProbs.view().as<float>()[4] = std::numeric_limits<float>::quiet_NaN(); // does not count
    testing::OnDevice device(*testing::gpu());
    PolicyLoss op = tokens.op(device, kAllGiven, 1.3F);
    device.run(op);
    device.download(tokens.sums);
    device.download(tokens.gradients);
    EXPECT_TRUE(std::isnan(tokens.sums.values()[PolicySums::Loss]));
    EXPECT_EQ(tokens.sums.values()[PolicySums::Tokens], 80 + 12.25);
    EXPECT_TRUE(std::isnan(tokens.gradients.values()[1]));
    EXPECT_EQ(tokens.gradients.values()[4], 0);
    EXPECT_TRUE(std::isfinite(tokens.gradients.values()[0]));
}

} // namespace
} // namespace vitrine::kernels
