// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/sampling/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

struct Result {
    std::vector<double> ids;
    std::vector<double> logprobs;
};

Result sample(const TestTensor& logits, const std::vector<SampleParameters>& parameters, int threads = 2) {
    CpuContext context(threads);
    const std::int64_t rows = logits.view().shape[0];
    TestTensor ids(DType::I32, Shape{rows});
    TestTensor logprobs(DType::F32, Shape{rows});
    Sample op;
    op.logits = logits;
    op.parameters = parameters;
    op.ids = ids;
    op.logprobs = logprobs;
    testing::runOp(context, op);
    EXPECT_TRUE(ids.guardsIntact());
    EXPECT_TRUE(logprobs.guardsIntact());
    return {ids.values(), logprobs.values()};
}

TestTensor repeatRow(const std::vector<double>& row, std::int64_t rows, DType type = DType::F32) {
    TestTensor logits(type, Shape{rows, static_cast<std::int64_t>(row.size())});
    std::vector<double> all;
    for (std::int64_t r = 0; r < rows; ++r) {
        all.insert(all.end(), row.begin(), row.end());
    }
    logits.fill(all);
    return logits;
}

std::vector<double> softmaxOf(const std::vector<double>& logits) {
    double sum = 0;
    std::vector<double> out;
    const double maximum = *std::max_element(logits.begin(), logits.end());
    for (const double logit : logits) {
        out.push_back(std::exp(logit - maximum));
        sum += out.back();
    }
    for (double& value : out) {
        value /= sum;
    }
    return out;
}

/// Draws many positions and compares the shares with the probabilities by Pearson's chi-squared.
void expectDistribution(const std::vector<double>& logits, SampleParameters parameters,
                        const std::vector<double>& probabilities) {
    constexpr std::int64_t kDraws = 20000;
    const TestTensor rows = repeatRow(logits, kDraws);
    std::vector<SampleParameters> all(kDraws, parameters);
    for (std::int64_t i = 0; i < kDraws; ++i) {
        all[static_cast<std::size_t>(i)].position = i;
    }
    std::vector<double> counts(logits.size(), 0.0);
    for (const double id : sample(rows, all).ids) {
        counts.at(static_cast<std::size_t>(id)) += 1;
    }
    double chi = 0;
    int cells = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        if (probabilities[i] == 0) {
            EXPECT_EQ(counts[i], 0) << "token " << i << " was filtered out";
            continue;
        }
        const double expected = probabilities[i] * kDraws;
        chi += (counts[i] - expected) * (counts[i] - expected) / expected;
        ++cells;
    }
    // Far tail: mean cells - 1, deviation sqrt(2 (cells - 1)); the seed is fixed, so this cannot flicker.
    EXPECT_LT(chi, cells - 1 + 6 * std::sqrt(2.0 * std::max(1, cells - 1)));
}

const std::vector<double> kLogits{1.0, 2.5, -0.5, 2.0, 0.0, 2.4, -3.0, 1.5};

TEST(Sample, GreedyTakesTheLowestOfTheBest) {
    std::mt19937 random(1);
    for (const std::int64_t vocab : {1, 15, 255, 256, 257, 5001}) {
        for (const DType type : {DType::F32, DType::BF16}) {
            TestTensor logits(type, Shape{5, vocab}, vocab + 3);
            logits.fillNormal(random); // BF16 has many ties
            const Result result = sample(logits, std::vector<SampleParameters>(5));
            const std::vector<double> values = logits.values();
            for (std::int64_t row = 0; row < 5; ++row) {
                const auto begin = values.begin() + row * vocab;
                EXPECT_EQ(result.ids[static_cast<std::size_t>(row)], std::max_element(begin, begin + vocab) - begin);
            }
        }
    }
}

TEST(Sample, LogprobIsOfTheRawLogits) {
    SampleParameters hot;
    hot.temperature = 5;
    hot.seed = 3;
    hot.topK = 4;
    const TestTensor logits = repeatRow(kLogits, 50);
    std::vector<SampleParameters> parameters(50, hot);
    for (std::size_t i = 0; i < 50; ++i) {
        parameters[i].position = static_cast<std::int64_t>(i);
    }
    const Result result = sample(logits, parameters);
    const std::vector<double> shares = softmaxOf(kLogits);
    for (std::size_t i = 0; i < 50; ++i) {
        EXPECT_NEAR(result.logprobs[i], std::log(shares[static_cast<std::size_t>(result.ids[i])]), 2e-6);
    }
}

