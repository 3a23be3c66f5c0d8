// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cstdint>
#include <filesystem>
#include <gtest/gtest.h>

#include "tests/tools/file_rules.h"
#include "tests/tools/tree.h"

namespace vitrine::tools {
namespace {

constexpr std::string_view kLicence = "// SPDX-FileCopyrightText: The Vitrine authors\n"
                                      "// SPDX-License-Identifier: GPL-3.0-only\n";

bool isRefused(std::string_view path, const std::string& text) {
    return !fileProblems(path, text).empty();
}

TEST(Budget, HoldsInTheWholeTree) {
    for (const TreeFile& file : treeFiles()) {
        const std::vector<std::string> problems = fileProblems(file.path, file.text);
        EXPECT_TRUE(problems.empty()) << joined(problems);
    }
}

TEST(Budget, FixturesStayUnder25Megabytes) {
    std::uintmax_t total = 0;
    const std::filesystem::path folder = std::filesystem::path(rootPath()) / "tests/fixtures";
    if (std::filesystem::exists(folder)) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
            total += entry.is_regular_file() ? entry.file_size() : 0;
        }
    }
    EXPECT_LE(total, std::uintmax_t{25} << 20);
}

TEST(Budget, LicenceLinesComeFirst) {
    const std::string licence(kLicence);
    EXPECT_FALSE(isRefused("base/x.cpp", licence + "int x;\n"));
    EXPECT_TRUE(isRefused("base/x.cpp", "int x;\n"));
    EXPECT_TRUE(isRefused("base/x.cpp", "\n" + licence));
    EXPECT_TRUE(isRefused("base/x.cpp", ""));
    EXPECT_TRUE(isRefused("base/CMakeLists.txt", "project(x)\n"));
    EXPECT_FALSE(isRefused("tools/x", "#!/usr/bin/env bash\n# SPDX-FileCopyrightText: The Vitrine authors\n"
                                      "# SPDX-License-Identifier: GPL-3.0-only\n"));
    EXPECT_TRUE(isRefused("tools/x", "#!/usr/bin/env bash\necho\n"));
    EXPECT_FALSE(isRefused("README.md", "# Vitrine\n"));
}

TEST(Budget, FilesAreShort) {
    const std::string licence(kLicence);
    std::string lines;
    for (std::size_t i = 2; i < kMaxLines; ++i) {
        lines += "int x;\n";
    }
    EXPECT_FALSE(isRefused("base/x.cpp", licence + lines));
    EXPECT_TRUE(isRefused("base/x.cpp", licence + lines + "int y;\n"));
    EXPECT_TRUE(isRefused("base/x.cpp", licence + "int x;"));
}

TEST(Budget, HeadersAreGuardedAndOpenNoNamespace) {
    const std::string licence(kLicence);
    EXPECT_FALSE(isRefused("base/x.h", licence + "#pragma once\n"));
    EXPECT_TRUE(isRefused("base/x.h", licence + "int x;\n#pragma once\n"));
    EXPECT_TRUE(isRefused("base/x.h", licence));
    EXPECT_TRUE(isRefused("base/x.h", licence + "#pragma once\nusing namespace std;\n"));
    EXPECT_TRUE(isRefused("base/CamelCase.h", licence + "#pragma once\n"));
    EXPECT_TRUE(isRefused("kernels/device/x.cuh", licence));
    EXPECT_FALSE(
        isRefused("kernels/device/x.cuh", licence + "using namespace vt;\nextern \"C\" __global__ void x() {}\n"));
}

TEST(Budget, NoOpenNotesAndNoSilentSkips) {
    const std::string licence(kLicence);
    EXPECT_TRUE(isRefused("base/x.cpp", licence + "// TO"
                                                  "DO: later\n"));
    EXPECT_TRUE(isRefused("base/x.cpp", licence + "// FIX"
                                                  "ME\n"));
    EXPECT_FALSE(isRefused("base/x.cpp", licence + "int METHO"
                                                   "DOLOGY;\n"));
    EXPECT_TRUE(isRefused("tests/base/x_test.cpp", licence + "GTEST_SKIP();\n"));
    EXPECT_FALSE(isRefused("tests/base/x_test.cpp", licence + "GTEST_SKIP() << \"no display\";\n"));
}

} // namespace
} // namespace vitrine::tools
