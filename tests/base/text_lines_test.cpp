// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/text_lines.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace vitrine::base {
namespace {

std::string textLinesFile(const std::string& text) {
    // Tests may run at once, each in a process of its own.
    const char* test = testing::UnitTest::GetInstance()->current_test_info()->name();
    const std::string path = testing::TempDir() + "text_lines_" + test + ".txt";
    std::ofstream(path, std::ios::binary) << text;
    return path;
}

std::vector<std::pair<std::int64_t, std::string>> linesOf(const std::string& text) {
    std::vector<std::pair<std::int64_t, std::string>> lines;
    forTextLines(textLinesFile(text),
                 [&](std::string_view line, std::int64_t number) { lines.emplace_back(number, line); });
    return lines;
}

TEST(TextLines, BlankLinesAreCountedAndLeftOut) {
    using Lines = std::vector<std::pair<std::int64_t, std::string>>;
    EXPECT_EQ(linesOf(""), Lines{});
    EXPECT_EQ(linesOf("\n \t\r\n"), Lines{});
    EXPECT_EQ(linesOf("a\n\nb"), (Lines{{1, "a"}, {3, "b"}}));
    EXPECT_EQ(linesOf("a b\nc\n"), (Lines{{1, "a b"}, {2, "c"}}));
}

TEST(TextLines, ALineIsReadAgainFromItsFirstByte) {
    const std::string path = textLinesFile("one\n\n  three\r\nfour");
    std::vector<std::string> again;
    forTextLines(path, [&](const TextLine& line) {
        again.push_back(readTextLine(path, line.offset));
        EXPECT_EQ(again.back(), line.text);
    });
    EXPECT_EQ(again, (std::vector<std::string>{"one", "  three\r", "four"}));
    EXPECT_EQ(readTextLine(path, 10'000), "");
    EXPECT_THROW(readTextLine(path + ".none", 0), BadInput);
}

TEST(TextLines, AByteOrderMarkIsNoPartOfTheFirstLine) {
    const std::string path = textLinesFile("\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo");
    std::vector<std::string> again;
    forTextLines(path, [&](const TextLine& line) {
        again.push_back(readTextLine(path, line.offset));
        EXPECT_EQ(again.back(), line.text);
    });
    EXPECT_EQ(again, (std::vector<std::string>{"one", "\xEF\xBB\xBFtwo"}));
}

TEST(TextLines, WhatCannotBeReadIsAnError) {
    const auto nothing = [](std::string_view, std::int64_t) {};
    EXPECT_THROW(forTextLines(testing::TempDir() + "no_such_file.txt", nothing), BadInput);
    EXPECT_THROW(forTextLines(testing::TempDir(), nothing), BadInput);
    EXPECT_THROW(forTextLines("/dev/zero", nothing), BadInput);
}

TEST(TextLines, ExceptionsOfTheCallerArePassedOn) {
    EXPECT_THROW(
        forTextLines(textLinesFile("a\n"), [](std::string_view, std::int64_t) { throw std::out_of_range("mine"); }),
        std::out_of_range);
}

} // namespace
} // namespace vitrine::base
