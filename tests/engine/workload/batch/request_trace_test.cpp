// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/batch/request_trace.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.h"

namespace vitrine::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string written(const std::string& text) {
    const std::string path =
        (std::filesystem::path(::testing::TempDir()) / fmt::format("trace-{}.jsonl", ::getpid())).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
}

std::string traceError(const std::string& text) {
    try {
        readRequestTrace(written(text));
    } catch (const base::BadInput& error) {
        return error.message();
    }
    return "";
}

TEST(RequestTrace, RowsAreReadAndStandByArrival) {
    const auto rows =
        readRequestTrace(written("{\"id\": \"late\", \"arrival\": 2.5, \"tokens\": [1, 2]}\n"
                                 "\n"
                                 "{\"prompt_length\": 7, \"max_new_tokens\": 3}\r\n"
                                 "{\"id\": 9, \"prompt\": \"hi\", \"temperature\": 0.5, \"stop\": [\"x\"], "
                                 "\"stop_tokens\": []}"));
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(rows[0].promptLength, 7);
    EXPECT_EQ(rows[0].maxNewTokens, 3);
    EXPECT_EQ(rows[0].idJson(), 1) << "the number of its row in the file";
    EXPECT_EQ(rows[1].idJson(), 9);
    EXPECT_EQ(rows[1].prompt, "hi");
    EXPECT_EQ(rows[1].temperature, 0.5);
    EXPECT_EQ(rows[1].stop, (std::vector<std::string>{"x"}));
    EXPECT_TRUE(rows[1].stopTokens && rows[1].stopTokens->empty());
    EXPECT_EQ(rows[2].idJson(), "late");
    EXPECT_EQ(rows[2].tokens, (std::vector<std::int32_t>{1, 2}));
}

TEST(RequestTrace, ErrorsNameTheLineAndTheField) {
    const std::string good = "{\"prompt_length\": 7}\n";
    EXPECT_THAT(traceError(good + "{\"prompt_length\": 0}"), HasSubstr(": line 2: prompt_length: "));
    EXPECT_THAT(traceError(good + "{}"), HasSubstr(": line 2: prompt: missing"));
    EXPECT_THAT(traceError("{\"prompt_length\": 7, \"tokens\": [1]}"), HasSubstr(": line 1: prompt: stands together"));
    EXPECT_THAT(traceError("{\"tokens\": []}"), HasSubstr(": line 1: tokens: "));
    EXPECT_THAT(traceError("{\"tokens\": [1, -2]}"), HasSubstr(": line 1: tokens: -2 "));
    EXPECT_THAT(traceError("{\"tokens\": [4294967296]}"), HasSubstr("tokens: 4294967296 "));
    EXPECT_THAT(traceError("{\"tokens\": [1.5]}"), HasSubstr(": line 1: tokens: "));
    EXPECT_THAT(traceError("{\"prompt\": 3}"), HasSubstr(": line 1: prompt: "));
    EXPECT_THAT(traceError("{\"prompt_length\": 7, \"arrival\": -1}"), HasSubstr(": line 1: arrival: "));
    EXPECT_THAT(traceError("{\"prompt_length\": 7, \"arrival\": \"soon\"}"), HasSubstr(": line 1: arrival: "));
    EXPECT_THAT(traceError("{\"prompt_length\": 7, \"arrival\": 1e300}"), HasSubstr(": line 1: arrival: "));
    EXPECT_THAT(traceError("{\"prompt_length\": 7, \"max_new_tokens\": 1e3}"), HasSubstr(": line 1: max_new_tokens: "));
    EXPECT_THAT(traceError("{\"prompt_length\": 7, \"max_new_tokens\": 18446744073709551615}"),
                HasSubstr(": line 1: max_new_tokens: "));
    EXPECT_THAT(traceError("{\"prompt_length\": 7, \"top_p\": 0}"), HasSubstr(": line 1: top_p: "));
    EXPECT_THAT(traceError("{\"prompt_length\": 7, \"max_tokens\": 4}"),
                HasSubstr(": line 1: max_tokens: unknown field"));
    EXPECT_THAT(traceError("{\"prompt_length\": 7, \"id\": \"a\"}\n{\"prompt_length\": 7, \"id\": \"a\"}"),
                HasSubstr(": line 2: id: \"a\" stands in an earlier row"));
    EXPECT_THAT(traceError("[1]"), HasSubstr(": line 1: must be a JSON object"));
    EXPECT_THAT(traceError(good + "{\"prompt_length\": 7"), HasSubstr(".jsonl: line 2, column 19: "));
    EXPECT_THAT(traceError("{\"prompt_length\": 7, \"arrival\": 1e999}"),
                HasSubstr(".jsonl: line 1, column 38: number overflow"));
    EXPECT_THAT(traceError("\n\n"), HasSubstr("has no requests"));
    EXPECT_THAT(
        traceError("{\"prompt_length\": 16000000}\n{\"prompt_length\": 16000000}\n{\"prompt_length\": 16000000}\n"
                   "{\"prompt_length\": 16000000}\n{\"prompt_length\": 16000000}"),
        HasSubstr(": line 5: prompt: "));
    EXPECT_THROW(readRequestTrace("/nowhere/at/all.jsonl"), base::BadInput);
    EXPECT_THROW(readRequestTrace(::testing::TempDir()), base::BadInput);
}

