// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The batch command from start to end: what it prints, writes and keeps in the session.

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <regex>

#include "app/runner/recording/stored_timeline.h"
#include "app/runner/runs/run_compare.h"
#include "base/trace.h"
#include "profiler/timeline/page_facet.h"
#include "profiler/timeline/request_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "sessions/session_file.h"
#include "tests/app/program.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using nlohmann::json;
using test::TempFolder;

std::vector<std::string> batch(const std::vector<std::string>& more) {
    std::vector<std::string> words{
        "batch",      "--model", "synthetic:tiny-gpt-oss", "--backend", "cpu",          "--trace", "uniform",
        "--requests", "9",       "--prompt-tokens",        "2-20",      "--new-tokens", "1-12",    "--slots",
        "3",          "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/// Tokens per second of the one run that `vitrine session ls` lists; -1 where it lists none.
double listedRate(const std::string& file) {
    const std::string list = test::vitrine({"session", "ls", file}).out;
    std::smatch row;
    if (!std::regex_search(list, row, std::regex("done +[0-9.]+ [KMGT]iB +([0-9.,]+) "))) {
        ADD_FAILURE() << list;
        return -1;
    }
    std::string digits = row[1];
    std::erase(digits, ',');
    return std::stod(digits);
}

TEST(BatchCommand, PrintsItsFieldsAndWritesAnswers) {
    const TempFolder folder;
    json answers;
    for (const char* mode : {"static", "continuous"}) {
        const std::string file = folder.file(std::string(mode) + ".jsonl");
        const test::ProgramResult result = test::vitrine(batch({"--mode", mode, "--outputs", file}));
        ASSERT_EQ(result.exitCode, 0) << result.err;
        const json value = json::parse(result.out);
        for (const char* field : {"tokens_per_second", "generated_tokens", "steps", "slot_utilization", "ttft", "tpot",
                                  "e2e", "peak_bytes", "kv_pool_bytes"}) {
            EXPECT_TRUE(value.contains(field)) << field;
        }
        json rows = json::array();
        std::ifstream in(file);
        for (std::string line; std::getline(in, line);) {
            rows.push_back(json::parse(line));
        }
        ASSERT_EQ(rows.size(), 9U);
        EXPECT_TRUE(answers.is_null() || answers == rows) << "both modes give the same answers";
        answers = rows;
    }
}

TEST(BatchCommand, TheSessionHoldsStepsSlotsAndRequests) {
    const TempFolder folder;
    const std::string file = folder.file("batch.vitrine");
    const test::ProgramResult result = test::vitrine(batch({"--session", file}));
    ASSERT_EQ(result.exitCode, 0) << result.err;
    const json value = json::parse(result.out);
    const auto session = sessions::SessionFile::open(file, sessions::OpenMode::ReadOnly);
    const auto timeline = app::loadTimeline(*session, 1);
    EXPECT_EQ(timeline->requests().steps().size(), value.at("steps").get<std::size_t>());
    std::int64_t cells = 0;
    std::int64_t tokens = 0;
    for (const base::SlotSpanEvent& span : timeline->requests().slotSpans()) {
        cells += span.steps;
        tokens += span.tokens;
    }
    EXPECT_EQ(cells, 3 * value.at("steps").get<std::int64_t>()) << "every slot in every step";
    EXPECT_EQ(tokens,
              value.at("prefill_tokens").get<std::int64_t>() + value.at("generated_tokens").get<std::int64_t>() - 9)
        << "the first token of each of nine requests comes from its prompt";
    std::int64_t sampled = 0;
    for (const base::BatchStepEvent& step : timeline->requests().steps()) {
        sampled += step.sampled;
        EXPECT_EQ(step.usedPages + step.cachedPages + step.freePages, value.at("kv_pool_pages").get<std::int64_t>());
    }
    EXPECT_EQ(sampled, value.at("generated_tokens").get<std::int64_t>());
    EXPECT_EQ(timeline->requests().events().size(), 9U * 4) << "arrived, admitted, first token, finished";
    EXPECT_FALSE(timeline->pages().all().empty());
    for (const base::RequestEvent& event : timeline->requests().events()) {
        if (event.phase == base::RequestChange::Admitted) {
            EXPECT_GE(event.sequence, 0) << "events of pages name it";
            EXPECT_EQ(timeline->text(event.reason.value), "");
        }
    }
    const std::string tables = folder.file("tables");
    ASSERT_EQ(test::vitrine({"session", "export", file, "--format", "csv", "--output", tables}).exitCode, 0);
    const auto rowsOf = [&](const std::string& table) {
        const std::string text = test::readAll(tables + "/" + table + ".csv");
        return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) - 1; // without the head
    };
    EXPECT_EQ(rowsOf("batch_steps"), timeline->requests().steps().size());
    EXPECT_EQ(rowsOf("batch_slots"), timeline->requests().slotSpans().size());
    EXPECT_EQ(rowsOf("batch_requests"), timeline->requests().events().size());
    EXPECT_EQ(rowsOf("kv_pages"), timeline->pages().all().size());
    const std::string trace = folder.file("trace.json");
    ASSERT_EQ(test::vitrine({"session", "export", file, "--format", "chrome", "--output", trace}).exitCode, 0);
    const json exported = json::parse(test::readAll(trace)).at("traceEvents");
    const auto busy = std::count_if(timeline->requests().slotSpans().begin(), timeline->requests().slotSpans().end(),
                                    [](const auto& span) { return span.state != base::SlotState::Idle; });
    EXPECT_EQ(std::count_if(exported.begin(), exported.end(),
                            [](const json& event) { return event.value("cat", "") == "slot"; }),
              busy);
    const auto rate = value.at("tokens_per_second").get<double>();
    EXPECT_NEAR(listedRate(file), rate, 0.001 * rate);
}

TEST(BatchCommand, PrintsTimesWithTheirUnits) {
    std::vector<std::string> words = batch({});
    words.pop_back(); // --json
    const test::ProgramResult result = test::vitrine(words);
    ASSERT_EQ(result.exitCode, 0) << result.err;
    for (const char* value : {"ttft.p95", "tpot.p50", "e2e.mean"}) {
        EXPECT_THAT(result.out, testing::ContainsRegex(std::string(value) + " +[0-9.]+ (s|ms|µs)\n"));
    }
}

TEST(BatchCommand, TheSessionIsNoPlaceForAnswers) {
    const TempFolder folder;
    const std::string file = folder.file("batch.vitrine");
    for (const char* key : {"--outputs", "--save-trace"}) {
        const test::ProgramResult result = test::vitrine(batch({"--session", file, key, file}));
        EXPECT_EQ(result.exitCode, 2);
        EXPECT_THAT(result.err, testing::HasSubstr("is the file of session too"));
    }
}

TEST(BatchCommand, ListsOfRunsHaveItsRate) {
    const TempFolder folder;
    const std::string file = folder.file("batch.vitrine");
    ASSERT_EQ(test::vitrine({"plan", "batch", "--model", "synthetic:tiny-llama", "--trace", "fixed", "--requests", "2",
                             "--new-tokens", "8", "--session", file})
                  .exitCode,
              0);
    const json printed = json::parse(test::vitrine({"session", "show", file, "--json"}).out);
    const auto rate = printed.at("metrics").at("tokens_per_second").get<double>();
    EXPECT_NEAR(listedRate(file), rate, 0.001 * rate);
}

TEST(BatchCommand, LargeRatesAreListedWhole) {
    const TempFolder folder;
    const std::string file = folder.file("batch.vitrine");
    {
        const auto session = sessions::SessionFile::open(file, sessions::OpenMode::CreateOrOpen);
        sessions::RunInfo info;
        info.name = "a fast one";
        const sessions::RunId run = session->createRun(info);
        session->finishRun(run, sessions::RunStatus::Done, R"({"tokens_per_second": 12345.6, "peak_bytes": 1048576})",
                           {});
    }
    EXPECT_EQ(listedRate(file), 12346);
}

TEST(BatchCommand, MistakesAreOneLineEach) {
    const TempFolder folder;
    std::ofstream(folder.file("t.jsonl")) << "{\"prompt_length\": 3}\n{\"prompt_length\": -3}\n";
    const test::ProgramResult wrong = test::vitrine(
        {"batch", "--model", "synthetic:tiny-llama", "--backend", "cpu", "--trace", folder.file("t.jsonl")});
    EXPECT_EQ(wrong.exitCode, 2);
    EXPECT_THAT(wrong.err, testing::HasSubstr("t.jsonl: line 2: prompt_length: "));
    EXPECT_EQ(test::vitrine({"batch", "--model", "synthetic:tiny-llama"}).exitCode, 2);
}

} // namespace
} // namespace vitrine
