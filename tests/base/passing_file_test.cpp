// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/passing_file.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace vitrine::base {
namespace {

namespace fs = std::filesystem;

TEST(PassingFile, NamesDifferAndStandBesideThePlace) {
    const std::string first = passingName("/tmp/a.csv"), second = passingName("/tmp/a.csv");
    EXPECT_TRUE(first.starts_with("/tmp/a.csv.new-" + std::to_string(::getpid()) + "-"));
    EXPECT_NE(first, second);
}

TEST(PassingFile, RemovesOldFilesOfProcessesThatAreGone) {
    const fs::path folder = fs::temp_directory_path() / ("passing_file_" + std::to_string(::getpid()));
    fs::create_directories(folder);
    const auto make = [&](const std::string& name, std::chrono::minutes age) {
        std::ofstream(folder / name) << "x";
        fs::last_write_time(folder / name, fs::file_time_type::clock::now() - age);
    };
    make("a.csv", std::chrono::minutes(9));
    make("a.csv.new-2147483647-1", std::chrono::minutes(9));
    make("a.csv.new-2147483647-2", std::chrono::minutes(0));
    make("a.csv.new-" + std::to_string(::getpid()) + "-3", std::chrono::minutes(9));
    make("a.csv.new-words", std::chrono::minutes(9));
    make("b.csv.new-2147483647-1", std::chrono::minutes(9));
    removeAbandonedFiles((folder / "a.csv").string());
    EXPECT_FALSE(fs::exists(folder / "a.csv.new-2147483647-1"));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 5);
    removeAbandonedFiles((folder / "no folder" / "a.csv").string()); // nothing there, nothing thrown
    fs::remove_all(folder);
}

} // namespace
} // namespace vitrine::base
