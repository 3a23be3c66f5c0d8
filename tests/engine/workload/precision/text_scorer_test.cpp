// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Log-probabilities and divergences against plain computations in double.

#include "engine/workload/precision/text_scorer.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "base/error.h"
#include "engine/training/parameters/host_floats.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

std::vector<double> plainLogprobs(std::span<const float> logits) {
    const double largest = *std::ranges::max_element(logits);
    double sum = 0;
    for (const float logit : logits) {
        sum += std::exp(logit - largest);
    }
    std::vector<double> out;
    for (const float logit : logits) {
        out.push_back(logit - largest - std::log(sum));
    }
    return out;
}

double plainDivergence(const std::vector<double>& reference, const std::vector<double>& other) {
    double sum = 0;
    for (std::size_t i = 0; i < reference.size(); ++i) {
        sum += std::exp(reference[i]) * (reference[i] - other[i]);
    }
    return sum;
}

std::vector<float> randomLogits(std::size_t count, unsigned seed, float spread) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, spread);
    std::vector<float> out(count);
    std::ranges::generate(out, [&] { return normal(random); });
    return out;
}

TEST(TextScorer, OneRowIsWhatThePlainFormulasSay) {
    std::vector<float> reference = randomLogits(1000, 1, 4), changed = randomLogits(1000, 2, 4);
    const std::vector<double> plain = plainLogprobs(changed), plainReference = plainLogprobs(reference);
    logSoftmax(reference);
    logSoftmax(changed);
    const TokenEffect effect = tokenEffect(changed, reference, 77);
    EXPECT_NEAR(effect.logprob, plain[77], 1e-5);
    EXPECT_NEAR(effect.kl, plainDivergence(plainReference, plain), 1e-4);
    std::vector<std::size_t> order(plain.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return plain[a] > plain[b]; });
    EXPECT_EQ(effect.best[0].id, static_cast<std::int32_t>(order[0]));
    EXPECT_EQ(effect.best[1].id, static_cast<std::int32_t>(order[1]));
    EXPECT_NEAR(effect.best[1].logprob, plain[order[1]], 1e-5);
    EXPECT_EQ(tokenEffect(reference, reference, 3).kl, 0);
    EXPECT_EQ(tokenEffect(reference, {}, 3).kl, 0);
}

TEST(TextScorer, ALogitFarBelowCountsNothing) {
    std::vector<float> reference{0, 0, -2000}, changed{0, 0, -1500};
    logSoftmax(reference);
    logSoftmax(changed);
    EXPECT_NEAR(tokenEffect(changed, reference, 0).kl, 0, 1e-7);
    EXPECT_NEAR(tokenEffect(changed, reference, 0).logprob, std::log(0.5), 1e-6);
}

TEST(TextScorer, WhatIsNoNumberShows) {
    const float nan = std::nanf("");
    std::vector<float> good{0, 1, 2}, broken{0, nan, 2};
    logSoftmax(good);
    logSoftmax(broken);
    EXPECT_TRUE(std::isnan(tokenEffect(broken, good, 0).kl));
    EXPECT_TRUE(std::isnan(tokenEffect(good, broken, 0).kl));
    EXPECT_TRUE(std::isnan(tokenEffect(broken, good, 0).logprob));
    EXPECT_EQ(tokenEffect(broken, good, 0).best[0].id, -1);
}

TEST(TextScorer, MeansLeaveTheFirstTokenOut) {
    std::vector<TokenEffect> reference(3), changed(3);
    reference[1].best[0].id = 4, reference[2].best[0].id = 5;
    changed[1] = {-1, 0.5F, {{{4, -1}, {}}}};
    changed[2] = {-3, 0.1F, {{{9, -1}, {}}}};
    changed[0].kl = 100;
    const TextMeans means = textMeans(changed, reference);
    EXPECT_NEAR(means.kl, 0.3, 1e-6);
    EXPECT_EQ(means.topOne, 0.5);
    EXPECT_NEAR(means.perplexity, std::exp(2.0), 1e-9);
}

class ScoredModel : public testing::Test {
protected:
    static constexpr std::size_t kTokens = 11;

    std::vector<float> logits() {
        StepBatch batch;
        batch.sequences = {{0, ids_}};
        batch.logits = StepLogits::All;
        std::vector<float> out(ids_.size() * vocab());
        batch.logitsOut = out.data();
        model_.step(batch);
        return out;
    }
    std::size_t vocab() const { return static_cast<std::size_t>(model_.config().vocab); }
    /// Changes one weight of the model.
    void change() {
        for (const Parameter& parameter : model_.parameters()) {
            if (parameter.role == ParameterRole::Down && parameter.layer == 0) {
                std::vector<float> values = downloadFloats(*context_, parameter.view.data);
                std::ranges::for_each(values, [](float& value) { value = std::round(value * 8) / 8; });
                uploadFloats(*context_, values, parameter.view.data);
            }
        }
    }
    static KvCacheOptions cache() {
        KvCacheOptions options;
        options.dtype = kernels::DType::F32;
        return options;
    }

    std::unique_ptr<kernels::Context> context_ = test::makeContext(kernels::Backend::Cpu);
    Model model_{*context_, openModel("synthetic:tiny-llama"), ModelOptions{}, nullptr};
    std::vector<std::int32_t> ids_{5, 9, 200, 31, 77, 5, 12, 140, 8, 8, 17};
};

TEST_F(ScoredModel, AnyPiecesGiveTheDivergenceOfTheWholeText) {
    const std::vector<float> before = logits();
    TextScorer inPieces(model_, ids_, cache(), 3), atOnce(model_, ids_, cache(), 100);
    const std::vector<TokenEffect> reference = inPieces.score("before", nullptr);
    atOnce.score("before", nullptr);
    change();
    const std::vector<float> after = logits();
    const std::vector<TokenEffect> pieces = inPieces.score("after", nullptr), whole = atOnce.score("after", nullptr);
    ASSERT_EQ(pieces.size(), kTokens);
    double largest = 0;
    for (std::size_t i = 1; i < kTokens; ++i) {
        const auto row = [&](const std::vector<float>& all) {
            return plainLogprobs(std::span(all).subspan((i - 1) * vocab(), vocab()));
        };
        const double expected = plainDivergence(row(before), row(after));
        EXPECT_NEAR(pieces[i].kl, expected, 1e-5 + expected * 1e-3) << i;
        EXPECT_NEAR(whole[i].kl, expected, 1e-5 + expected * 1e-3) << i;
        EXPECT_NEAR(reference[i].logprob, row(before)[static_cast<std::size_t>(ids_[i])], 1e-4);
        EXPECT_NEAR(pieces[i].logprob, row(after)[static_cast<std::size_t>(ids_[i])], 1e-4);
        EXPECT_EQ(reference[i].kl, 0);
        largest = std::max(largest, expected);
    }
    EXPECT_GT(largest, 1e-4) << "the change must show";
}

TEST_F(ScoredModel, ProgressCountsTheTokens) {
    class Counts final : public base::ProgressSink {
    public:
        void progress(std::string_view what, std::uint64_t done, std::uint64_t total) override {
            EXPECT_EQ(what, "scoring");
            EXPECT_EQ(total, kTokens - 1);
            seen.push_back(done);
        }
        std::vector<std::uint64_t> seen;
    };
    Counts counts;
    TextScorer(model_, ids_, cache(), 4).score("scoring", &counts);
    EXPECT_EQ(counts.seen, (std::vector<std::uint64_t>{0, 4, 8}));
}

} // namespace
} // namespace vitrine::engine