TEST(RequestTrace, WhatIsWrittenReadsBack) {
    TraceRecipe recipe;
    recipe.kind = "poisson";
    recipe.rate = 7;
    std::vector<TraceRow> rows = makeRequestTrace(recipe);
    rows[3].promptLength = 0;
    rows[3].tokens = {5, 6};
    rows[3].temperature = 0.25;
    rows[3].seed = 12;
    rows[4].promptLength = 0;
    rows[4].prompt = "Größe \"x\"";
    rows[4].id = "four";
    rows[4].idIsNumber = false;
    const std::string path = written("");
    writeRequestTrace(path, rows);
    const auto again = readRequestTrace(path);
    ASSERT_EQ(again.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(again[i].idJson(), rows[i].idJson());
        EXPECT_EQ(again[i].arrival, rows[i].arrival);
        EXPECT_EQ(again[i].promptLength, rows[i].promptLength);
        EXPECT_EQ(again[i].tokens, rows[i].tokens);
        EXPECT_EQ(again[i].prompt, rows[i].prompt);
        EXPECT_EQ(again[i].maxNewTokens, rows[i].maxNewTokens);
        EXPECT_EQ(again[i].temperature, rows[i].temperature);
        EXPECT_EQ(again[i].seed, rows[i].seed);
        EXPECT_EQ(again[i].stopTokens, rows[i].stopTokens);
    }
}

TEST(RequestTrace, RecipesFollowTheirSeedAndTheirRanges) {
    TraceRecipe recipe;
    recipe.requests = 2000;
    const auto lengths = [](const std::vector<TraceRow>& rows) {
        std::vector<std::int64_t> out;
        for (const TraceRow& row : rows) {
            out.push_back(row.maxNewTokens);
        }
        return out;
    };
    const auto uniform = makeRequestTrace(recipe);
    EXPECT_EQ(lengths(uniform), lengths(makeRequestTrace(recipe)));
    std::int64_t sum = 0;
    for (const TraceRow& row : uniform) {
        EXPECT_GE(row.maxNewTokens, 16);
        EXPECT_LE(row.maxNewTokens, 256);
        EXPECT_GE(row.promptLength, 16);
        EXPECT_LE(row.promptLength, 256);
        EXPECT_EQ(row.arrival, 0);
        sum += row.maxNewTokens;
    }
    EXPECT_NEAR(static_cast<double>(sum) / 2000, 136, 5);
    recipe.seed = 1;
    EXPECT_NE(lengths(uniform), lengths(makeRequestTrace(recipe)));

    recipe.kind = "long-tail";
    recipe.answer = {16, 1024};
    std::vector<std::int64_t> tail = lengths(makeRequestTrace(recipe));
    std::sort(tail.begin(), tail.end());
    EXPECT_LT(tail[1000], 40) << "most answers are short";
    EXPECT_EQ(tail.back(), 1024);
    EXPECT_GT(std::count(tail.begin(), tail.end(), 1024), 5);

    recipe.kind = "fixed";
    EXPECT_EQ(makeRequestTrace(recipe)[7].maxNewTokens, 1024);
    recipe.kind = "poisson";
    EXPECT_THROW(makeRequestTrace(recipe), base::BadInput) << "without a rate";
    recipe.rate = 50;
    const auto poisson = makeRequestTrace(recipe);
    EXPECT_NEAR(poisson.back().arrival, 2000 / 50.0, 5);
    EXPECT_TRUE(std::is_sorted(poisson.begin(), poisson.end(),
                               [](const TraceRow& a, const TraceRow& b) { return a.arrival < b.arrival; }));
    recipe.requests = 1'000'000;
    recipe.prompt = {1, 1000};
    EXPECT_THROW(makeRequestTrace(recipe), base::BadInput) << "too many tokens";
}

TEST(RequestTrace, LengthRangesAreNumbersOrTwo) {
    EXPECT_EQ(parseLengthRange("16-256", "x").most, 256);
    EXPECT_EQ(parseLengthRange("7", "x").least, 7);
    EXPECT_EQ(parseLengthRange("7", "x").most, 7);
    for (const char* wrong : {"", "0", "-3", "3-", "3-2", "a-b", "1-2-3", "99999999999999999999"}) {
        EXPECT_THROW(parseLengthRange(wrong, "x"), base::BadInput) << wrong;
    }
}

} // namespace
} // namespace vitrine::engine
