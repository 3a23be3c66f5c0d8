// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The files of this source tree, for the tests of the tree itself.

#include <string>
#include <string_view>
#include <vector>

namespace vitrine::tools {

struct TreeFile {
    std::string path; ///< from the root of the tree, with '/'
    std::string text;
};

/// Every text file of ours: sources, CMake files, scripts, Markdown, JSON outside fixtures and models. Sorted by path.
const std::vector<TreeFile>& treeFiles();

/// Whether a file or folder exists below the root.
bool existsInTree(const std::string& path);

std::string rootPath();

/// C++ and device sources.
bool isSource(std::string_view path);
bool isHeader(std::string_view path);

std::vector<std::string_view> splitLines(std::string_view text);

/// All problems, one a line, for a failure message.
std::string joined(const std::vector<std::string>& problems);

} // namespace vitrine::tools
