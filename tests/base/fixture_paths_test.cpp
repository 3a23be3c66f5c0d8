// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "tests/fixture_paths.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

#include "tests/sessions/temp_folder.h"

namespace vitrine::test {
namespace {

namespace fs = std::filesystem;

TEST(FixturePaths, TheEnvironmentWinsForWhatItHas) {
    const std::string inTree = fixture("llama");
    EXPECT_TRUE(fs::exists(fs::path(inTree) / "config.json"));
    const TempFolder folder;
    fs::create_directories(folder.file("llama"));
    ASSERT_EQ(setenv("VITRINE_FIXTURES", folder.path().c_str(), 1), 0);
    const std::string named = fixture("llama");
    const std::string notThere = fixture("mistral");
    unsetenv("VITRINE_FIXTURES");
    EXPECT_TRUE(fs::equivalent(named, folder.file("llama")));
    EXPECT_TRUE(fs::equivalent(fs::path(notThere).parent_path(), fs::path(inTree).parent_path()));
    EXPECT_FALSE(fixture("no-such-fixture").empty());
}

} // namespace
} // namespace vitrine::test
