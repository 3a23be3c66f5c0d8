// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/sampling/sample.h"

#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/sampling/draw_reference.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TestTensor randomLogits(DType type, std::int64_t rows, std::int64_t vocab, double deviation) {
    std::mt19937 random(16);
    TestTensor logits(type, Shape{rows, vocab});
    logits.fillNormal(random, deviation);
    return logits;
}

/// The same ids, log-probabilities and best on the CPU and on the device.
void expectSame(TestTensor& logits, const std::vector<SampleParameters>& parameters, std::int32_t best) {
    CudaContext& context = *testing::gpu();
    const std::int64_t rows = logits.view().shape[0];
    TestTensor ids(DType::I32, Shape{rows}), logprobs(DType::F32, Shape{rows});
    TestTensor topIds, topLogprobs, packed;
    if (best > 0) {
        topIds = TestTensor(DType::I32, Shape{rows, best});
        topLogprobs = TestTensor(DType::F32, Shape{rows, best});
    }
    const std::vector<std::int32_t> words = packSampleParameters(parameters);
    packed = TestTensor(DType::I32, Shape{static_cast<std::int64_t>(words.size())});
    packed.fillInts(words);
    const auto make = [&](auto&& at) {
        Sample op;
        op.logits = at(logits);
        op.parameters = parameters;
        op.packed = at(packed);
        op.ids = at(ids);
        op.logprobs = at(logprobs);
        op.topLogprobs = best;
        op.topIds = at(topIds);
        op.topLogprobValues = at(topLogprobs);
        return op;
    };
    testing::expectSameOnGpu(context, make, {&ids}, 0);
    testing::expectSameOnGpu(context, make, {&logprobs}, 1e-5);
    if (best > 0) {
        testing::expectSameOnGpu(context, make, {&topIds}, 0);
        testing::expectSameOnGpu(context, make, {&topLogprobs}, 1e-5);
    }
}

TEST(SampleGpu, GreedyTakesTheLowerIdOfEqualLogits) {
    VITRINE_NEEDS_GPU();
    for (const std::int64_t vocab : {201088, 1000, 517, 1}) {
        for (const DType type : {DType::F32, DType::BF16}) {
            SCOPED_TRACE(vocab);
            TestTensor logits = randomLogits(type, 5, vocab, 4);
            std::vector<double> values = logits.values();
            for (std::int64_t id = vocab / 3; id < vocab / 2; ++id) {
                values[static_cast<std::size_t>(id)] = 60; // row 0: many largest
            }
            logits.fill(values);
            expectSame(logits, std::vector<SampleParameters>(5), 0);
        }
    }
}

TEST(SampleGpu, BrokenLogitsDoNotWin) {
    VITRINE_NEEDS_GPU();
    TestTensor logits(DType::F32, Shape{1, 4100});
    std::vector<double> values(4100, -1);
    values[4099] = 2;
    for (const double broken : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        values[7] = broken;
        logits.fill(values);
        for (const float temperature : {0.0F, 1.0F}) {
            SampleParameters parameters;
            parameters.temperature = temperature;
            const std::vector<SampleParameters> rows(1, parameters);
            TestTensor ids(DType::I32, Shape{1}), logprobs(DType::F32, Shape{1});
            TestTensor packed(DType::I32, Shape{static_cast<std::int64_t>(packSampleParameters(rows).size())});
            packed.fillInts(packSampleParameters(rows));
            testing::OnDevice device(*testing::gpu());
            Sample op;
            op.logits = device(logits);
            op.parameters = rows;
            op.packed = device(packed);
            op.ids = device(ids);
            op.logprobs = device(logprobs);
            device.run(op);
            device.download(ids);
            device.download(logprobs);
            EXPECT_TRUE(std::isnan(logprobs.values()[0])) << "it says that the row is broken";
            if (temperature == 0) {
                EXPECT_EQ(ids.values()[0], std::isnan(broken) ? 4099 : 7);
            }
        }
    }
}

/// `rows` rows of every mixture of filters.
void expectFiltersAsOnTheCpu(std::int64_t vocab, std::int64_t rows) {
    std::mt19937 random(17);
    TestTensor logits = randomLogits(DType::F32, rows, vocab, 3);
    const std::vector<std::int32_t> history{1, 5, 5, 77, 300, static_cast<std::int32_t>(vocab - 1)};
    const std::vector<std::int32_t> forbidden{0, 2};
    const std::vector<LogitBias> bias{{3, 20}, {77, -1.5F}, {static_cast<std::int32_t>(vocab / 2), 4}};
    std::vector<SampleParameters> parameters(static_cast<std::size_t>(rows));
    const auto pick = [&](auto... choices) {
        const std::array all{static_cast<double>(choices)...};
        return all[random() % all.size()];
    };
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        SampleParameters& row = parameters[i];
        row.temperature = static_cast<float>(pick(0, 0.7, 1, 1.4));
        row.topK = static_cast<std::int32_t>(pick(0, 1, 5, 50, 1000));
        row.topP = static_cast<float>(pick(1, 0.95, 0.5, 0.05));
        row.minP = static_cast<float>(pick(0, 0, 0.02));
        row.repetitionPenalty = static_cast<float>(pick(1, 1.3));
        row.frequencyPenalty = static_cast<float>(pick(0, 0, 0.7, -2));
        row.presencePenalty = static_cast<float>(pick(0, 0, 1.5));
        row.promptTokens = static_cast<std::int64_t>(i % 4);
        row.bias = std::span(bias).first(i % 4);
        row.seed = (std::uint64_t{random()} << 32) | random();
        row.request = static_cast<std::uint32_t>(i);
        row.position = static_cast<std::int64_t>(random() % 100000);
        row.history = history.data();
        row.historyLength = static_cast<std::int64_t>(history.size());
        row.forbidden = forbidden.data();
        row.forbiddenCount = static_cast<std::int64_t>(i % 3);
    }
    for (SampleParameters& row : parameters) {
        row.forbiddenCount = std::min<std::int64_t>(row.forbiddenCount, 2);
    }
    expectSame(logits, parameters, 0);
    expectSame(logits, parameters, 20);
}

