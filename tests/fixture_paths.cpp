// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "tests/fixture_paths.h"

#include <cstdlib>
#include <filesystem>

namespace vitrine::test {

namespace fs = std::filesystem;

std::string fixture(const std::string& relative) {
    if (const char* named = std::getenv("VITRINE_FIXTURES");
        named != nullptr && fs::exists(fs::path(named) / relative)) {
        return (fs::path(named) / relative).string();
    }
    fs::path folder = fs::read_symlink("/proc/self/exe");
    while (folder.has_relative_path()) {
        folder = folder.parent_path();
        if (fs::exists(folder / "tests" / "fixtures" / relative)) {
            return (folder / "tests" / "fixtures" / relative).string();
        }
    }
    return (fs::path(VITRINE_SOURCE_FIXTURES) / relative).string();
}

std::string vitrineProgram() {
    const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / "vitrine";
    return fs::exists(beside) ? beside.string() : VITRINE_BUILT_PROGRAM;
}

} // namespace vitrine::test
