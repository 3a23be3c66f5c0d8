// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/comparison_words.h"

#include <gtest/gtest.h>

namespace vitrine::engine {
namespace {

ComparedRun generated(std::int64_t number, std::string spec, std::string metrics) {
    return {number, R"({"vitrine":1,"workload":"generate","model":"m")" + (spec.empty() ? "" : "," + spec) + "}",
            "{}",   std::move(metrics),
            true,   false};
}

ComparisonWords words(const ComparedRun& a, const ComparedRun& b) {
    const std::vector<ComparedRun> all{a, b};
    return comparisonWords(a, b, compareResults(a, b, all));
}

TEST(ComparisonWords, LeadsWithTheLargestChangeAndItsCause) {
    const ComparedRun a = generated(12, R"("prefill_chunk":8192,"kv_dtype":"bfloat16")",
                                    R"({"peak_bytes":16777216000,"peak_by_category":{"kv_cache":2000000000,
                                 "activations":1000000000,"weights":13777216000},"prefill_seconds":2.42})");
    const ComparedRun b = generated(15, R"("prefill_chunk":1024,"kv_dtype":"int8")",
                                    R"({"peak_bytes":14777216000,"peak_by_category":{"kv_cache":900000000,
                                 "activations":100000000,"weights":13777216000},"prefill_seconds":2.62})");
    EXPECT_EQ(words(a, b).sentence, "B peaks 1.86 GiB lower: kv_cache 1.02 GiB less (kv_dtype int8), activations "
                                    "858 MiB less (prefill_chunk 1024).");
    EXPECT_EQ(words(a, b).other, "It costs: prefill time 2.62 s instead of 2.42 s (1.08x).");
    // Far slower at nearly the same peak: the time leads.
    ComparedRun slow = b;
    slow.metrics = R"({"peak_bytes":16770000000,"prefill_seconds":9})";
    EXPECT_EQ(words(a, slow).sentence, "B needs 6.58 s more for prefill.");
}

/// Less than four fifths of the change: no cause.
TEST(ComparisonWords, NamesNoCauseThatDoesNotAddUp) {
    const ComparedRun a = generated(1, "", R"({"peak_bytes":10737418240,"peak_by_category":{"weights":5368709120,
        "kv_cache":3221225472,"activations":2147483648}})");
    const ComparedRun b = generated(2, "", R"({"peak_bytes":5368709120,"peak_by_category":{"weights":4294967296}})");
    EXPECT_EQ(words(a, b).sentence, "B peaks 5.00 GiB lower: kv_cache 3.00 GiB less, activations 2.00 GiB less.");
    const ComparedRun half = generated(3, "", R"({"peak_bytes":5368709120,"peak_by_category":{"weights":5368709120,
        "kv_cache":3221225472,"activations":536870912}})");
    EXPECT_EQ(words(a, half).sentence, "B peaks 5.00 GiB lower.");
}

TEST(ComparisonWords, ARunThatStoppedEarlyIsNotFasterOrSmaller) {
    const ComparedRun a = generated(1, R"("max_new_tokens":400)",
                                    R"({"peak_bytes":2000000000,"peak_by_category":{"kv_cache":1000000000},
        "generated_tokens":400,"decode_seconds":4,"decode_tokens_per_second":100,"finish_reason":"length"})");
    const ComparedRun b = generated(2, R"("max_new_tokens":400)",
                                    R"({"peak_bytes":1500000000,"peak_by_category":{"kv_cache":500000000},
        "generated_tokens":176,"decode_seconds":1.76,"decode_tokens_per_second":100,"finish_reason":"stop"})");
    EXPECT_EQ(words(a, b).sentence,
              "B stopped after 176 of 400 tokens (stop); their rates and peaks are the same within the noise.");
    ComparedRun faster = b;
    faster.metrics = R"({"generated_tokens":176,"decode_tokens_per_second":150,"finish_reason":"stop"})";
    EXPECT_EQ(words(a, faster).sentence, "B stopped after 176 of 400 tokens (stop), so rates are compared, not totals: "
                                         "B decodes 50 tok/s faster.");
}

TEST(ComparisonWords, WhatDecidesWhetherARunIsPossibleGoesFirst) {
    ComparedRun a = generated(1, "", R"({"peak_bytes":2147483648,"decode_tokens_per_second":100})");
    const ComparedRun b = generated(2, "", R"({"peak_bytes":1073741824,"decode_tokens_per_second":10})");
    EXPECT_TRUE(words(a, b).sentence.starts_with("B decodes 90 tok/s slower")) << words(a, b).sentence;
    a.done = false;
    a.outOfMemory = true;
    EXPECT_EQ(words(a, b).sentence, "A ran out of memory, B did not; B peaks 1.00 GiB lower.");
}

