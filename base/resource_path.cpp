// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/resource_path.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/error.h"

namespace vitrine::base {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> resourceRoots() {
    std::vector<fs::path> roots;
    if (const char* named = std::getenv("VITRINE_RESOURCES"); named != nullptr && *named != '\0') {
        roots.emplace_back(named);
    }
    std::error_code error;
    const fs::path executable = fs::read_symlink("/proc/self/exe", error);
    if (!error) {
        roots.push_back(executable.parent_path().parent_path() / "share" / "vitrine");
    }
    roots.emplace_back(VITRINE_SOURCE_RESOURCES);
    return roots;
}

} // namespace

std::string resourcePath(std::string_view relative) {
    const fs::path wanted(relative);
    bool outside = wanted.empty() || wanted.is_absolute();
    for (const fs::path& part : wanted) {
        outside = outside || part == "..";
    }
    if (outside) {
        throw BadInput("resource \"" + std::string(relative) + "\": not a path inside the program's resources");
    }
    std::string searched;
    for (const fs::path& root : resourceRoots()) {
        std::error_code error;
        if (fs::exists(root / wanted, error)) {
            return (root / wanted).string();
        }
        searched += (searched.empty() ? "" : ", ") + root.string();
    }
    throw BadInput("resource \"" + std::string(relative) + "\": found in none of " + searched +
                   "; set VITRINE_RESOURCES to the folder that has it");
}

} // namespace vitrine::base
