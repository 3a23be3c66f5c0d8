// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/attention_program.h"

#include "kernels/program/interpreter.h"
#include "kernels/program/program_builder.h"
#include "tests/kernels/ops/attention/attention_programs.h"

namespace vitrine::kernels {
namespace {

TEST(ProgramAnalysis, OfTheModelsPrograms) {
    const ProgramAnalysis causal(causalMask());
    EXPECT_TRUE(causal.exact);
    EXPECT_TRUE(causal.rows.lowUnbounded);
    EXPECT_EQ(causal.keysAfter, 0);
    EXPECT_FALSE(causal.keysBefore.has_value());
    const ProgramAnalysis window(slidingWindowMask(128));
    EXPECT_TRUE(window.exact);
    EXPECT_EQ(window.keysBefore, 127);
    EXPECT_EQ(window.keysAfter, 0);
    EXPECT_FALSE(window.perHead);
    ASSERT_TRUE(window.low.has_value() && window.high.has_value());
    EXPECT_EQ(window.low->at(1000), 873);
    EXPECT_EQ(window.high->at(1000), 1000);
    EXPECT_EQ(window.key, programKey(slidingWindowMask(128)));
    EXPECT_NE(window.key, causal.key);
    const Program cap = softCapScore(30);
    EXPECT_EQ(ProgramAnalysis(cap).key, programKey(cap));
}

/// Every key that a mask allows lies in its interval, and an exact one allows nothing else.
TEST(ProgramAnalysis, IntervalsHoldWhatRowsSee) {
    constexpr std::int64_t kBatch = 3, kHeads = 4, kLongest = 96;
    for (const std::string_view name : testing::AttentionPrograms::kNames) {
        SCOPED_TRACE(name);
        const testing::AttentionPrograms programs(name, kBatch, kHeads, kLongest);
        const KnownProgram* mask = programs.maskProgram();
        if (mask == nullptr) {
            continue;
        }
        const BoundProgram bound = programs.mask([](const testing::TestTensor& tensor) { return tensor.view(); });
        Interpreter<double> low(mask->analysis.rows.low, bound.captures);
        Interpreter<double> high(mask->analysis.rows.high, bound.captures);
        std::int64_t outside = 0, missing = 0;
        for (std::int64_t row = 0; row < kBatch * kHeads * kLongest; ++row) {
            const ProgramRow at{row / (kHeads * kLongest), row / kLongest % kHeads, row % kLongest};
            low.run(at, 0, 1, nullptr);
            high.run(at, 0, 1, nullptr);
            EXPECT_TRUE(!mask->analysis.low || mask->analysis.low->at(at.query) == low.integers()[0]);
            EXPECT_TRUE(!mask->analysis.high || mask->analysis.high->at(at.query) == high.integers()[0]);
            for (std::int64_t key = 0; key < kLongest; ++key) {
                const bool inside = key >= low.integers()[0] && key <= high.integers()[0];
                const bool allowed = programs.allowed({at.batch, at.head, at.query, key});
                outside += allowed && !inside ? 1 : 0;
                missing += inside && !allowed ? 1 : 0;
            }
        }
        EXPECT_EQ(outside, 0);
        EXPECT_EQ(missing == 0, mask->analysis.exact);
    }
}

TEST(ProgramAnalysis, WhatDecidesTheEnds) {
    const auto factsOf = [](std::string_view name) {
        return testing::AttentionPrograms(name, 2, 4, 64).maskProgram()->analysis;
    };
    EXPECT_TRUE(factsOf("by_head").exact);
    EXPECT_TRUE(factsOf("by_head").perHead);
    EXPECT_FALSE(factsOf("by_head").keysBefore.has_value()); // captures decide
    EXPECT_TRUE(factsOf("prefix").exact);
    EXPECT_FALSE(factsOf("prefix").keysAfter.has_value());
    EXPECT_FALSE(factsOf("document").exact);
    EXPECT_EQ(factsOf("document").keysAfter, 0); // of the causal half
    EXPECT_EQ(factsOf("dilated").keysBefore, 59);
    EXPECT_EQ(factsOf("shifted_window").keysAfter, -5);
    EXPECT_EQ(factsOf("shifted_window").keysBefore, 25);
}

TEST(ProgramAnalysis, OwnersFactsAreTaken) {
    const KnownProgram known(causalMask());
    EXPECT_EQ(&*AnalysisOf(known.bound()), &known.analysis);
    const BoundProgram bare{&known.program, {}};
    const AnalysisOf found(bare);
    EXPECT_NE(&*found, &known.analysis);
    EXPECT_EQ(found->key, known.analysis.key);
}

} // namespace
} // namespace vitrine::kernels
