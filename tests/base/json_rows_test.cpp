// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/json_rows.h"

#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/error.h"

namespace vitrine::base {
namespace {

std::string jsonRowsFile(const std::string& text) {
    // Tests may run at once, each in a process of its own.
    const char* test = testing::UnitTest::GetInstance()->current_test_info()->name();
    const std::string path = testing::TempDir() + "json_rows_" + test + ".json";
    std::ofstream(path, std::ios::binary) << text;
    return path;
}

/// "NUMBER@LINE:TEXT" of each row; each is read again from its offset.
std::vector<std::string> jsonRowsOf(const std::string& text) {
    const std::string path = jsonRowsFile(text);
    std::vector<std::string> rows;
    forJsonRows(path, [&](const JsonRow& row) {
        rows.push_back(std::to_string(row.number) + "@" + std::to_string(row.line) + ":" + std::string(row.text));
        EXPECT_EQ(row.inArray, isJsonArrayFile(path));
        EXPECT_EQ(readJsonRow(path, row.offset), row.text);
    });
    return rows;
}

std::string jsonRowsError(const std::string& text) {
    try {
        jsonRowsOf(text);
    } catch (const BadInput& error) {
        return error.message().substr(error.message().find(".json: ") + 7);
    }
    return "no error";
}

using Rows = std::vector<std::string>;

TEST(JsonRows, LinesAreRows) {
    EXPECT_EQ(jsonRowsOf(""), Rows{});
    EXPECT_EQ(jsonRowsOf("\n{\"a\": 1}\r\n\n {\"b\": 2}"), (Rows{"2@2:{\"a\": 1}\r", "4@4: {\"b\": 2}"}));
    EXPECT_EQ(jsonRowsOf("\xEF\xBB\xBF{}\n{}\n"), (Rows{"1@1:{}", "2@2:{}"}));
    EXPECT_EQ(jsonRowsOf("\xEF\xBB\xBF"), Rows{});
}

TEST(JsonRows, ElementsOfAnArrayAreRows) {
    EXPECT_EQ(jsonRowsOf("[]"), Rows{});
    EXPECT_EQ(jsonRowsOf("[{\"a\": 1},{\"b\": 2}]"), (Rows{"1@1:{\"a\": 1}", "2@1:{\"b\": 2}"}));
    EXPECT_EQ(jsonRowsOf("\xEF\xBB\xBF\r\n[\n {\n  \"a\": [1, {}]\n } ,\n 3 , \"x\"\n]\n"),
              (Rows{"1@3:{\n  \"a\": [1, {}]\n }", "2@6:3", "3@6:\"x\""}));
}

TEST(JsonRows, BracketsAndCommasOfTextsEndNoRow) {
    EXPECT_EQ(jsonRowsOf(R"([{"a": "],}\"]\\"}, {"b": "["}])"),
              (Rows{R"(1@1:{"a": "],}\"]\\"})", R"(2@1:{"b": "["})"}));
}

TEST(JsonRows, ARowThatIsNoJsonIsARow) {
    EXPECT_EQ(jsonRowsOf("[{\"a\" 1}, x y, }, {}]"), (Rows{"1@1:{\"a\" 1}", "2@1:x y", "3@1:}", "4@1:{}"}));
}

TEST(JsonRows, ArraysThatCannotBeReadAreErrors) {
    EXPECT_EQ(jsonRowsError("["), "row 1: line 1: the file ends before the array does; it may have been cut off");
    EXPECT_EQ(jsonRowsError("[{},\n{\"a\": 1"),
              "row 2: line 2: the file ends before the array does; it may have been cut off");
    EXPECT_EQ(jsonRowsError("[{},\n]"), "row 2: line 2: there is no value; remove the comma before or behind it");
    EXPECT_EQ(jsonRowsError("[{},,{}]"), "row 2: line 1: there is no value; remove the comma before or behind it");
    EXPECT_EQ(jsonRowsError("[\n{\"a\": \"b\n}]"),
              "row 1: line 2: a string does not end in line 2; close it with a quote");
    EXPECT_EQ(jsonRowsError("[{}]\n{}"), "line 2: more text stands behind the array of rows; write one array, or one "
                                         "object on each line");
    EXPECT_EQ(jsonRowsError("\xEF{}"), "line 1: begins with a part of a byte order mark; save it as UTF-8");
    EXPECT_THROW(forJsonRows("/dev/zero", [](const JsonRow&) {}), BadInput);
    EXPECT_FALSE(isJsonArrayFile("/dev/zero"));
    EXPECT_FALSE(isJsonArrayFile("/no/such/file"));
    EXPECT_EQ(readJsonRow(jsonRowsFile("[{}]"), 10'000), "");
}

TEST(JsonRows, ADeepArrayTakesNoStack) {
    EXPECT_EQ(jsonRowsOf("[" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "]").size(), 1U);
}

} // namespace
} // namespace vitrine::base
