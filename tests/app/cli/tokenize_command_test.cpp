// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/app/program.h"
#include "tests/fixture_paths.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kTokenizer = test::fixture("tokenizers/qwen-style.tokenizer.json");

TEST(TokenizeCommand, TurnsRowsIntoIdsAndBack) {
    const test::TempFolder folder;
    const std::string rows = folder.file("rows.jsonl");
    test::writeAll(rows,
                   "{\"text\": \"Hello\\nworld\"}\n{\"text\": \"\"}\n{\"text\": \"caf\\u00e9 \\ud83d\\ude00\"}\n");
    const auto result = test::vitrine({"tokenize", "--tokenizer", kTokenizer, "--jsonl", rows, "--json"});
    ASSERT_EQ(result.exitCode, 0) << result.err;
    const json value = json::parse(result.out);
    ASSERT_EQ(value.at("rows").size(), 3u);
    EXPECT_EQ(value["rows"][0]["decoded"], "Hello\nworld");
    EXPECT_FALSE(value["rows"][0]["ids"].empty());
    EXPECT_TRUE(value["rows"][1]["ids"].empty());
    EXPECT_EQ(value["rows"][2]["decoded"], "caf\u00e9 \U0001F600");
}

TEST(TokenizeCommand, TakesOneTextAfterAnyOption) {
    const auto first = test::vitrine({"tokenize", "--tokenizer", kTokenizer, "Hello world"});
    ASSERT_EQ(first.exitCode, 0) << first.err;
    EXPECT_THAT(first.out, HasSubstr("\t\"Hello world\"\n"));
    EXPECT_EQ(test::vitrine({"tokenize", "Hello world", "--tokenizer", kTokenizer}).out, first.out);
}

TEST(TokenizeCommand, NamesTheLineOfABadRow) {
    const test::TempFolder folder;
    const std::string rows = folder.file("rows.jsonl");
    test::writeAll(rows, "{\"text\": \"fine\"}\n{\"txt\": 1}\n");
    const auto result = test::vitrine({"tokenize", "--tokenizer", kTokenizer, "--jsonl", rows});
    EXPECT_EQ(result.exitCode, 2);
    EXPECT_THAT(result.err, HasSubstr(rows + ": line 2: text: "));
}

} // namespace
} // namespace vitrine
