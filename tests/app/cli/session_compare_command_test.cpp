// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// `vitrine session compare` of the built program, on runs of the meta backend: their numbers never vary.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/app/program.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using testing::HasSubstr;

class SessionCompareCommand : public testing::Test {
protected:
    void SetUp() override {
        file_ = folder_.file("runs.vitrine");
        for (const char* tokens : {"4", "400"}) {
            ASSERT_EQ(test::vitrine({"generate", "--model", "synthetic:tiny-gpt-oss", "--backend", "meta",
                                     "--device-profile", "a100-80gb", // its rates do not depend on how long a run is
                                     "--prompt-length", "64", "--max-new-tokens", tokens, "--session", file_})
                          .exitCode,
                      0);
        }
    }
    test::ProgramResult compare(const std::vector<std::string>& more) const {
        std::vector<std::string> words{"session", "compare", file_};
        words.insert(words.end(), more.begin(), more.end());
        return test::vitrine(words);
    }
    const test::TempFolder folder_;
    std::string file_;
};

TEST_F(SessionCompareCommand, ConditionsDecideTheExitCode) {
    const test::ProgramResult fails = compare({"--fail-if", "kv_bytes>+2%", "--fail-if", "kv_bytes<-2%"});
    EXPECT_EQ(fails.exitCode, 1) << fails.err;
    EXPECT_THAT(fails.out, HasSubstr("kv_bytes>+2%: fails, +"));
    EXPECT_THAT(fails.out, HasSubstr("kv_bytes<-2%: passes, +"));
    EXPECT_EQ(compare({"--fail-if", "kv_bytes<-2%"}).exitCode, 0);
    EXPECT_EQ(compare({"2", "1", "--fail-if", "kv_bytes<-1KiB"}).exitCode, 1);
    const auto printed = nlohmann::json::parse(compare({"--json", "--fail-if", "kv_bytes>+2%"}).out);
    EXPECT_EQ(printed.at("conditions")[0].at("fails"), true);
    const test::ProgramResult unknown = compare({"--fail-if", "kv_byte>+2%"});
    EXPECT_EQ(unknown.exitCode, 2);
    EXPECT_THAT(unknown.err, HasSubstr("the nearest known one is kv_bytes"));
}

TEST_F(SessionCompareCommand, WritesTablesForPullRequests) {
    const test::ProgramResult result = compare({"--markdown"});
    EXPECT_EQ(result.exitCode, 0) << result.err;
    EXPECT_EQ(result.out.rfind("**Peak and rates are the same within the noise; ", 0), 0u) << result.out;
    EXPECT_THAT(result.out, HasSubstr("| set differently | A #1 | B #2 |\n| --- | ---: | ---: |\n"));
    EXPECT_THAT(result.out, HasSubstr("| max_new_tokens | 4 | 400 |"));
    EXPECT_THAT(result.out, HasSubstr("| result | A #1 | B #2 | B − A | verdict |"));
    EXPECT_THAT(result.out, HasSubstr("| peak memory | "));
}

TEST_F(SessionCompareCommand, RunsThatCannotBeComparedGetNoChanges) {
    ASSERT_EQ(test::vitrine({"generate", "--model", "synthetic:tiny-gpt-oss", "--backend", "meta", "--device-profile",
                             "a100-80gb", "--prompt-length", "65", "--max-new-tokens", "4", "--session", file_})
                  .exitCode,
              0);
    const test::ProgramResult result = compare({"1", "3"});
    EXPECT_THAT(result.out, HasSubstr("#1 and #3 cannot be compared: #1 has a prompt of 64 tokens, #3 one of 65."));
    EXPECT_THAT(result.out, testing::Not(HasSubstr("B − A")));
    EXPECT_EQ(compare({"1", "3", "--fail-if", "kv_bytes>+2%"}).exitCode, 2);
    EXPECT_EQ(compare({"1", "1"}).exitCode, 2) << "no run is its own baseline";
}

} // namespace
} // namespace vitrine
