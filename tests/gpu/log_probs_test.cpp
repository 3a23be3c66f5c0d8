// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/log_probs.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

struct LogProbsCase {
    DType type, gradient;
    std::int64_t rows, vocab, extraStride = 0;
    float cap = 0, inverse = 1;
};

/// Whole pieces and single elements, few threads and many, one step of a block and several.
const std::vector<LogProbsCase> kLogProbsCases{{DType::F32, DType::F32, 1, 1},
                                               {DType::BF16, DType::BF16, 5, 1, 0, 0, 2},
                                               {DType::F32, DType::BF16, 7, 7, 1, 5, 0.8F},
                                               {DType::F16, DType::F16, 300, 7},
                                               {DType::BF16, DType::BF16, 5, 512, 0, 0, 1.25F},
                                               {DType::BF16, DType::BF16, 7, 40000, 8, 30, 0.7F},
                                               {DType::F32, DType::F32, 6, 33, 2},
                                               {DType::F32, DType::BF16, 5, 20001, 0, 50, 1.5F},
                                               {DType::F16, DType::F16, 5, 1000, 0, 12.5F},
                                               {DType::F32, DType::F32, 3, 151936, 0, 0, 1.4F},
                                               {DType::BF16, DType::F32, 4, 151936, 56},
                                               {DType::F16, DType::BF16, 2, 151936, 1, 20, 0.9F}};

/// Every fourth row is ignored.
std::vector<std::int32_t> idsOfRows(std::mt19937& random, std::int64_t rows, std::int64_t vocab) {
    std::uniform_int_distribution<std::int32_t> uniform(0, static_cast<std::int32_t>(vocab - 1));
    std::vector<std::int32_t> targets;
    for (std::int64_t row = 0; row < rows; ++row) {
        targets.push_back(row % 4 == 3 ? -100 : uniform(random));
    }
    targets[0] = static_cast<std::int32_t>(vocab - 1);
    return targets;
}

/// Gradients of log-probabilities; that of every third row is 0.
std::vector<double> gradientsOfRows(std::mt19937& random, std::int64_t rows) {
    std::normal_distribution<double> normal(0, 0.5);
    std::vector<double> values;
    for (std::int64_t row = 0; row < rows; ++row) {
        values.push_back(row % 3 == 2 ? 0 : normal(random));
    }
    return values;
}

/// lse comes from the CPU, so that each op is compared by itself.
TEST(LogProbsGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(41);
    for (const LogProbsCase& item : kLogProbsCases) {
        SCOPED_TRACE(::testing::Message() << dtypeName(item.type) << ", vocab " << item.vocab << ", cap " << item.cap
                                          << ", inverse temperature " << item.inverse);
        const Shape shape{item.rows, item.vocab}, rows{item.rows};
        TestTensor logits(item.type, shape, item.vocab + item.extraStride), targets(DType::I32, rows);
        TestTensor logProbs(DType::F32, rows), entropies(DType::F32, rows), lse(DType::F32, rows);
        TestTensor slopes(DType::F32, rows), gradients(item.gradient, shape, item.vocab + item.extraStride);
        logits.fillNormal(random, 4);
        targets.fillInts(idsOfRows(random, item.rows, item.vocab));
        slopes.fill(gradientsOfRows(random, item.rows));
        testing::expectSameOnGpu(*testing::gpu(),
                                 [&](auto&& at) {
                                     return LogProbs{at(logits),   at(targets),   item.cap, item.inverse,
                                                     at(logProbs), at(entropies), at(lse),  {}};
                                 },
                                 {{&logProbs, 8e-6}, {&entropies, 8e-6}, {&lse, 8e-6}});
        const std::vector<double> together = logProbs.values();
        logProbs.poison();
        testing::expectSameOnGpu(
            *testing::gpu(),
            [&](auto&& at) {
                return LogProbs{at(logits), at(targets), item.cap, item.inverse, at(logProbs), {}, {}, {}};
            },
            {&logProbs}, 8e-6);
        EXPECT_EQ(logProbs.values(), together) << "log-probabilities depend on what else is asked for";
        testing::expectSameOnGpu(*testing::gpu(),
                                 [&](auto&& at) {
                                     return LogProbsBackward{at(logits), at(targets), item.cap,      item.inverse,
                                                             at(lse),    at(slopes),  at(gradients), {}};
                                 },
                                 {{&gradients, item.gradient == DType::F32 ? 8e-6 : 4e-3}});
    }
}

TEST(LogProbsGpu, GradientTakesThePlaceOfTheLogits) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(42);
    for (const auto& [type, narrow] :
         {std::pair{DType::F32, DType::BF16}, {DType::F32, DType::F32}, {DType::BF16, DType::BF16}}) {
        for (const std::int64_t vocab : {264, 7001, 20003, 50000}) {
            SCOPED_TRACE(::testing::Message() << dtypeName(type) << ", " << dtypeName(narrow) << ", " << vocab);
            const std::int64_t rows = 5, stride = vocab + 16;
            TestTensor logits(type, Shape{rows, vocab}, stride), targets(DType::I32, Shape{rows});
            TestTensor logProbs(DType::F32, Shape{rows}), lse(DType::F32, Shape{rows});
            TestTensor slopes(DType::F32, Shape{rows}), gradients(narrow, Shape{rows, vocab});
            logits.fillNormal(random, 4);
            targets.fillInts(idsOfRows(random, rows, vocab));
            slopes.fill(gradientsOfRows(random, rows));
            testing::OnDevice device(*testing::gpu());
            LogProbs forward{device(logits), device(targets), 20, 1.5F, device(logProbs), {}, device(lse), {}};
            device.run(forward);
            LogProbsBackward op{device(logits), device(targets),   20, 1.5F, device(lse),
                                device(slopes), device(gradients), {}};
            device.run(op);
            TensorView place = op.logits;
            place.dtype = narrow;
            place.strides[0] = stride * bitsOf(type) / bitsOf(narrow);
            op.gradLogits = place;
            device.run(op);
            device.download(gradients);
            device.download(logits);
            EXPECT_TRUE(logits.guardsIntact());
            const std::vector<double> expected = gradients.values();
            std::vector<double> actual(static_cast<std::size_t>(rows * vocab));
            for (std::int64_t row = 0; row < rows; ++row) {
                loadFloats(narrow, logits.view().data, row * place.stride0(), vocab, actual.data() + row * vocab);
            }
            EXPECT_EQ(actual, expected);
        }
    }
}