/// It read 24,576 of 65,536 tokens in less time than the other took for all of them.
TEST(ComparisonWords, ARunThatDidAPartOfItsWorkGainsNothing) {
    const ComparedRun a = generated(1, R"("max_new_tokens":8)", R"({"peak_bytes":2147483648,"prompt_tokens":65536,
        "prefill_seconds":151,"decode_steps":7,"generated_tokens":8,"decode_tokens_per_second":10})");
    ComparedRun b = generated(2, R"("max_new_tokens":8,"prefill_chunk":8192)", R"({"peak_bytes":1073741824,
        "prompt_tokens":65536,"prefilled_tokens":24576,"prefill_seconds":36.4,"decode_steps":0,"generated_tokens":0,
        "error":{"kind":"out_of_memory","message":"m","what":"scratch","requested_bytes":2147483648}})");
    b.done = false;
    b.outOfMemory = true;
    const ComparisonWords said = words(a, b);
    EXPECT_EQ(
        said.sentence,
        "B ran out of memory after 24,576 of 65,536 prompt tokens (scratch of 2.00 GiB found no room), A did not.");
    EXPECT_EQ(said.other, "B did a part of its work, so times and rates of that are no gain or loss.");
    EXPECT_EQ(words(b, a).sentence.substr(0, 38), "A ran out of memory after 24,576 of 65");
    ComparedRun other = b;
    other.number = 3;
    other.metrics = R"({"peak_bytes":1073741824,"prompt_tokens":65536,"prefill_seconds":9,"generated_tokens":0})";
    other.outOfMemory = false;
    other.status = "cancelled";
    EXPECT_TRUE(words(b, other).sentence.ends_with("B was stopped while it read its prompt of 65,536 tokens."))
        << words(b, other).sentence;
    EXPECT_EQ(words(b, other).other, "Both did a part of their work, so its times and rates are no gain or loss.");
}

/// A prompt that both read whole may be compared, also when the answer was cut short.
TEST(ComparisonWords, WhatARunDidWholeBeforeItEndedIsCompared) {
    const ComparedRun a = generated(1, R"("max_new_tokens":80)", R"({"prefill_seconds":2,"decode_steps":79,
        "generated_tokens":80,"decode_seconds":8,"decode_tokens_per_second":10})");
    ComparedRun b = generated(2, R"("max_new_tokens":80,"kernel":"x")", R"({"prefill_seconds":1,"decode_steps":9,
        "generated_tokens":10,"decode_seconds":0.5,"decode_tokens_per_second":18,
        "error":{"kind":"internal","message":"the device was lost."}})");
    b.done = false;
    b.status = "failed";
    EXPECT_EQ(words(a, b).sentence, "B failed after 10 of 80 new tokens (the device was lost), A came to its end; "
                                    "B prefills in 1.00 s less.");
    EXPECT_EQ(words(a, b).other, "B did a part of its work, so times and rates of that are no gain or loss.");
}

/// 5.5 ms of a run of a second are no headline, beside a change of the rate that is smaller in itself.
TEST(ComparisonWords, AFewMillisecondsLeadNoSentence) {
    const ComparedRun a = generated(1, "", R"({"peak_bytes":1073741824,"prefill_seconds":0.010,"decode_seconds":1,
        "decode_tokens_per_second":100})");
    ComparedRun b = generated(2, R"("kernel":"x")", R"({"peak_bytes":1095216660,"prefill_seconds":0.0045,
        "decode_seconds":1,"decode_tokens_per_second":100})");
    EXPECT_EQ(words(a, b).sentence, "B peaks 20.5 MiB higher.");
    b.metrics = R"({"peak_bytes":1073741824,"prefill_seconds":0.0045,"decode_seconds":1,
        "decode_tokens_per_second":100})";
    EXPECT_EQ(words(a, b).sentence,
              "The run as a whole is the same within the noise; prefill time changed from 10.0 ms to 4.50 ms.");
    // Training has no prefill, yet its load is the way there too.
    const ComparedRun trained = generated(3, "", R"({"load_seconds":0.0080,"tokens_per_second":100})"),
                      faster = generated(4, R"("method":"x")", R"({"load_seconds":0.0025,"tokens_per_second":110})");
    EXPECT_EQ(words(trained, faster).sentence, "B makes 10 tok/s more.");
}

