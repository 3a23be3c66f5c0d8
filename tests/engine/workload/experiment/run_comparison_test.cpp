// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/run_comparison.h"

#include <gtest/gtest.h>

namespace vitrine::engine {
namespace {

ComparedRun run(std::int64_t number, std::string spec, std::string metrics, std::string environment = "{}") {
    return {number,
            R"({"vitrine":1,"workload":"generate","model":"m")" + (spec.empty() ? "" : "," + spec) + "}",
            std::move(environment),
            std::move(metrics),
            true,
            false};
}

TEST(RunComparison, SaysWhatCannotBeComparedAtAll) {
    const ComparedRun a =
        run(7, "", R"({"prompt_tokens":65536})", R"({"backend":"cuda","device":{"id":"t4","name":"Tesla T4"}})");
    EXPECT_TRUE(whyIncomparable(a, a).empty());
    const ComparedRun longer =
        run(5, "", R"({"prompt_tokens":130944})", R"({"backend":"cuda","device":{"id":"h100","name":"NVIDIA H100"}})");
    EXPECT_EQ(incomparableSentence(a, longer),
              "#7 and #5 cannot be compared: #7 has a prompt of 65,536 tokens, #5 one of 130,944; "
              "#7 ran on the Tesla T4, #5 ran on the NVIDIA H100.");
    ComparedRun other = a;
    other.number = 8;
    other.spec = R"({"vitrine":1,"workload":"load","model":"m"})";
    EXPECT_EQ(incomparableSentence(a, other), "#7 and #8 cannot be compared: #7 is a run of generate, #8 of load.");
    other.spec = R"({"vitrine":1,"workload":"generate","model":"n"})";
    EXPECT_EQ(incomparableSentence(a, other), "#7 and #8 cannot be compared: #7 has the model m, #8 n.");
    EXPECT_TRUE(allIncomparable(whyIncomparable(run(1, R"("trace":"x")", "{}"), run(2, R"("trace":"y")", "{}"))));
}

/// "Run again" names the model by where it was found, and repeats the run all the same.
TEST(RunComparison, AFileIsTheSameHoweverItIsNamed) {
    ComparedRun a = run(1, "", "{}"), again = a;
    again.number = 2;
    again.spec = R"({"vitrine":1,"workload":"generate","model":"/home/a/m"})";
    EXPECT_TRUE(allIncomparable(whyIncomparable(a, again)));
    a.foundSpec = again.spec;
    EXPECT_TRUE(whyIncomparable(a, again).empty());
    EXPECT_TRUE(areRepeats(a, again));
    EXPECT_TRUE(diffSettings(a, again).empty());
    ComparedRun elsewhere = run(3, "", "{}"); // of another folder, with the names of the first
    elsewhere.foundSpec = R"({"vitrine":1,"workload":"generate","model":"/home/b/m"})";
    EXPECT_TRUE(areRepeats(a, elsewhere));
}

TEST(RunComparison, SaysWhichPartCannotBeCompared) {
    const char* slow = R"({"backend":"cuda","sm_clock_hz":1755e6,"driver_version":"550"})";
    const char* fast = R"({"backend":"cuda","sm_clock_hz":1980e6,"driver_version":"550"})";
    EXPECT_EQ(incomparableSentence(run(12, "", "{}", fast), run(15, "", "{}", slow)),
              "Not comparable: times (closer than 12.8 %: #15 at 1,755 MHz, #12 at 1,980 MHz).");
    EXPECT_EQ(incomparableSentence(run(1, R"("seed":1)", "{}"), run(2, R"("seed":2)", "{}")),
              "Not comparable: answers (other seed).");
    const char* measured = R"({"backend":"cuda","time_base":"monotonic","device":{"id":"h200","name":"NVIDIA H200"}})";
    const char* planned = R"({"backend":"meta","time_base":"virtual","device":{"id":"h200","name":"H200"}})";
    EXPECT_EQ(incomparableSentence(run(7, "", "{}", measured), run(5, "", "{}", planned)),
              "Not comparable: times (those of #5 are planned).");
}

TEST(RunComparison, ShowsOtherSurroundings) {
    const ComparedRun a = run(1, "", "{}", R"({"driver_version":"550.1","sm_clock_hz":1980e6,"commit":"abc"})");
    const ComparedRun b = run(2, "", "{}", R"({"driver_version":"560.2","sm_clock_hz":1980e6})");
    const auto rows = diffSurroundings(a, b);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].words, "commit");
    EXPECT_EQ(rows[0].b, "–");
    EXPECT_EQ(rows[1].words, "driver version");
    EXPECT_EQ(rows[1].a, "550.1");
    EXPECT_EQ(rows[1].b, "560.2");
    EXPECT_EQ(allSurroundings(a, b).size(), 3U);
}

/// Settings stand among the settings, and where a run was saved changes nothing of it.
TEST(RunComparison, CommandLinesDifferInWhatNothingElseSays) {
    const auto started = [](const char* line) {
        return ComparedRun{1, "{}", std::string(R"({"command_line": ")") + line + "\"}", "{}", true, false};
    };
    const ComparedRun a = started("/usr/bin/vitrine generate --model m --session a.vitrine --kv-dtype int8");
    EXPECT_TRUE(diffSurroundings(a, started("build/vitrine generate --session b.vitrine --json --model=m")).empty());
    EXPECT_EQ(diffSurroundings(a, started("vitrine generate --model m --later-option 3")).size(), 1U);
    EXPECT_EQ(allSurroundings(a, a).size(), 1U);
}

