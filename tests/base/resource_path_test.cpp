// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/resource_path.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "base/error.h"

namespace vitrine::base {
namespace {

namespace fs = std::filesystem;

TEST(ResourcePath, FindsTheSourceTree) {
    EXPECT_EQ(resourcePath("CMakeLists.txt"), VITRINE_SOURCE_RESOURCES "/CMakeLists.txt");
}

TEST(ResourcePath, TheEnvironmentWins) {
    const fs::path folder = fs::temp_directory_path() / "vitrine-resource-path-test";
    fs::create_directories(folder);
    std::ofstream(folder / "CMakeLists.txt") << "mine\n";
    ASSERT_EQ(setenv("VITRINE_RESOURCES", folder.c_str(), 1), 0);
    const std::string found = resourcePath("CMakeLists.txt");
    fs::remove(folder / "CMakeLists.txt");
    const std::string fallback = resourcePath("CMakeLists.txt");
    unsetenv("VITRINE_RESOURCES");
    fs::remove_all(folder);
    EXPECT_EQ(found, (folder / "CMakeLists.txt").string());
    EXPECT_EQ(fallback, VITRINE_SOURCE_RESOURCES "/CMakeLists.txt");
}

TEST(ResourcePath, RefusesPathsOutside) {
    EXPECT_THROW(resourcePath("../CMakeLists.txt"), BadInput);
    EXPECT_THROW(resourcePath("synthetic/../../CMakeLists.txt"), BadInput);
    EXPECT_THROW(resourcePath("/etc/passwd"), BadInput);
    EXPECT_THROW(resourcePath(""), BadInput);
    EXPECT_THROW(resourcePath("no-such-file.json"), BadInput);
}

} // namespace
} // namespace vitrine::base