TEST(Sample, TemperatureDistribution) {
    SampleParameters parameters;
    parameters.temperature = 0.7F;
    parameters.seed = 11;
    std::vector<double> scaled;
    for (const double logit : kLogits) {
        scaled.push_back(logit / static_cast<double>(0.7F));
    }
    expectDistribution(kLogits, parameters, softmaxOf(scaled));
}

std::vector<double> keepOnly(const std::vector<double>& probabilities, const std::set<std::size_t>& kept) {
    std::vector<double> out(probabilities.size(), 0.0);
    double sum = 0;
    for (const std::size_t i : kept) {
        sum += probabilities[i];
    }
    for (const std::size_t i : kept) {
        out[i] = probabilities[i] / sum;
    }
    return out;
}

TEST(Sample, FiltersDistribution) {
    const std::vector<double> shares = softmaxOf(kLogits);
    SampleParameters parameters;
    parameters.temperature = 1;
    parameters.seed = 12;
    parameters.topK = 3;
    expectDistribution(kLogits, parameters, keepOnly(shares, {1, 3, 5}));
    // Shares descending: 1 (.319), 5 (.288), 3 (.193), 7 (.117), 0 (.071), ...: .75 needs three.
    parameters.topK = 0;
    parameters.topP = 0.75F;
    expectDistribution(kLogits, parameters, keepOnly(shares, {1, 3, 5}));
    parameters.topP = 1e-6F;
    expectDistribution(kLogits, parameters, keepOnly(shares, {1}));
    parameters.topP = 1;
    parameters.minP = 0.3F; // of the best share: keeps above .0957
    expectDistribution(kLogits, parameters, keepOnly(shares, {1, 3, 5, 7}));
    // Top-p works on the shares that top-k has left: of {1, 5} the first has .525, so .5 keeps one.
    parameters.minP = 0;
    parameters.topK = 2;
    parameters.topP = 0.5F;
    expectDistribution(kLogits, parameters, keepOnly(shares, {1}));
}

TEST(Sample, TopPOverALargeFlatVocabulary) {
    // The sorted front must grow several times: 5000 nearly equal tokens.
    std::vector<double> logits;
    for (int i = 0; i < 5000; ++i) {
        logits.push_back(i * 1e-5);
    }
    const TestTensor rows = repeatRow(logits, 400);
    std::vector<SampleParameters> parameters(400);
    for (std::size_t i = 0; i < 400; ++i) {
        parameters[i].temperature = 1;
        parameters[i].topP = 0.5F;
        parameters[i].position = static_cast<std::int64_t>(i);
    }
    double lowest = 5000;
    for (const double id : sample(rows, parameters).ids) {
        lowest = std::min(lowest, id);
    }
    EXPECT_GE(lowest, 2500 - 40); // the better half, whose share is a little above one half
    EXPECT_LE(lowest, 2600);
}

TEST(Sample, RepetitionPenaltyOncePerToken) {
    const std::vector<std::int32_t> history{1, 1, 1, 3};
    SampleParameters parameters;
    parameters.repetitionPenalty = 1.2F;
    parameters.history = history.data();
    parameters.historyLength = 4;
    // 2.5 / 1.2 = 2.083 and 2.0 / 1.2: token 5 (2.4) wins. Were 1 penalised thrice it would not matter; raise it.
    EXPECT_EQ(sample(repeatRow(kLogits, 1), {parameters}).ids[0], 5);
    std::vector<double> close = kLogits;
    close[5] = 2.0;
    EXPECT_EQ(sample(repeatRow(close, 1), {parameters}).ids[0], 1); // thrice would give 1.45
    const std::vector<std::int32_t> negative{0};
    parameters.history = negative.data();
    parameters.historyLength = 1;
    EXPECT_EQ(sample(repeatRow({-1.0, -1.1}, 1), {parameters}).ids[0], 1); // -1 * 1.2 is worse
}