TEST(ComparisonWords, SaysThatNothingChanged) {
    const ComparedRun a = generated(12, "", R"({"peak_bytes":2147483648,"decode_tokens_per_second":100})");
    const ComparedRun b = generated(15, "", R"({"peak_bytes":2147483648,"decode_tokens_per_second":101})");
    EXPECT_EQ(words(a, b).sentence, "#12 and #15 are the same within the noise.");
}

/// A tiny model loads in a moment: what is compared is how it generates.
TEST(ComparisonWords, LoadingLeadsNoSentenceOfARunThatGenerates) {
    const ComparedRun a = generated(1, "", R"({"load_seconds":0.02,"prefill_seconds":0.01,"decode_seconds":0.02,
        "decode_tokens_per_second":100})");
    ComparedRun b =
        generated(2, R"("kv_dtype":"int8")", R"({"load_seconds":0.09,"prefill_seconds":0.01,"decode_seconds":0.018,
        "decode_tokens_per_second":110})");
    EXPECT_EQ(words(a, b).sentence, "B decodes 10 tok/s faster.");
    EXPECT_EQ(words(a, b).other, "It costs: load time 90.0 ms instead of 20.0 ms (4.50x).");
    b.metrics = R"({"load_seconds":0.09,"prefill_seconds":0.01,"decode_seconds":0.02,"decode_tokens_per_second":100})";
    EXPECT_EQ(words(a, b).sentence,
              "Peak and rates are the same within the noise; load time changed from 20.0 ms to 90.0 ms.");
    const ComparedRun load = generated(3, "", R"({"load_seconds":2})"),
                      slow = generated(4, "", R"({"load_seconds":9})");
    EXPECT_EQ(words(load, slow).sentence, "B needs 7.00 s more to load.");
}

/// A prefill of milliseconds that became twice as long matters less than a tenth of a long decode.
TEST(ComparisonWords, ATimeLeadsByItsPartOfTheRun) {
    const ComparedRun a = generated(1, "", R"({"prefill_seconds":0.002,"decode_seconds":10,
        "decode_tokens_per_second":100})");
    const ComparedRun b = generated(2, "", R"({"prefill_seconds":0.004,"decode_seconds":9,
        "decode_tokens_per_second":111})");
    EXPECT_EQ(words(a, b).sentence, "B decodes 11 tok/s faster.");
}

/// Of repeats no change has a cause.
TEST(ComparisonWords, SaysThatTheDifferenceOfRepeatsIsTheirSpread) {
    const ComparedRun a = generated(4, R"("seed":1)", R"({"prefill_seconds":0.09})");
    const ComparedRun b = generated(5, R"("seed":1)", R"({"prefill_seconds":0.04})");
    EXPECT_EQ(words(a, b).other,
              "Both ran with the same settings, machine and build, so this is how much such runs vary.");
    const ComparedRun other = generated(5, R"("seed":2)", R"({"prefill_seconds":0.04})");
    EXPECT_EQ(words(a, other).other, "Nothing else changed beyond the noise.");
}

TEST(ComparisonWords, NamesTimeOfTheCompilerApart) {
    const ComparedRun a = generated(1, "", R"({"peak_bytes":1,"prefill_seconds":5,"prefill_compile_seconds":4,
        "kernel_compile_seconds":6})");
    const ComparedRun b = generated(2, "", R"({"peak_bytes":1,"prefill_seconds":1,"prefill_compile_seconds":0,
        "kernel_compile_seconds":0})");
    EXPECT_EQ(words(a, b).sentence, "#1 and #2 are the same within the noise.");
    EXPECT_EQ(words(a, b).other, "A waited 6.00 s longer for kernels to compile, which is not counted in its prefill.");
}

TEST(ComparisonWords, RunsThatCannotBeComparedGetNoDelta) {
    const ComparedRun a = generated(1, "", R"({"prompt_tokens":10,"peak_bytes":1})");
    const ComparedRun b = generated(2, "", R"({"prompt_tokens":20,"peak_bytes":9000})");
    EXPECT_EQ(words(a, b).sentence, "#1 and #2 cannot be compared: #1 has a prompt of 10 tokens, #2 one of 20.");
    EXPECT_EQ(words(a, b).other, "");
}

} // namespace
} // namespace vitrine::engine
