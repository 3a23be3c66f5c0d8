// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Fine-tuning by the built program: what is left when it is killed, stopped or out of memory.

#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sessions/session_file.h"
#include "tests/app/program.h"
#include "tests/base/eventually.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using nlohmann::json;
using sessions::OpenMode;
using sessions::RunStatus;
using sessions::SessionFile;
using test::ProgramResult;
using test::TempFolder;
using testing::HasSubstr;

std::vector<std::string> finetune(const std::vector<std::string>& more) {
    std::vector<std::string> words{"finetune",
                                   "--model",
                                   "synthetic:tiny-gpt-oss",
                                   "--prompt-length",
                                   "64",
                                   "--train",
                                   "attention+experts",
                                   "--rank",
                                   "4",
                                   "--lr",
                                   "0.01",
                                   "--seed",
                                   "7",
                                   "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

json resultOf(const std::vector<std::string>& more) {
    const ProgramResult result = test::vitrine(finetune(more));
    EXPECT_EQ(result.exitCode, 0) << result.err;
    return json::parse(result.out, nullptr, false);
}

/// How many complete checkpoints a folder holds.
std::size_t checkpoints(const std::string& folder) {
    constexpr std::string_view kBegin = "checkpoint-";
    std::size_t count = 0;
    if (std::filesystem::exists(folder)) {
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            const std::string name = entry.path().filename().string();
            const bool complete = name.find_first_not_of("0123456789", kBegin.size()) == std::string::npos;
            count += name.starts_with(kBegin) && complete ? 1 : 0;
        }
    }
    return count;
}

TEST(FinetuneCommand, AKilledRunGoesOnWithTheSameLosses) {
    const TempFolder folder;
    const std::string output = folder.file("out");
    for (const std::size_t saved : {1u, 3u, 6u}) {
        // 100,000 steps: it is killed long before the end.
        std::vector<std::string> words = finetune({"--steps", "100000", "--save-every", "1", "--output", output});
        if (checkpoints(output) > 0) {
            words.insert(words.end(), {"--resume", output});
        }
        test::Program program(words);
        EXPECT_TRUE(test::eventually([&] { return checkpoints(output) >= saved; }));
        program.signal(SIGKILL);
        EXPECT_EQ(program.wait().exitCode, 128 + SIGKILL);
    }
    const std::size_t last = checkpoints(output);
    ASSERT_GE(last, 6u);
    const json more = resultOf({"--steps", std::to_string(last + 3), "--resume", output, "--output", output});
    const auto losses = more.at("losses").get<std::vector<double>>();
    const auto expected = resultOf({"--steps", std::to_string(last + 3)}).at("losses").get<std::vector<double>>();
    EXPECT_EQ(losses, expected);
}

TEST(FinetuneCommand, AStoppedRunEndsAfterACheckpoint) {
    const TempFolder folder;
    const std::string output = folder.file("out");
    const std::string file = folder.file("runs.vitrine");
    test::Program program(finetune({"--steps", "100000", "--output", output, "--session", file}));
    EXPECT_TRUE(test::eventually([&] { return std::filesystem::exists(output + "/metrics.csv"); }));
    EXPECT_TRUE(test::eventually([&] { return std::filesystem::file_size(output + "/metrics.csv") > 200; }));
    program.signal(SIGINT);
    program.wait();
    EXPECT_EQ(checkpoints(output), 1u);
    const auto session = SessionFile::open(file, OpenMode::ReadOnly);
    EXPECT_EQ(session->runs().at(0).status, RunStatus::Cancelled);
}

TEST(FinetuneCommand, OutOfMemoryLeavesTheSessionAndTheLastCheckpointWhole) {
    const TempFolder folder;
    const std::string output = folder.file("out");
    const std::string file = folder.file("runs.vitrine");
    const json whole = resultOf({"--steps", "2", "--save-every", "1", "--output", output});
    const auto peak = whole.at("peak_bytes").get<std::uint64_t>();
    std::size_t failed = 0;
    for (std::uint64_t part = 1; part < 8; ++part) {
        const ProgramResult result =
            test::vitrine(finetune({"--steps", "4", "--resume", output, "--output", output, "--session", file,
                                    "--vram-budget", std::to_string(peak * part / 8)}));
        EXPECT_EQ(result.exitCode, 3) << part << result.err;
        EXPECT_THAT(result.err, HasSubstr("memory")) << part;
        ++failed;
    }
    const auto session = SessionFile::open(file, OpenMode::ReadOnly);
    EXPECT_EQ(session->runs().size(), failed);
    EXPECT_EQ(checkpoints(output), 2u);
    EXPECT_EQ(resultOf({"--steps", "4", "--resume", output, "--output", output}).at("losses"),
              resultOf({"--steps", "4"}).at("losses"));
}

} // namespace
} // namespace vitrine
