// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "tests/tools/tree.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace vitrine::tools {

namespace {

namespace fs = std::filesystem;

/// Folders that hold no text of ours.
bool isSkippedFolder(const std::string& path) {
    static constexpr std::array<std::string_view, 6> kSkipped = {".git",   "build",          "demo",
                                                                 ".cache", "tests/fixtures", "resources/models"};
    return std::ranges::find(kSkipped, path) != kSkipped.end() || path.find("__pycache__") != std::string::npos;
}

bool isText(const fs::path& path) {
    static constexpr std::array<std::string_view, 11> kEndings = {".h",    ".cpp", ".cuh", ".cmake", ".txt",    ".md",
                                                                  ".json", ".sh",  ".py",  ".in",    ".desktop"};
    const std::string ending = path.extension().string();
    if (std::ranges::find(kEndings, ending) != kEndings.end()) {
        return true;
    }
    // Scripts have no ending; what they start with says it.
    std::ifstream file(path, std::ios::binary);
    std::array<char, 2> start{};
    return file.read(start.data(), 2) && start[0] == '#' && start[1] == '!';
}

std::vector<TreeFile> load() {
    const fs::path root = rootPath();
    std::vector<TreeFile> files;
    for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
        const std::string path = it->path().lexically_relative(root).generic_string();
        if (it->is_directory()) {
            if (isSkippedFolder(path)) {
                it.disable_recursion_pending();
            }
            continue;
        }
        if (!it->is_regular_file() || !isText(it->path())) {
            continue;
        }
        std::ifstream file(it->path(), std::ios::binary);
        files.push_back({path, std::string(std::istreambuf_iterator<char>(file), {})});
    }
    std::ranges::sort(files, {}, &TreeFile::path);
    return files;
}

} // namespace

const std::vector<TreeFile>& treeFiles() {
    static const std::vector<TreeFile> kFiles = load();
    return kFiles;
}

bool existsInTree(const std::string& path) {
    return fs::exists(fs::path(rootPath()) / path);
}

std::string rootPath() {
    return VITRINE_ROOT;
}

bool isHeader(std::string_view path) {
    return path.ends_with(".h") || path.ends_with(".cuh");
}

bool isSource(std::string_view path) {
    return isHeader(path) || path.ends_with(".cpp");
}

std::vector<std::string_view> splitLines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            break;
        }
        text.remove_prefix(end + 1);
    }
    return lines;
}

std::string joined(const std::vector<std::string>& problems) {
    std::string text;
    for (const std::string& problem : problems) {
        text += problem + '\n';
    }
    return text;
}

} // namespace vitrine::tools