TEST(SampleGpu, FiltersAndDrawsAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    expectFiltersAsOnTheCpu(999, 40);
}

TEST(SampleGpu, FiltersOfALargeVocabulary) {
    VITRINE_NEEDS_GPU();
    expectFiltersAsOnTheCpu(201088, 16);
}

/// Ids and log-probabilities of the draws of these rows against sums over all tokens in float64.
void expectDrawLogprobs(TestTensor& logits, const std::vector<SampleParameters>& parameters) {
    const std::int64_t rows = logits.view().shape[0];
    const std::int64_t vocab = logits.view().shape[1];
    TestTensor ids(DType::I32, Shape{rows}), logprobs(DType::F32, Shape{rows});
    TestTensor plainIds(DType::I32, Shape{rows}), plainLogprobs(DType::F32, Shape{rows});
    TestTensor draws(DType::F32, Shape{rows, kDrawLogprobs});
    const std::vector<std::int32_t> words = packSampleParameters(parameters);
    TestTensor packed(DType::I32, Shape{static_cast<std::int64_t>(words.size())});
    packed.fillInts(words);
    testing::OnDevice device(*testing::gpu());
    Sample op;
    op.logits = device(logits);
    op.parameters = parameters;
    op.packed = device(packed);
    op.ids = device(plainIds);
    op.logprobs = device(plainLogprobs);
    device.run(op);
    op.ids = device(ids);
    op.logprobs = device(logprobs);
    op.drawLogprobs = device(draws);
    device.run(op);
    for (TestTensor* const tensor : {&ids, &logprobs, &plainIds, &plainLogprobs, &draws}) {
        device.download(*tensor);
        EXPECT_TRUE(tensor->guardsIntact());
    }
    EXPECT_EQ(ids.values(), plainIds.values());
    EXPECT_EQ(logprobs.values(), plainLogprobs.values()) << "to the last bit";
    const std::vector<double> all = logits.values();
    const std::vector<double> chosen = ids.values();
    const std::vector<double> values = draws.values();
    for (std::int64_t row = 0; row < rows; ++row) {
        const auto at = static_cast<std::size_t>(row);
        const std::vector<double> ofRow(all.begin() + row * vocab, all.begin() + (row + 1) * vocab);
        const testing::DrawReference wanted =
            testing::drawReference(ofRow, parameters[at], static_cast<std::int32_t>(chosen[at]));
        EXPECT_NEAR(values[2 * at], wanted.drawn, 2e-5) << "row " << row;
        EXPECT_NEAR(values[2 * at + 1], wanted.tempered, 2e-5) << "row " << row;
    }
}

TEST(SampleGpu, DrawLogprobsAreThoseOfAReferenceInDoubles) {
    VITRINE_NEEDS_GPU();
    for (const std::int64_t vocab : {700, 50001, 201088}) { // shared memory holds the second, not the third
        const std::int64_t rows = vocab > 100000 ? 24 : 60;
        for (const DType type : {DType::F32, DType::BF16}) {
            SCOPED_TRACE(vocab);
            TestTensor logits = randomLogits(type, rows, vocab, 3);
            const testing::MixedRows mixed(vocab, rows, 5);
            expectDrawLogprobs(logits, mixed.parameters());
            expectDrawLogprobs(logits, std::vector<SampleParameters>(static_cast<std::size_t>(rows)));
        }
    }
}

TEST(SampleGpu, DrawLogprobsOfBrokenRowsAreNotNumbers) {
    VITRINE_NEEDS_GPU();
    for (const double broken : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity()}) {
        for (const float temperature : {0.0F, 0.7F, 1.0F}) {
            std::vector<double> values(4100, -1);
            values[7] = broken;
            TestTensor logits(DType::F32, Shape{1, 4100});
            logits.fill(values);
            std::vector<SampleParameters> rows(1);
            rows[0].temperature = temperature;
            TestTensor ids(DType::I32, Shape{1}), draws(DType::F32, Shape{1, kDrawLogprobs});
            TestTensor packed(DType::I32, Shape{static_cast<std::int64_t>(packSampleParameters(rows).size())});
            packed.fillInts(packSampleParameters(rows));
            testing::OnDevice device(*testing::gpu());
            Sample op;
            op.logits = device(logits);
            op.parameters = rows;
            op.packed = device(packed);
            op.ids = device(ids);
            op.drawLogprobs = device(draws);
            device.run(op);
            device.download(draws);
            EXPECT_TRUE(std::isnan(draws.values()[0]));
            EXPECT_TRUE(std::isnan(draws.values()[1]));
        }
    }
}

TEST(SampleGpu, PackedParametersGrowInSteps) {
    const std::vector<std::int32_t> history(3000, 1);
    SampleParameters row;
    row.repetitionPenalty = 2;
    row.history = history.data();
    row.historyLength = 1;
    const std::size_t small = packSampleParameters(std::span(&row, 1)).size();
    row.historyLength = 1000;
    EXPECT_EQ(packSampleParameters(std::span(&row, 1)).size(), small);
    row.historyLength = 3000;
    EXPECT_GT(packSampleParameters(std::span(&row, 1)).size(), small);
    row.repetitionPenalty = 1;
    EXPECT_LT(packSampleParameters(std::span(&row, 1)).size(), small);
    EXPECT_TRUE(plainlyGreedy(std::span(&row, 1)));
}

} // namespace
} // namespace vitrine::kernels
