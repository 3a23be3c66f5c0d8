// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/acceptance.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "base/philox.h"
#include "kernels/ops/sampling/sample.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

TEST(Acceptance, TheFirstDifferenceEndsTheDraft) {
    const std::vector<std::int32_t> draft = {4, 5, 6};
    EXPECT_EQ(acceptedTokens(draft, std::vector<std::int32_t>{4, 5, 6, 7}), 3);
    EXPECT_EQ(acceptedTokens(draft, std::vector<std::int32_t>{4, 5, 6}), 3);
    EXPECT_EQ(acceptedTokens(draft, std::vector<std::int32_t>{4, 9, 6, 7}), 1) << "what is right later does not count";
    EXPECT_EQ(acceptedTokens(draft, std::vector<std::int32_t>{9, 5, 6, 7}), 0);
    EXPECT_EQ(acceptedTokens({}, std::vector<std::int32_t>{9}), 0);
}

TEST(Acceptance, AssumedOnesHaveTheirMeanAndNeverExceedTheDraft) {
    for (const double rate : {0.0, 0.3, 0.7, 1.0}) {
        double mean = 0;
        for (int i = 1; i <= 5; ++i) {
            mean += std::pow(rate, i);
        }
        std::int64_t sum = 0;
        for (std::int64_t index = 0; index < 1000; ++index) {
            const std::int64_t one = assumedAcceptedTokens(rate, 5, index);
            EXPECT_GE(one, std::floor(mean));
            EXPECT_LE(one, std::ceil(mean));
            sum += one;
        }
        EXPECT_NEAR(static_cast<double>(sum) / 1000, mean, 0.001) << rate;
    }
    EXPECT_EQ(assumedAcceptedTokens(1, 0, 3), 0);
}

/// Draws of the model's sampler on the CPU for one row of logits, at positions 0, 1, ...
class Draws {
public:
    explicit Draws(std::vector<float> logits)
        : logits_(std::move(logits)), context_(test::makeContext(kernels::Backend::Cpu)) {}

    std::vector<std::int32_t> ids(kernels::SampleParameters parameters, std::int64_t first, std::int64_t count) {
        const auto vocab = static_cast<std::int64_t>(logits_.size());
        std::vector<float> rows;
        std::vector<kernels::SampleParameters> all;
        for (std::int64_t i = 0; i < count; ++i) {
            rows.insert(rows.end(), logits_.begin(), logits_.end());
            parameters.position = first + i;
            all.push_back(parameters);
        }
        std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
        kernels::Sample op;
        op.logits = {rows.data(), kernels::DType::F32, kernels::Shape{count, vocab}, {}};
        op.parameters = all;
        op.ids = {ids.data(), kernels::DType::I32, kernels::Shape{count}, {}};
        std::vector<std::byte> scratch(kernels::scratch(op, context_->traits()));
        op.scratch = {
            scratch.data(), kernels::DType::U8, kernels::Shape{static_cast<std::int64_t>(scratch.size())}, {}};
        context_->run(op);
        return ids;
    }

private:
    std::vector<float> logits_;
    std::unique_ptr<kernels::Context> context_;
};

/// The softmax at this temperature, of the `topK` best and no others.
std::vector<double> target(const std::vector<float>& logits, float temperature, std::size_t topK) {
    std::vector<double> p;
    for (const float logit : logits) {
        const auto better = std::count_if(logits.begin(), logits.end(), [&](float other) { return other > logit; });
        p.push_back(static_cast<std::size_t>(better) < topK ? std::exp(static_cast<double>(logit / temperature)) : 0);
    }
    double sum = 0;
    for (const double one : p) {
        sum += one;
    }
    for (double& one : p) {
        one /= sum;
    }
    return p;
}

/// What 100,000 requests get at the first place of a draft that `guess` gives for each: the distribution of the model,
/// whatever is guessed, and d is kept as often as the model has it. A chi-square test at 0.001: the critical value of 7
/// degrees of freedom is 24.32.
void expectTarget(const std::function<std::int32_t(std::int64_t)>& guess, double acceptance) {
    constexpr std::int64_t kDraws = 100'000;
    constexpr std::int64_t kAtOnce = 5'000;
    const std::vector<float> logits = {0.5F, 2, -1, 1.5F, 0, 1, 0.25F, -0.5F, -3, -4};
    const std::vector<double> p = target(logits, 0.8F, 8);
    Draws draws(logits);
    kernels::SampleParameters parameters;
    parameters.temperature = 0.8F;
    parameters.topK = 8;
    parameters.seed = 11;
    std::vector<std::int64_t> seen(logits.size());
    std::int64_t kept = 0;
    for (std::int64_t first = 0; first < kDraws; first += kAtOnce) {
        const std::vector<std::int32_t> chosen = draws.ids(parameters, first, kAtOnce);
        for (std::int64_t i = 0; i < kAtOnce; ++i) {
            const std::vector<std::int32_t> draft = {guess(first + i)};
            const std::span<const std::int32_t> choice = std::span(chosen).subspan(static_cast<std::size_t>(i), 1);
            const std::int64_t accepted = acceptedTokens(draft, choice);
            kept += accepted;
            ++seen[static_cast<std::size_t>(accepted > 0 ? draft[0] : choice[0])];
        }
    }
    double chiSquare = 0;
    for (std::size_t id = 0; id < p.size(); ++id) {
        const double expected = p[id] * static_cast<double>(kDraws);
        if (expected == 0) {
            EXPECT_EQ(seen[id], 0) << "the filters dropped token " << id;
            continue;
        }
        const double off = static_cast<double>(seen[id]) - expected;
        chiSquare += off * off / expected;
    }
    EXPECT_LT(chiSquare, 24.32);
    const double spread = std::sqrt(acceptance * (1 - acceptance) / static_cast<double>(kDraws));
    EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(kDraws), acceptance, 4 * spread);
}

TEST(Acceptance, TokensHaveTheModelsDistributionWhateverIsDrafted) {
    const std::vector<double> p = target({0.5F, 2, -1, 1.5F, 0, 1, 0.25F, -0.5F, -3, -4}, 0.8F, 8);
    expectTarget([](std::int64_t) { return 1; }, p[1]);
    expectTarget([](std::int64_t) { return 2; }, p[2]);
    expectTarget([](std::int64_t) { return 9; }, 0); // a token that the filters drop
    double mixed = 0;
    for (const double one : p) {
        mixed += one / static_cast<double>(p.size());
    }
    expectTarget([random = std::mt19937(5)](std::int64_t) mutable { return static_cast<std::int32_t>(random() % 10); },
                 mixed);
}

} // namespace
} // namespace vitrine::engine
