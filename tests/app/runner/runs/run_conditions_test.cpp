// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/runs/run_conditions.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace vitrine::app {
namespace {

engine::ComparedRun saved(std::int64_t number, std::string metrics, std::string spec = R"({"workload":"generate"})") {
    return {number, std::move(spec), "{}", std::move(metrics), true, false};
}

/// The answer to one condition on runs of 16 GiB and 16.5 GiB, at 100 and 95 tok/s.
ConditionResult answer(const std::string& condition, const std::vector<engine::ComparedRun>& more = {}) {
    const engine::ComparedRun a = saved(1, R"({"peak_bytes":17179869184,"decode_tokens_per_second":100,
        "load_seconds":1,"spill_bytes":0})");
    const engine::ComparedRun b = saved(2, R"({"peak_bytes":17716740096,"decode_tokens_per_second":95,
        "load_seconds":1.6,"spill_bytes":9})",
                                        R"({"workload":"generate","prefill_chunk":8})");
    std::vector<engine::ComparedRun> all{a, b};
    all.insert(all.end(), more.begin(), more.end());
    const auto results = engine::compareResults(a, b, all);
    return checkCondition(parseCondition(condition, results), a, b, results);
}

std::string refusal(const std::string& condition) {
    try {
        answer(condition);
    } catch (const base::BadInput& error) {
        return error.what();
    }
    return "";
}

TEST(RunConditions, JudgeChangesInPercentAndInUnits) {
    EXPECT_TRUE(answer("peak_bytes>+2%").holds);
    EXPECT_EQ(answer("peak_bytes>+2%").sentence, "peak_bytes>+2%: fails, +3.1 % (16.00 GiB to 16.50 GiB)");
    EXPECT_FALSE(answer("peak_bytes>+4%").holds);
    EXPECT_TRUE(answer("peak_bytes > +100MiB").holds);
    EXPECT_FALSE(answer("peak_bytes>+1GiB").holds);
    EXPECT_TRUE(answer("decode_tokens_per_second<-3%").holds);
    EXPECT_FALSE(answer("decode_tokens_per_second<-6%").holds);
    EXPECT_FALSE(answer("decode_tokens_per_second>+3%").holds);
    EXPECT_TRUE(answer("load_seconds>+0.5").holds);
    EXPECT_TRUE(answer("load_seconds>+500ms").holds);
    EXPECT_FALSE(answer("load_seconds>+0.7s").holds);
}

TEST(RunConditions, ChangesInsideTheNoiseOfRepeatsPass) {
    const ConditionResult noisy =
        answer("decode_tokens_per_second<-3%", {saved(3, R"({"decode_tokens_per_second":94})")});
    EXPECT_FALSE(noisy.holds);
    EXPECT_TRUE(noisy.noise);
    EXPECT_THAT(noisy.sentence, testing::HasSubstr("inside the noise of repeats"));
    EXPECT_TRUE(answer("decode_tokens_per_second<-3%", {saved(3, R"({"decode_tokens_per_second":99})")}).holds);
}

TEST(RunConditions, RefusalsSayWhatToWrite) {
    EXPECT_THAT(refusal("peak_byte>+2%"), testing::HasSubstr("the nearest known one is peak_bytes"));
    EXPECT_THAT(refusal("peak_bytes>2%"), testing::HasSubstr("needs its sign"));
    EXPECT_THAT(refusal("peak_bytes"), testing::HasSubstr("has no > or <"));
    EXPECT_THAT(refusal("load_seconds>+x"), testing::HasSubstr("x is no number"));
    for (const char* twice : {"load_seconds>+-2%", "load_seconds<--2", "load_seconds>+-2s"}) {
        EXPECT_THAT(refusal(twice), testing::HasSubstr("-2 is no number")) << twice;
    }
    EXPECT_THAT(refusal("peak_bytes>+2parsecs"), testing::HasSubstr("peak_bytes>+2parsecs"));
    EXPECT_THAT(refusal("prefill_seconds>+2%"), testing::HasSubstr("run #1 has no prefill_seconds"));
    EXPECT_THAT(refusal("spill_bytes>+2%"), testing::HasSubstr("is 0 in run #1"));
}

TEST(RunConditions, TotalsOfARunThatStoppedEarlyAreNotJudged) {
    const auto a = saved(1, R"({"generated_tokens":400,"decode_seconds":4})");
    const auto b = saved(2, R"({"generated_tokens":100,"decode_seconds":1,"finish_reason":"stop"})");
    const std::vector<engine::ComparedRun> all{a, b};
    const auto results = engine::compareResults(a, b, all);
    const ConditionResult result = checkCondition(parseCondition("decode_seconds<-3%", results), a, b, results);
    EXPECT_FALSE(result.holds);
    EXPECT_EQ(result.sentence, "decode_seconds<-3%: not judged, B stopped after 100 of 400 tokens");
}

/// Else a run that ran out of memory would pass every limit of time.
TEST(RunConditions, TimesOfAPartOfTheWorkCannotBeJudged) {
    const auto a = saved(1, R"({"prefill_seconds":151})");
    auto b = saved(2, R"({"prefill_seconds":36.4,"prompt_tokens":65536,"prefilled_tokens":24576})");
    b.done = false;
    b.outOfMemory = true;
    const std::vector<engine::ComparedRun> all{a, b};
    const auto results = engine::compareResults(a, b, all);
    const auto prefill = std::ranges::find(results, "prefill_seconds", &engine::ResultChange::path);
    ASSERT_NE(prefill, results.end());
    EXPECT_EQ(prefill->judgement->verdict, engine::Verdict::Differs);
    try {
        checkCondition(parseCondition("prefill_seconds>+3%", results), a, b, results);
        ADD_FAILURE();
    } catch (const base::BadInput& error) {
        EXPECT_THAT(error.what(),
                    testing::HasSubstr("run #2 ran out of memory after 24,576 of 65,536 prompt tokens, so "
                                       "its prefill_seconds is that of a part of the work"));
    }
}

} // namespace
} // namespace vitrine::app