TEST(Sample, PenaltiesAndBiasesAreThoseOfAReferenceInDoubles) {
    std::mt19937 random(std::random_device{}());
    std::normal_distribution<double> normal(0, 2);
    std::uniform_real_distribution<float> penalty(-2, 2);
    constexpr std::int64_t kVocab = 300;
    std::uniform_int_distribution<std::int32_t> anyId(0, kVocab - 1);
    for (int round = 0; round < 200; ++round) {
        std::vector<double> row(kVocab);
        std::ranges::generate(row, [&] { return static_cast<double>(static_cast<float>(normal(random))); });
        std::vector<std::int32_t> history(40);
        std::ranges::generate(history, [&] { return anyId(random) / 10; });
        std::vector<LogitBias> bias;
        for (int i = 0; i < round % 5; ++i) {
            bias.push_back({anyId(random), 3 * penalty(random)});
        }
        SampleParameters parameters;
        parameters.history = history.data();
        parameters.historyLength = static_cast<std::int64_t>(history.size());
        parameters.promptTokens = round % 40;
        parameters.frequencyPenalty = round % 3 == 0 ? 0 : penalty(random);
        parameters.presencePenalty = round % 4 == 0 ? 0 : penalty(random);
        parameters.repetitionPenalty = round % 7 == 0 ? 1.3F : 1;
        parameters.bias = bias;
        std::vector<double> expected = row;
        const std::set<std::int32_t> seen(history.begin(), history.end());
        for (const std::int32_t id : seen) {
            double& value = expected[static_cast<std::size_t>(id)];
            const auto by = static_cast<double>(parameters.repetitionPenalty);
            value = value < 0 ? value * by : value / by;
        }
        const std::set<std::int32_t> chosen(history.begin() + parameters.promptTokens, history.end());
        for (const std::int32_t id : chosen) {
            const auto times = std::count(history.begin() + parameters.promptTokens, history.end(), id);
            expected[static_cast<std::size_t>(id)] -=
                static_cast<double>(parameters.frequencyPenalty) * static_cast<double>(times) +
                static_cast<double>(parameters.presencePenalty);
        }
        for (const LogitBias& each : bias) {
            expected[static_cast<std::size_t>(each.id)] += static_cast<double>(each.bias);
        }
        const Result greedy = sample(repeatRow(row, 1), {parameters});
        const auto id = static_cast<std::size_t>(greedy.ids[0]);
        EXPECT_NEAR(expected[id], *std::ranges::max_element(expected), 1e-5) << "round " << round;
        const double logprob = std::log(softmaxOf(row)[id]);
        EXPECT_NEAR(greedy.logprobs[0], logprob, 1e-5) << "of the raw logits";
    }
}

TEST(Sample, OnlyNewTokensCountForFrequencyAndPresence) {
    const std::vector<std::int32_t> history{0, 0, 1, 1, 1, 2};
    SampleParameters parameters;
    parameters.history = history.data();
    parameters.historyLength = 6;
    parameters.promptTokens = 3;
    parameters.frequencyPenalty = 0.5F;
    parameters.presencePenalty = 0.25F;
    const std::vector<LogitBias> bias{{4, 1}, {1, 2}, {4, 0.5F}};
    parameters.bias = bias;
    const std::vector<LogitChange> changes = logitChanges(parameters);
    ASSERT_EQ(changes.size(), 3U) << "token 0 stands in the prompt only";
    EXPECT_EQ(changes[0].id, 1);
    EXPECT_FLOAT_EQ(changes[0].added, 2 - 1.25F);
    EXPECT_EQ(changes[1].id, 2);
    EXPECT_FLOAT_EQ(changes[1].added, -0.75F);
    EXPECT_EQ(changes[2].id, 4);
    EXPECT_FLOAT_EQ(changes[2].added, 1.5F);
    EXPECT_FALSE(plainlyGreedy({&parameters, 1}));
    parameters.bias = {};
    parameters.historyLength = 3;
    EXPECT_TRUE(plainlyGreedy({&parameters, 1})) << "nothing was chosen yet";
    EXPECT_TRUE(needsHistory(parameters));
}

TEST(Sample, ForbiddenIdsAreNeverChosen) {
    const std::vector<std::int32_t> forbidden{1, 5, 700};
    SampleParameters parameters;
    parameters.forbidden = forbidden.data();
    parameters.forbiddenCount = 3;
    EXPECT_EQ(sample(repeatRow(kLogits, 1), {parameters}).ids[0], 3);
    parameters.temperature = 1;
    std::vector<double> open = kLogits;
    open[1] = open[5] = -1e9;
    parameters.seed = 5;
    expectDistribution(kLogits, parameters, softmaxOf(open));
}

