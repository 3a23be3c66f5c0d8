// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Runs of the built program from start to end, on tiny synthetic models.

#include <algorithm>
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sessions/session_file.h"
#include "sessions/sqlite/database.h"
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

std::vector<std::string> generate(const std::vector<std::string>& more) {
    std::vector<std::string> words{"generate", "--model", "synthetic:tiny-gpt-oss",
                                   "--tokens", "1,2,3",   "--ignore-eos"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

TEST(GenerateCommand, PrintsItsFieldsAndNothingElse) {
    const ProgramResult result = test::vitrine(generate({"--max-new-tokens", "5", "--json"}));
    ASSERT_EQ(result.exitCode, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
    const json value = json::parse(result.out);
    EXPECT_EQ(value.at("ids").size(), 5u);
    EXPECT_TRUE(value.at("text").is_null()) << "no tokenizer";
    std::uint64_t sum = 0;
    for (const auto& [category, bytes] : value.at("peak_by_category").items()) {
        sum += bytes.get<std::uint64_t>();
    }
    EXPECT_EQ(sum, value.at("peak_bytes").get<std::uint64_t>());
    for (const char* field : {"prompt_tokens", "prefill_seconds", "decode_tokens_per_second", "kv_bytes"}) {
        EXPECT_TRUE(value.contains(field)) << field;
    }
    const ProgramResult again = test::vitrine(generate({"--max-new-tokens", "5", "--json"}));
    EXPECT_EQ(json::parse(again.out).at("ids"), value.at("ids"));
}

TEST(GenerateCommand, SavesRunsThatCanBeListedShownComparedAndExported) {
    const TempFolder folder;
    const std::string file = folder.file("runs.vitrine");
    ASSERT_EQ(test::vitrine(generate({"--max-new-tokens", "4", "--session", file})).exitCode, 0);
    ASSERT_EQ(test::vitrine(generate({"--max-new-tokens", "8", "--session", file})).exitCode, 0);

    const json list = json::parse(test::vitrine({"session", "ls", file, "--json"}).out);
    ASSERT_EQ(list.at("runs").size(), 2u);
    EXPECT_EQ(list["runs"][0]["status"], "done");
    EXPECT_THAT(test::vitrine({"session", "ls", file}).out, HasSubstr("generate tiny-gpt-oss"));

    const json shown = json::parse(test::vitrine({"session", "show", file, "1", "--json"}).out);
    EXPECT_EQ(shown["spec"]["max_new_tokens"], 4);
    EXPECT_EQ(shown["environment"]["backend"], "cpu");
    EXPECT_EQ(shown["environment"]["time_base"], "monotonic");
    EXPECT_FALSE(shown["streams"].empty()) << "events were recorded";
    EXPECT_EQ(shown["metrics"]["ids"].size(), 4u);

    const json compared = json::parse(test::vitrine({"session", "compare", file, "--json"}).out);
    ASSERT_EQ(compared["spec"].size(), 1u);
    EXPECT_EQ(compared["spec"][0]["key"], "max_new_tokens");
    EXPECT_FALSE(compared["metrics"].empty());
    EXPECT_GE(compared["memory"]["phases"].size(), 3u) << "load, prefill, decode";
    EXPECT_EQ(compared, json::parse(test::vitrine({"session", "compare", file, "1", "2", "--json"}).out));
    EXPECT_EQ(test::vitrine({"session", "compare", file, "1"}).exitCode, 2) << "nothing before the first run";
    EXPECT_THAT(test::vitrine({"session", "compare", file, "1", file, "2"}).out, HasSubstr("max_new_tokens"));

    const std::string exported = folder.file("plain.db");
    ASSERT_EQ(test::vitrine({"session", "export", file, "--format", "sqlite", "--output", exported}).exitCode, 0);
    const sessions::Database plain(exported, sessions::Database::Access::ReadOnly);
    EXPECT_EQ(plain.queryInteger("SELECT count(*) FROM runs"), 2);
    EXPECT_GT(plain.queryInteger("SELECT count(*) FROM allocations"), 0);

    const std::string trace = folder.file("trace.json");
    ASSERT_EQ(test::vitrine({"session", "export", file, "2", "--format", "chrome", "--output", trace}).exitCode, 0);
    EXPECT_GT(json::parse(test::readAll(trace)).at("traceEvents").size(), 10u);
    const std::string tables = folder.file("tables");
    ASSERT_EQ(test::vitrine({"session", "export", file, "--format", "csv", "--output", tables}).exitCode, 0);
    EXPECT_THAT(test::readAll(tables + "/allocations.csv"), HasSubstr("lm_head"));
    EXPECT_THAT(test::readAll(tables + "/memory.csv"), HasSubstr("max_total"));
    EXPECT_EQ(test::vitrine({"session", "export", file, "--format", "sqlite", "--output", file}).exitCode, 2);
    EXPECT_EQ(test::vitrine({"session", "export", file, "--format", "chrome", "--output", "/no/folder/x"}).exitCode, 2);

    ASSERT_EQ(test::vitrine({"session", "note", file, "2", "longer"}).exitCode, 0);
    ASSERT_EQ(test::vitrine({"session", "tag", file, "2", "x", "y"}).exitCode, 0);
    ASSERT_EQ(test::vitrine({"session", "tag", file, "2", "x", "--remove"}).exitCode, 0);
    const auto session = SessionFile::open(file, OpenMode::ReadOnly);
    EXPECT_EQ(session->run(2).note, "longer");
    EXPECT_THAT(session->run(2).tags, testing::ElementsAre("y"));
}

TEST(GenerateCommand, ListsWhatARunLost) {
    const TempFolder folder;
    const std::string file = folder.file("runs.vitrine");
    {
        const auto session = sessions::SessionFile::open(file, sessions::OpenMode::CreateOrOpen);
        sessions::RunInfo info;
        info.name = info.workload = "generate";
        info.specJson = info.environmentJson = "{}";
        const sessions::RunId run = session->createRun(info);
        session->setLostRecords(run, 1234);
        session->finishRun(run, sessions::RunStatus::Done, "{}", "");
    }
    const std::string list = test::vitrine({"session", "ls", file}).out;
    EXPECT_NE(list.find("lost"), std::string::npos) << list;
    EXPECT_NE(list.find("1,234"), std::string::npos) << list;
    EXPECT_NE(test::vitrine({"session", "show", file}).out.find("1,234 records: its timeline has gaps"),
              std::string::npos);
}

TEST(GenerateCommand, OutOfMemoryIsExitThreeAndSaved) {
    const TempFolder folder;
    const std::string file = folder.file("runs.vitrine");
    const ProgramResult result = test::vitrine(generate({"--vram-budget", "64KiB", "--session", file, "--json"}));
    EXPECT_EQ(result.exitCode, 3) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    const json value = json::parse(result.out);
    EXPECT_EQ(value.at("error").at("kind"), "out_of_memory");
    EXPECT_EQ(value["error"]["budget_bytes"], 65536u);
    EXPECT_EQ(SessionFile::open(file, OpenMode::ReadOnly)->run(1).status, RunStatus::OutOfMemory);
}

TEST(GenerateCommand, RefusesAForeignSessionFileBeforeItRuns) {
    const TempFolder folder;
    const std::string file = folder.file("notes.txt");
    test::writeAll(file, "not a session");
    const ProgramResult result = test::vitrine(generate({"--session", file}));
    EXPECT_EQ(result.exitCode, 2);
    EXPECT_THAT(result.err, HasSubstr(file + ": "));
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(test::readAll(file), "not a session");
}

TEST(GenerateCommand, CtrlCStopsCleanlyAndSavesTheRun) {
    const TempFolder folder;
    const std::string file = folder.file("runs.vitrine");
    test::Program program(generate(
        {"--set", "max_position_embeddings=2000000", "--max-new-tokens", "1000000", "--session", file, "--json"}));
    // The run is in the file before its first token, and its first steps soon come after it.
    ASSERT_TRUE(test::eventually([&] {
        if (!std::filesystem::exists(file)) {
            return false;
        }
        const auto session = SessionFile::open(file, OpenMode::ReadOnly);
        return !session->runs().empty() && !session->streams(1).empty();
    }));
    program.signal(SIGINT);
    const ProgramResult result = program.wait();
    EXPECT_EQ(result.exitCode, 130) << result.err;
    EXPECT_THAT(result.err, HasSubstr("saved as run 1"));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(json::parse(result.out).at("error").at("kind"), "cancelled");
    EXPECT_EQ(SessionFile::open(file, OpenMode::ReadOnly)->run(1).status, RunStatus::Cancelled);
}

TEST(GenerateCommand, SaysThatItsSessionWasDeleted) {
    const TempFolder folder;
    const std::string file = folder.file("runs.vitrine");
    test::Program program(generate(
        {"--set", "max_position_embeddings=2000000", "--max-new-tokens", "1000000", "--session", file, "--json"}));
    ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(file); }));
    const auto watcher = SessionFile::open(file, OpenMode::ReadOnly); // the run is in it
    ASSERT_TRUE(test::eventually([&] { return !watcher->runs().empty() && !watcher->streams(1).empty(); }));
    std::filesystem::remove(file);
    program.signal(SIGINT);
    const ProgramResult result = program.wait();
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("runs.vitrine: the session file was deleted during the run"));
    EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(PlanCommand, SaysWhetherItFits) {
    const ProgramResult result = test::vitrine({"plan", "generate", "--model", "synthetic:gpt-oss-20b",
                                                "--prompt-length", "4096", "--device-profile", "rtx-4090", "--json"});
    ASSERT_EQ(result.exitCode, 0) << result.err;
    const json value = json::parse(result.out);
    for (const char* field : {"fits", "peak_bytes", "peak_by_category", "max_by_category", "step_seconds_estimate"}) {
        EXPECT_TRUE(value.contains(field)) << field;
    }
    const json both = json::parse(
        test::vitrine({"plan", "load", "--model", "synthetic:gpt-oss-20b", "--weights", "both", "--json"}).out);
    EXPECT_EQ(both.at("variants").size(), 2u);
}

