// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/regular_file.h"

#include <cerrno>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdexcept>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "base/error.h"
#include "base/json_rows.h"
#include "base/text_lines.h"

namespace vitrine::base {
namespace {

using testing::HasSubstr;

std::string regularFileError(const std::string& path) {
    try {
        regularFileBytes(path);
    } catch (const BadInput& error) {
        return error.message();
    }
    return "none";
}

std::string regularFilePath(const std::string& name) {
    return testing::TempDir() + "regular_file_" + testing::UnitTest::GetInstance()->current_test_info()->name() + name;
}

TEST(RegularFile, OnlyAFileHasBytes) {
    const std::string path = regularFilePath("a");
    std::ofstream(path) << "four";
    EXPECT_EQ(regularFileBytes(path), 4U);
    EXPECT_EQ(regularFileError(path + ".none"), path + ".none: does not exist");
    EXPECT_THAT(regularFileError(path + "/below"), HasSubstr("does not exist"));
    EXPECT_THAT(regularFileError(testing::TempDir()), HasSubstr("is no regular file"));
    EXPECT_THAT(regularFileError("/dev/zero"), HasSubstr("is no regular file"));
    EXPECT_THAT(regularFileError(std::string(5000, 'a')), HasSubstr("cannot be read: File name too long"));
}

TEST(RegularFile, APipeIsRefusedBeforeItIsOpened) {
    const std::string pipe = regularFilePath("pipe");
    ::unlink(pipe.c_str());
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_THAT(regularFileError(pipe), HasSubstr("is no regular file"));
    EXPECT_THROW(forTextLines(pipe, [](std::string_view, std::int64_t) {}), BadInput);
    EXPECT_THROW(forJsonRows(pipe, [](const JsonRow&) {}), BadInput);
    ::unlink(pipe.c_str());
}

TEST(RegularFile, WhatTheDiskRefusesNamesTheFile) {
    try {
        readNaming("rows.jsonl",
                   [] { throw std::ios_base::failure("read error", std::error_code(EIO, std::generic_category())); });
        ADD_FAILURE();
    } catch (const BadInput& error) {
        EXPECT_EQ(error.message(),
                  "rows.jsonl: reading: Input/output error; check the disk, or copy the file to another one");
    }
    EXPECT_THROW(readNaming("rows.jsonl", [] { throw std::out_of_range("mine"); }), std::out_of_range);
    // The memory of this process is a regular file, and there is none at its beginning.
    EXPECT_THROW(forTextLines("/proc/self/mem", [](std::string_view, std::int64_t) {}), BadInput);
    EXPECT_THROW(forJsonRows("/proc/self/mem", [](const JsonRow&) {}), BadInput);
    EXPECT_THROW(readTextLine("/proc/self/mem", 0), BadInput);
}

} // namespace
} // namespace vitrine::base
