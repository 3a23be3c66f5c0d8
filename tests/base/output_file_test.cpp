// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/output_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/png.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::base {
namespace {

using test::TempFolder;
using testing::HasSubstr;

constexpr OutputKind kOurs{"a file of ours", "vitrine test"};

std::string refusal(const std::string& path, const OutputKind& kind) {
    try {
        requireReplaceable(path, kind);
    } catch (const BadInput& error) {
        return error.message();
    }
    return {};
}

std::string sqliteWith(const std::string& application) {
    std::string bytes("SQLite format 3\0", 16);
    bytes.resize(68);
    return bytes + application + std::string(28, '\0');
}

std::string safetensorsWith(const std::string& header) {
    return std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header;
}

TEST(OutputFile, WhatFailsLeavesWhatWasThere) {
    const TempFolder folder;
    const std::string path = folder.file("there");
    writeOutput(path, [](std::ostream& out) { out << "first"; });
    EXPECT_THROW(writeOutput(path,
                             [](std::ostream& out) {
                                 out << "half";
                                 throw Internal("no more");
                             }),
                 Internal);
    EXPECT_THROW(writeOutput(path, [](std::ostream& out) { out.setstate(std::ios::badbit); }), Error);
    std::ifstream in(path);
    std::string text;
    in >> text;
    EXPECT_EQ(text, "first");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()), {}), 1);
}

TEST(OutputFile, ReplacesItsOwnKindAlone) {
    const TempFolder folder;
    const std::string path = folder.file("there");
    struct Case {
        std::string contents;
        const OutputKind* own;
    };
    const Case cases[] = {
        {encodePng(1, 1, std::vector<std::uint8_t>(3)), &kPictureOutput},
        {"step,loss\n1,2\n", &kTableOutput},
        {R"({"otherData":{"program":"Vitrine"},"traceEvents":[)", &kChromeOutput},
        {sqliteWith("VTTB"), &kTablesOutput},
        {safetensorsWith(R"({"__metadata__":{"made_by":"vitrine test"},"a":{}})"), &kOurs},
        // Nobody's: pictures and traces of other programs too
        {"\x89PNG\r\n\x1a\n....", nullptr},
        {R"({"otherData":{},"traceEvents":[)", nullptr},
        {sqliteWith("VTRN"), nullptr},
        {sqliteWith(std::string(4, '\0')), nullptr},
        {safetensorsWith(R"({"__metadata__":{"format":"pt"},"a":{}})"), nullptr},
        {safetensorsWith(R"({"made_by":"vitrine test"})"), nullptr},
        {"A note, and more\n", nullptr},
        {"{}", nullptr},
    };
    for (const Case& there : cases) {
        test::writeAll(path, there.contents);
        for (const OutputKind* kind : {&kPictureOutput, &kTableOutput, &kChromeOutput, &kTablesOutput, &kOurs}) {
            EXPECT_EQ(refusal(path, *kind).empty(), kind == there.own) << there.contents << " as " << kind->name;
        }
        EXPECT_EQ(test::readAll(path), there.contents);
    }
}

TEST(OutputFile, SaysWhatIsThere) {
    const TempFolder folder;
    test::writeAll(folder.file("runs"), sqliteWith("VTRN"));
    std::filesystem::create_symlink("runs", folder.file("link"));
    EXPECT_THAT(refusal(folder.file("link"), kChromeOutput), HasSubstr("link: is a session with saved runs"));
    test::writeAll(folder.file("note"), "x");
    EXPECT_THAT(refusal(folder.file("note"), kOurs), HasSubstr("is not a file of ours that Vitrine wrote"));
}

TEST(OutputFile, WhatHoldsNothingMayBeReplaced) {
    const TempFolder folder;
    test::writeAll(folder.file("empty"), "");
    for (const std::string& path : {folder.file("empty"), folder.file("new"), std::string("/dev/null")}) {
        EXPECT_EQ(refusal(path, kPictureOutput), "");
    }
}

TEST(OutputFile, AFullDiskIsNoWrongInput) {
    for (const int error : {ENOSPC, EDQUOT, EFBIG, EIO}) {
        EXPECT_THROW(failWriting("file", error), Internal);
    }
    EXPECT_THROW(failWriting("file", EACCES), BadInput);
}

} // namespace
} // namespace vitrine::base