TEST(LogProbsGpu, WhatIsWrongShowsAsNaN) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(43);
    TestTensor logits(DType::F32, Shape{4, 64}), targets(DType::I32, Shape{4}), slopes(DType::F32, Shape{4});
    TestTensor logProbs(DType::F32, Shape{4}), entropies(DType::F32, Shape{4}), lse(DType::F32, Shape{4});
    TestTensor gradients(DType::F32, Shape{4, 64});
    logits.fillNormal(random);
    logits.view().as<float>()[64 + 7] = std::numeric_limits<float>::quiet_NaN();
    targets.fillInts({64, 3, 5, 64}); // no such id, a NaN in the row, a good row, no such id but no gradient
    slopes.fill({1, 1, 1, 0});
    testing::OnDevice device(*testing::gpu());
    LogProbs op{device(logits), device(targets), 0, 1, device(logProbs), device(entropies), device(lse), {}};
    device.run(op);
    LogProbsBackward backward{device(logits), device(targets),   0, 1, device(lse),
                              device(slopes), device(gradients), {}};
    device.run(backward);
    for (TestTensor* values : {&logProbs, &entropies, &lse}) {
        device.download(*values);
        EXPECT_TRUE(std::isnan(values->values()[0]) && std::isnan(values->values()[1]));
        EXPECT_TRUE(std::isfinite(values->values()[2]));
    }
    device.download(gradients);
    EXPECT_TRUE(std::isnan(gradients.values()[0]) && std::isnan(gradients.values()[64]));
    EXPECT_TRUE(std::isfinite(gradients.values()[128]));
    EXPECT_EQ(gradients.values()[192], 0);
}

TEST(LogProbsGpu, MaskedIdsHaveNoShare) {
    VITRINE_NEEDS_GPU();
    const std::int64_t vocab = 20000;
    std::vector<double> x(2 * vocab, -std::numeric_limits<double>::infinity());
    x[600] = x[15601] = 5;
    x[vocab] = x[2 * vocab - 1] = -3e38;
    x[vocab + 700] = 3e38;
    for (const float cap : {0.0F, 30.0F}) {
        TestTensor logits(DType::F32, Shape{2, vocab}), targets(DType::I32, Shape{2}), slopes(DType::F32, Shape{2});
        TestTensor logProbs(DType::F32, Shape{2}), entropies(DType::F32, Shape{2}), lse(DType::F32, Shape{2});
        TestTensor gradients(DType::F32, Shape{2, vocab});
        logits.fill(x);
        targets.fillInts({600, 700});
        slopes.fill({1, 1});
        testing::expectSameOnGpu(*testing::gpu(),
                                 [&](auto&& at) {
                                     return LogProbs{at(logits),   at(targets),   cap,     1,
                                                     at(logProbs), at(entropies), at(lse), {}};
                                 },
                                 {{&logProbs, 1e-6}, {&entropies, 1e-6}, {&lse, 1e-6}});
        testing::expectSameOnGpu(
            *testing::gpu(),
            [&](auto&& at) {
                return LogProbsBackward{at(logits), at(targets), cap, 1, at(lse), at(slopes), at(gradients), {}};
            },
            {&gradients}, 1e-6);
    }
}

TEST(LogProbsGpu, NoRows) {
    VITRINE_NEEDS_GPU();
    TestTensor logits(DType::F32, Shape{0, 64}), targets(DType::I32, Shape{0}), values(DType::F32, Shape{0});
    testing::expectSameOnGpu(
        *testing::gpu(), [&](auto&& at) { return LogProbs{at(logits), at(targets), 0, 1, at(values), {}, {}, {}}; },
        {&values}, 0);
    TestTensor gradients(DType::F32, Shape{0, 64});
    testing::expectSameOnGpu(
        *testing::gpu(),
        [&](auto&& at) {
            return LogProbsBackward{at(logits), at(targets), 0, 1, at(values), at(values), at(gradients), {}};
        },
        {&gradients}, 0);
}

TEST(LogProbsGpu, WideValuesAreUnsupported) {
    VITRINE_NEEDS_GPU();
    TestTensor logits(DType::F64, Shape{1, 64}), targets(DType::I32, Shape{1}), values(DType::F64, Shape{1});
    testing::OnDevice device(*testing::gpu());
    LogProbs op{device(logits), device(targets), 0, 1, device(values), {}, {}, {}};
    EXPECT_THROW(device.run(op), base::Unsupported);
}

} // namespace
} // namespace vitrine::kernels
