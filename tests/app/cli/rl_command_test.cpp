// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// `vitrine rl`, and the rollouts that its session gives back.

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/rl/policy/rollouts.h"
#include "tests/app/program.h"
#include "tests/fixture_paths.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using nlohmann::json;
using test::TempFolder;

std::vector<std::string> commandOf(const std::string& rollouts, const std::vector<std::string>& more) {
    std::vector<std::string> out = {"rl",        "--model",  test::fixture("llama"),
                                    "--backend", "cpu",      "--dtype",
                                    "float32",   "--method", "lora",
                                    "--updates", "2",        "--kl",
                                    "0.05",      "--json",   "--rollouts",
                                    rollouts};
    out.insert(out.end(), more.begin(), more.end());
    return out;
}

TEST(RlCommand, ARecordedBatchCanBeReplayed) {
    const TempFolder folder;
    const std::string given = test::fixture("grpo-llama/rollouts.safetensors");
    const std::string session = folder.file("rl.vitrine"), exported = folder.file("exported.safetensors");
    const test::ProgramResult first = test::vitrine(commandOf(given, {"--session", session}));
    ASSERT_EQ(first.exitCode, 0) << first.err;
    ASSERT_EQ(test::vitrine({"session", "export", session, "--format", "rollouts", "--output", exported}).exitCode, 0);
    const engine::Rollouts before = engine::readRollouts(given, 512), after = engine::readRollouts(exported, 512);
    EXPECT_EQ(after.lengths, before.lengths);
    EXPECT_EQ(after.promptLengths, before.promptLengths);
    EXPECT_EQ(after.advantages, before.advantages);
    for (std::int64_t row = 0; row < before.rows; ++row) {
        EXPECT_TRUE(std::ranges::equal(after.answer(row), before.answer(row))) << row;
    }
    const test::ProgramResult second = test::vitrine(commandOf(exported, {}));
    ASSERT_EQ(second.exitCode, 0) << second.err;
    for (const char* key : {"losses", "kl", "clip_share", "logprob_abs_diff"}) {
        EXPECT_EQ(json::parse(second.out)[key], json::parse(first.out)[key]) << key;
    }
    EXPECT_EQ(test::vitrine({"session", "export", session, "--format", "rollouts", "--output", exported}).exitCode, 0)
        << "an earlier export is replaced";
}

TEST(RlCommand, ARunWithoutRolloutsHasNoneToExport) {
    const TempFolder folder;
    const std::string session = folder.file("other.vitrine");
    ASSERT_EQ(test::vitrine({"generate", "--model", test::fixture("llama"), "--backend", "cpu", "--tokens", "1,2,3",
                             "--max-new-tokens", "2", "--session", session})
                  .exitCode,
              0);
    const test::ProgramResult out = test::vitrine(
        {"session", "export", session, "--format", "rollouts", "--output", folder.file("none.safetensors")});
    EXPECT_EQ(out.exitCode, 2);
    EXPECT_NE(out.err.find("has no rollouts"), std::string::npos) << out.err;
}

} // namespace
} // namespace vitrine
