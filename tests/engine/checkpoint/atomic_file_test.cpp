// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Files that are written whole: links, devices and pipes stay what they are.

#include "engine/checkpoint/atomic_file.h"

#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class AtomicFiles : public ::testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / fmt::format("vitrine-atomic-{}", ::getpid());
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    static std::string contents(const std::string& path) {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    template <class Work> static std::string errorOf(Work work) {
        try {
            work();
        } catch (const base::Error& error) {
            return error.message();
        }
        return "";
    }

    fs::path folder_;
};

TEST_F(AtomicFiles, ALinkStaysAndItsFileIsReplaced) {
    writeTextFile(path("real"), "old");
    fs::create_symlink("real", path("link"));
    writeTextFile(path("link"), "new");
    EXPECT_TRUE(fs::is_symlink(path("link")));
    EXPECT_EQ(contents(path("real")), "new");
}

TEST_F(AtomicFiles, APipeIsWrittenToAndStaysAPipe) {
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    writeTextFile(path("pipe"), "through");
    EXPECT_TRUE(fs::is_fifo(path("pipe")));
    std::string got(7, '?');
    EXPECT_EQ(::read(reader, got.data(), got.size()), 7);
    ::close(reader);
    EXPECT_EQ(got, "through");
}

TEST_F(AtomicFiles, ADeviceThatIsFullIsAnErrorAndStaysADevice) {
    if (!fs::is_character_file("/dev/full")) {
        GTEST_SKIP() << "there is no /dev/full here";
    }
    fs::create_symlink("/dev/full", path("full")); // what goes wrong here must not cost the machine its device
    EXPECT_THAT(errorOf([this] { writeTextFile(path("full"), "x"); }), HasSubstr("full: writing: "));
    EXPECT_TRUE(fs::is_symlink(path("full")));
}

TEST_F(AtomicFiles, WhatCannotBeWrittenFailsBeforeAndLeavesNothing) {
    EXPECT_THAT(errorOf([this] { checkWritable(folder_.string()); }), HasSubstr("is a folder"));
    EXPECT_THAT(errorOf([this] { checkWritable(path("no/such/file")); }), HasSubstr("no/such/file: creating: "));
    writeTextFile(path("there"), "kept");
    checkWritable(path("there"));
    checkWritable(path("new"));
    checkWritable("/dev/null");
    EXPECT_EQ(contents(path("there")), "kept");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(AtomicFiles, NamesOfOneFileAreKnown) {
    writeTextFile(path("real"), "");
    fs::create_symlink("real", path("link"));
    EXPECT_TRUE(isSameFile(path("real"), path("link")));
    EXPECT_TRUE(isSameFile(path("new"), path("./new")));
    EXPECT_FALSE(isSameFile(path("real"), path("new")));
    EXPECT_FALSE(isSameFile("", ""));
    EXPECT_FALSE(isSameFile("/dev/null", "/dev/null"));
}

} // namespace
} // namespace vitrine::engine