TEST(PlanCommand, SaysWhatWouldFit) {
    const std::vector<std::string> command = {
        "plan", "generate", "--model", "synthetic:gpt-oss-20b", "--prompt-length", "100000", "--vram-budget", "15GB"};
    std::vector<std::string> asJson = command;
    asJson.emplace_back("--json");
    const json changes = json::parse(test::vitrine(asJson).out).at("changes");
    ASSERT_FALSE(changes.empty());
    EXPECT_LE(changes[0].at("reserved_bytes"), 15'000'000'000U);
    EXPECT_THAT(test::vitrine(command).out, HasSubstr("would fit with"));
}

TEST(PlanCommand, PrintsSizesAndRatesWithTheirUnits) {
    const std::string text = test::vitrine({"plan", "generate", "--model", "synthetic:gpt-oss-20b", "--prompt-length",
                                            "100000", "--device-profile", "h100-80gb"})
                                 .out;
    EXPECT_THAT(text, testing::ContainsRegex("roofline.bandwidth +3\\.0+ TB/s\n"));
    EXPECT_THAT(text, testing::ContainsRegex("roofline.bytes_per_token +[0-9.]+ GiB\n"));
    EXPECT_THAT(text, testing::ContainsRegex("roofline.parts.head +[0-9.]+ GiB\n"));
    EXPECT_THAT(text, testing::ContainsRegex("roofline.seconds_per_token +[0-9.]+ ms\n"));
    EXPECT_THAT(text, testing::ContainsRegex("roofline.context_tokens +100,[0-9]+\n"));
}

TEST(LoadCommand, SaysHowFastEachKindOfWeightsAnswersAndHowCloseTheAnswersAre) {
    const ProgramResult result = test::vitrine({"load", "--model", "synthetic:tiny-gpt-oss", "--backend", "cpu",
                                                "--weights", "both", "--tokens", "1,2,3", "--max-new-tokens", "4"});
    ASSERT_EQ(result.exitCode, 0) << result.err;
    EXPECT_THAT(result.out, testing::ContainsRegex("after the load +quantized +dequantized\n"));
    EXPECT_THAT(result.out, testing::ContainsRegex("decode_tokens_per_second +[0-9.,]+ tok/s +[0-9.,]+ tok/s\n"));
    EXPECT_THAT(result.out, testing::ContainsRegex("Of 4 greedy tokens [0-4] are the same"));
    EXPECT_THAT(result.out, HasSubstr("the prompt's logits differ by "));
}

} // namespace
} // namespace vitrine