TEST(Sample, DependsOnSeedRequestAndPositionOnly) {
    std::mt19937 random(2);
    TestTensor logits(DType::F32, Shape{40, 300});
    logits.fillNormal(random);
    std::vector<SampleParameters> parameters(40);
    for (std::size_t i = 0; i < 40; ++i) {
        parameters[i].temperature = 1;
        parameters[i].seed = 77;
        parameters[i].request = static_cast<std::uint32_t>(i);
        parameters[i].position = 9;
        parameters[i].topP = i % 2 == 0 ? 1.0F : 0.9F;
    }
    const std::vector<double> together = sample(logits, parameters, 2).ids;
    EXPECT_EQ(together, sample(logits, parameters, 1).ids);
    std::vector<double> alone;
    for (std::int64_t i = 0; i < 40; ++i) {
        TestTensor row(DType::F32, Shape{1, 300});
        const std::vector<double> all = logits.values();
        row.fill(std::vector<double>(all.begin() + i * 300, all.begin() + (i + 1) * 300));
        alone.push_back(sample(row, {parameters[static_cast<std::size_t>(i)]}).ids[0]);
    }
    EXPECT_EQ(together, alone);
    for (SampleParameters& row : parameters) {
        row.seed = 78;
    }
    EXPECT_NE(together, sample(logits, parameters).ids);
    for (SampleParameters& row : parameters) {
        row.seed = 77;
        row.position = 10;
    }
    EXPECT_NE(together, sample(logits, parameters).ids);
}

TEST(Sample, TopLogprobs) {
    CpuContext context(2);
    const TestTensor logits = repeatRow(kLogits, 2);
    TestTensor ids(DType::I32, Shape{2});
    TestTensor topIds(DType::I32, Shape{2, 3});
    TestTensor values(DType::F32, Shape{2, 3});
    const std::vector<SampleParameters> parameters(2);
    Sample op;
    op.logits = logits;
    op.parameters = parameters;
    op.ids = ids;
    op.topLogprobs = 3;
    op.topIds = topIds;
    op.topLogprobValues = values;
    testing::runOp(context, op);
    EXPECT_EQ(topIds.values(), (std::vector<double>{1, 5, 3, 1, 5, 3}));
    const std::vector<double> shares = softmaxOf(kLogits);
    std::vector<double> expected;
    for (const std::size_t id : {1, 5, 3, 1, 5, 3}) {
        expected.push_back(std::log(shares[id]));
    }
    testing::expectNear(values, expected, 2e-6);
}

TEST(Sample, BrokenLogitsGiveSomeToken) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinite = std::numeric_limits<double>::infinity();
    SampleParameters parameters;
    parameters.temperature = 1;
    parameters.topP = 0.9F;
    for (const std::vector<double>& row :
         {std::vector<double>(300, nan), std::vector<double>(300, -infinite), std::vector<double>{nan, 1, infinite},
          std::vector<double>{infinite, nan, infinite}}) {
        const Result result = sample(repeatRow(row, 1), {parameters});
        EXPECT_TRUE(std::isnan(result.logprobs[0])) << "it says that the row is broken";
        const double id = result.ids[0];
        EXPECT_GE(id, 0);
        EXPECT_LT(id, static_cast<double>(row.size()));
    }
    const Result some = sample(repeatRow({nan, 1, nan}, 1), {SampleParameters{}});
    EXPECT_EQ(some.ids[0], 1);
    EXPECT_TRUE(std::isnan(some.logprobs[0])) << "also where the chosen one is a number";
    EXPECT_FALSE(std::isnan(sample(repeatRow({0, 1, -3e38}, 1), {SampleParameters{}}).logprobs[0]));
}

TEST(Sample, MetaTokensAreAHashOfSeedAndPosition) {
    SampleParameters parameters;
    std::set<std::int32_t> seen;
    for (int position = 0; position < 100; ++position) {
        parameters.position = position;
        const std::int32_t id = metaToken(parameters, 50000);
        EXPECT_EQ(id, metaToken(parameters, 50000));
        EXPECT_GE(id, 0);
        EXPECT_LT(id, 50000);
        seen.insert(id);
    }
    EXPECT_GT(seen.size(), 90U);
}

TEST(Sample, CheckNamesTheField) {
    const TestTensor logits = repeatRow(kLogits, 2);
    TestTensor ids(DType::I32, Shape{2});
    std::vector<SampleParameters> parameters(2);
    Sample op;
    op.logits = logits;
    op.parameters = parameters;
    op.ids = ids;
    testing::expectCheckNames(op, "scratch");
    parameters[1].topP = 0;
    testing::expectCheckNames(op, "topP");
    parameters[1].topP = 1;
    parameters[1].temperature = std::numeric_limits<float>::quiet_NaN();
    testing::expectCheckNames(op, "temperature");
    op.parameters = std::span(parameters).first(1);
    testing::expectCheckNames(op, "parameters");
}

} // namespace
} // namespace vitrine::kernels
