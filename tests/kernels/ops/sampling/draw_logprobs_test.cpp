// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The log-probabilities of draws that Sample reports, against sums over all tokens in float64.

#include <cmath>
#include <map>
#include <random>

#include "tests/kernels/ops/common/op_testing.h"
#include "tests/kernels/ops/sampling/draw_reference.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

struct Drawn {
    std::vector<double> ids, logprobs;
    std::vector<double> draws; ///< (rows, kDrawLogprobs)

    double of(std::size_t row, DrawLogprob which) const {
        return draws.at(row * static_cast<std::size_t>(kDrawLogprobs) + static_cast<std::size_t>(which));
    }
};

/// `wanted`: whether the log-probabilities of draws are.
Drawn drawRows(const TestTensor& logits, const std::vector<SampleParameters>& parameters, bool wanted = true) {
    CpuContext context(2);
    const std::int64_t rows = logits.view().shape[0];
    TestTensor ids(DType::I32, Shape{rows});
    TestTensor logprobs(DType::F32, Shape{rows});
    TestTensor draws(DType::F32, Shape{rows, kDrawLogprobs});
    Sample op;
    op.logits = logits;
    op.parameters = parameters;
    op.ids = ids;
    op.logprobs = logprobs;
    if (wanted) {
        op.drawLogprobs = draws;
    }
    testing::runOp(context, op);
    EXPECT_TRUE(draws.guardsIntact());
    return {ids.values(), logprobs.values(), draws.values()};
}

std::vector<double> rowOf(const TestTensor& logits, std::size_t row) {
    const auto vocab = static_cast<std::ptrdiff_t>(logits.view().shape[1]);
    const std::vector<double> all = logits.values();
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row) * vocab;
    return {begin, begin + vocab};
}

TEST(DrawLogprobs, AreThoseOfAReferenceInDoubles) {
    std::mt19937 random(21);
    for (const std::int64_t vocab : {700, 5003}) {
        for (const DType type : {DType::F32, DType::BF16}) {
            SCOPED_TRACE(vocab);
            constexpr std::int64_t kRows = 240;
            const testing::MixedRows rows(vocab, kRows, 5);
            TestTensor logits(type, Shape{kRows, vocab}, vocab + 5);
            logits.fillNormal(random, 3);
            const Drawn drawn = drawRows(logits, rows.parameters());
            const Drawn without = drawRows(logits, rows.parameters(), false);
            EXPECT_EQ(drawn.ids, without.ids);
            EXPECT_EQ(drawn.logprobs, without.logprobs) << "to the last bit";
            for (std::size_t row = 0; row < static_cast<std::size_t>(kRows); ++row) {
                const testing::DrawReference wanted = testing::drawReference(rowOf(logits, row), rows.parameters()[row],
                                                                             static_cast<std::int32_t>(drawn.ids[row]));
                EXPECT_NEAR(drawn.of(row, DrawLogprob::Drawn), wanted.drawn, 1e-5) << "row " << row;
                EXPECT_NEAR(drawn.of(row, DrawLogprob::Tempered), wanted.tempered, 1e-5) << "row " << row;
            }
        }
    }
}

TEST(DrawLogprobs, OfAllTokensThatAreDrawnAddUpToOne) {
    constexpr std::int64_t kDraws = 4000;
    std::mt19937 random(22);
    TestTensor logits(DType::F32, Shape{kDraws, 40});
    std::normal_distribution<double> normal;
    std::vector<double> row(40);
    std::ranges::generate(row, [&] { return normal(random); });
    std::vector<double> all;
    for (std::int64_t i = 0; i < kDraws; ++i) {
        all.insert(all.end(), row.begin(), row.end());
    }
    logits.fill(all);
    std::vector<SampleParameters> parameters(kDraws);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        parameters[i].temperature = 0.8F;
        parameters[i].topP = 0.9F;
        parameters[i].position = static_cast<std::int64_t>(i);
    }
    const Drawn drawn = drawRows(logits, parameters);
    std::map<double, double> shares;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        shares[drawn.ids[i]] = std::exp(drawn.of(i, DrawLogprob::Drawn));
    }
    double sum = 0;
    for (const auto& [id, share] : shares) {
        sum += share;
    }
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_LT(shares.size(), 40U) << "top-p leaves some out";
}

TEST(DrawLogprobs, WithoutChoiceAreThoseOfCertainty) {
    std::mt19937 random(23);
    TestTensor logits(DType::F32, Shape{4, 300});
    logits.fillNormal(random, 2);
    std::vector<std::int32_t> every(300);
    std::iota(every.begin(), every.end(), 0);
    std::vector<SampleParameters> parameters(4);
    parameters[1].temperature = 0.5F;
    parameters[1].topK = 1;
    parameters[2].repetitionPenalty = 1.5F;
    parameters[2].history = every.data();
    parameters[2].historyLength = 3;
    parameters[3].temperature = 1;
    parameters[3].forbidden = every.data();
    parameters[3].forbiddenCount = 300;
    const Drawn drawn = drawRows(logits, parameters);
    for (std::size_t row = 0; row < 4; ++row) {
        EXPECT_EQ(drawn.of(row, DrawLogprob::Drawn), 0) << "row " << row;
        const double tempered = drawn.of(row, DrawLogprob::Tempered);
        if (row == 1) {
            EXPECT_GT(tempered, drawn.logprobs[row]) << "the best has a larger share at half the temperature";
        } else {
            EXPECT_EQ(tempered, drawn.logprobs[row]) << "row " << row;
        }
    }
}

TEST(DrawLogprobs, OfBrokenRowsAreNotNumbers) {
    const double infinite = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    TestTensor logits(DType::F32, Shape{4, 3});
    logits.fill({nan, 1, 0, 1, infinite, 0, 1, 0, -infinite, 3, 2, 1});
    for (const float temperature : {0.0F, 0.7F, 1.0F}) {
        std::vector<SampleParameters> parameters(4);
        for (SampleParameters& row : parameters) {
            row.temperature = temperature;
        }
        const Drawn drawn = drawRows(logits, parameters);
        for (std::size_t row = 0; row < 4; ++row) {
            EXPECT_EQ(std::isnan(drawn.of(row, DrawLogprob::Drawn)), row < 3) << "row " << row;
            EXPECT_EQ(std::isnan(drawn.of(row, DrawLogprob::Tempered)), row < 3) << "row " << row;
        }
    }
}

TEST(DrawLogprobs, CheckNamesTheField) {
    TestTensor logits(DType::F32, Shape{2, 8}), ids(DType::I32, Shape{2}), draws(DType::F32, Shape{2});
    const std::vector<SampleParameters> parameters(2);
    Sample op;
    op.logits = logits;
    op.parameters = parameters;
    op.ids = ids;
    op.drawLogprobs = draws;
    testing::expectCheckNames(op, "drawLogprobs");
}

} // namespace
} // namespace vitrine::kernels
