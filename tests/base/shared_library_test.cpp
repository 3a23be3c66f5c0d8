// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/shared_library.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

namespace vitrine::base {
namespace {

TEST(SharedLibrary, OpensByTheSystemsSearch) {
    const std::vector<std::string> names{"libnothing-of-the-kind.so.7", "libm.so.6"};
    const SharedLibrary library = SharedLibrary::find(names);
    ASSERT_TRUE(library.isOpen());
    EXPECT_EQ(library.path(), "libm.so.6");
    EXPECT_NE(library.symbol("cos"), nullptr);
    EXPECT_EQ(library.symbol("no_such_function"), nullptr);
}

TEST(SharedLibrary, SaysWhyAFileDidNotOpen) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("vitrine-library-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "libbroken-vitrine.so.1") << "no library";
    ::setenv("VITRINE_CUDA_HOME", folder.c_str(), 1);
    const SharedLibrary library = SharedLibrary::find(std::vector<std::string>{"libbroken-vitrine.so.1"});
    ::unsetenv("VITRINE_CUDA_HOME");
    EXPECT_FALSE(library.isOpen());
    EXPECT_NE(library.error().find((folder / "libbroken-vitrine.so.1").string()), std::string::npos) << library.error();
    EXPECT_EQ(library.symbol("cos"), nullptr);
    std::filesystem::remove_all(folder);
}

TEST(SharedLibrary, MissingIsNoError) {
    const SharedLibrary library = SharedLibrary::find(std::vector<std::string>{"libnothing-of-the-kind.so.7"});
    EXPECT_FALSE(library.isOpen());
    EXPECT_TRUE(library.path().empty());
    EXPECT_TRUE(library.error().empty());
}

} // namespace
} // namespace vitrine::base
