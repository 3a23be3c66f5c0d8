// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// `vitrine bench rates` by the built program, with a series of small runs on the CPU.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/strict_json.h"
#include "tests/app/program.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using nlohmann::json;
using test::ProgramResult;
using testing::HasSubstr;

class BenchRates : public testing::Test {
protected:
    static json entry(const char* name, const char* model) {
        return {{"name", name},
                {"experiment",
                 {{"vitrine", 1},
                  {"workload", "generate"},
                  {"model", model},
                  {"prompt_length", 16},
                  {"max_new_tokens", 4},
                  {"backend", "cpu"},
                  {"profile", "full"}}}};
    }
    std::string series(const json& entries) {
        const std::string path = folder_.file("series.json");
        std::ofstream(path) << entries;
        return path;
    }
    ProgramResult measure(const std::string& series, std::vector<std::string> more = {}) {
        std::vector<std::string> words{"bench", "rates", "--output", output(), "--series", series};
        words.insert(words.end(), more.begin(), more.end());
        return test::vitrine(words);
    }
    std::string output() const { return folder_.file("rates.json"); }

    test::TempFolder folder_;
};

TEST_F(BenchRates, WritesTheRatesAndNamesWhatFailed) {
    const std::string file =
        series(json::array({entry("small", "synthetic:tiny-gpt-oss"), entry("none", "synthetic:no-such")}));
    const ProgramResult result = measure(file, {"--json"});
    ASSERT_EQ(result.exitCode, 0) << result.err;
    const json out = json::parse(result.out);
    EXPECT_EQ(out["runs"][0]["measured"], true);
    EXPECT_THAT(out["runs"][1]["reason"].get<std::string>(), HasSubstr("no-such"));
    EXPECT_TRUE(base::readStrictJson(output())["ops"].contains("QkvProject"));
    const ProgramResult again = measure(file);
    EXPECT_EQ(again.exitCode, 0) << "a file of rates may be replaced: " << again.err;
    EXPECT_THAT(again.out, HasSubstr("from 1 of 2 experiments, are in " + output()));
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder_.path())) {
        ++files;
    }
    EXPECT_EQ(files, 2U) << "the series and the rates; the session of the runs is gone";
}

TEST_F(BenchRates, NamesWhatIsWrongBeforeAnythingRuns) {
    const std::string file = series(json::array({entry("small", "synthetic:tiny-gpt-oss")}));
    std::ofstream(output()) << "my notes";
    const ProgramResult foreign = measure(file);
    EXPECT_EQ(foreign.exitCode, 2);
    EXPECT_THAT(foreign.err, HasSubstr("rates.json"));
    std::filesystem::remove(output());
    const ProgramResult empty = measure(series(json::array()));
    EXPECT_EQ(empty.exitCode, 2);
    EXPECT_THAT(empty.err, HasSubstr("an array of 1 to"));
    EXPECT_FALSE(std::filesystem::exists(output()));
}

TEST_F(BenchRates, NothingMeasuredIsAFailureAndLeavesNoFile) {
    const ProgramResult result = measure(series(json::array({entry("none", "synthetic:no-such")})));
    EXPECT_EQ(result.exitCode, 2);
    EXPECT_THAT(result.err, HasSubstr("nothing was measured"));
    EXPECT_FALSE(std::filesystem::exists(output()));
}

TEST_F(BenchRates, AnInterruptKeepsWhatWasMeasured) {
    json slow = entry("slow", "synthetic:tiny-gpt-oss");
    slow["experiment"]["max_new_tokens"] = 100'000;
    slow["experiment"]["set"] = {{"max_position_embeddings", "131072"}};
    const std::string file = series(json::array({entry("small", "synthetic:tiny-gpt-oss"), slow}));
    test::Program program({"bench", "rates", "--output", output(), "--series", file});
    ASSERT_TRUE(program.waitForOutput("small: measured"));
    program.signal(SIGINT);
    const ProgramResult result = program.wait();
    EXPECT_EQ(result.exitCode, 130) << result.err;
    EXPECT_TRUE(base::readStrictJson(output())["ops"].contains("QkvProject"));
}

TEST_F(BenchRates, TheOtherBenchmarksStayAsTheyWere) {
    const ProgramResult result = test::vitrine({"bench", "cpu-decode", "--dump-spec"});
    EXPECT_EQ(result.exitCode, 0) << result.err;
    EXPECT_EQ(json::parse(result.out)["bench"], "cpu-decode");
}

} // namespace
} // namespace vitrine