TEST(RunComparison, ChangesInsideTheNoiseOfRepeatsAreNone) {
    const std::vector<double> repeats{95, 105}, one{98};
    EXPECT_EQ(judge("decode_tokens_per_second", 105, 98, repeats, one).verdict, Verdict::Same);
    EXPECT_TRUE(judge("decode_tokens_per_second", 105, 98, repeats, one).fromRepeats);
    EXPECT_EQ(judge("decode_tokens_per_second", 105, 90, repeats, one).verdict, Verdict::Worse);
    EXPECT_EQ(judge("decode_tokens_per_second", 100, 98, one, one).verdict, Verdict::Same) << "3 % without repeats";
    EXPECT_EQ(judge("decode_tokens_per_second", 100, 104, one, one).verdict, Verdict::Better);
    EXPECT_EQ(judge("peak_bytes", 10'000, 14'000, one, one).verdict, Verdict::Same) << "a page";
    EXPECT_EQ(judge("peak_bytes", 10'000, 15'000, one, one).verdict, Verdict::Worse);
    EXPECT_EQ(judge("prompt_tokens", 10, 11, one, one).verdict, Verdict::Differs);
    EXPECT_EQ(judge("prefill_seconds", 10, 11, one, one, 0.128).verdict, Verdict::Same) << "the clock explains it";
}

TEST(RunComparison, FindsRepeatsAndLeavesCompilingOut) {
    const ComparedRun a = run(1, "", R"({"prefill_seconds":4,"prefill_compile_seconds":3,"ids":[1]})");
    const ComparedRun again = run(2, "", R"({"prefill_seconds":1.2,"prefill_compile_seconds":0})");
    const ComparedRun b = run(3, R"("prefill_chunk":8)", R"({"prefill_seconds":1.1,"prefill_compile_seconds":0})");
    const std::vector<ComparedRun> all{a, again, b};
    EXPECT_TRUE(areRepeats(a, again));
    EXPECT_FALSE(areRepeats(a, b));
    const auto rows = compareResults(a, b, all);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].path, "prefill_seconds");
    EXPECT_EQ(rows[0].a, 1.0);
    EXPECT_EQ(rows[0].repeatsA.size(), 2u);
    EXPECT_EQ(rows[0].judgement->verdict, Verdict::Same);
    EXPECT_EQ(rows[1].path, "prefill_compile_seconds");
    EXPECT_EQ(changeText("prefill_seconds", *rows[0].judgement), "=");
    EXPECT_EQ(changeText("peak_bytes", judge("peak_bytes", 2147483648.0, 1073741824.0, {}, {})), "▼ −1.00 GiB");
}

/// `--repeat 3` holds three measurements in one run.
TEST(RunComparison, MeasurementsWithinARunAreRepeats) {
    const ComparedRun a = run(1, R"("repeat":3)", R"({"prefill_seconds":1.5,"prefill_compile_seconds":0,
        "repeats":{"prefill_seconds":[3,1.5,1.2],"prefill_compile_seconds":[1.6,0,0]}})");
    const ComparedRun b = run(2, R"("repeat":3,"prefill_chunk":8)", R"({"prefill_seconds":1.3,
        "repeats":{"prefill_seconds":[1.3,1.3,1.4]}})");
    const ComparedRun once = run(3, "", R"({"prefill_seconds":1.1})");
    const std::vector<ComparedRun> all{a, b};
    const auto rows = compareResults(a, b, all);
    ASSERT_EQ(rows.front().path, "prefill_seconds");
    EXPECT_EQ(rows.front().repeatsA, (std::vector<double>{1.4, 1.5, 1.2}));
    EXPECT_EQ(rows.front().repeatsB.size(), 3U);
    EXPECT_TRUE(rows.front().judgement->fromRepeats);
    EXPECT_EQ(rows.front().judgement->verdict, Verdict::Same) << "the three values differ by as much";
    EXPECT_EQ(rows.size(), 2U) << "the lists themselves are no results";
    // A run that measured once repeats one that measured three times.
    EXPECT_TRUE(areRepeats(a, once));
    EXPECT_EQ(compareResults(a, b, std::vector<ComparedRun>{a, b, once}).front().repeatsA.size(), 4U);
}

TEST(RunComparison, KnowsRunsThatStoppedEarly) {
    const ComparedRun whole = run(1, R"("max_new_tokens":400)", R"({"generated_tokens":400,"finish_reason":"length"})");
    const ComparedRun early = run(2, R"("max_new_tokens":400)", R"({"generated_tokens":176,"finish_reason":"stop"})");
    const auto stop = earlyStop(whole, early);
    ASSERT_TRUE(stop);
    EXPECT_FALSE(stop->isA);
    EXPECT_EQ(stop->tokens, 176);
    EXPECT_EQ(stop->of, 400);
    EXPECT_FALSE(earlyStop(whole, whole));
    EXPECT_FALSE(earlyStop(whole, run(3, R"("max_new_tokens":100)", R"({"generated_tokens":100})")))
        << "less was asked for";
    EXPECT_TRUE(growsWithTokens("kv_bytes"));
    EXPECT_FALSE(growsWithTokens("decode_tokens_per_second"));
}

} // namespace
} // namespace vitrine::engine
