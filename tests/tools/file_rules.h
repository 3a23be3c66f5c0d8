// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What every file of the tree must keep: size, licence lines, guards, no notes to oneself, skips with a reason.

#include <string>
#include <string_view>
#include <vector>

namespace vitrine::tools {

inline constexpr std::size_t kMaxLines = 800;

/// What is wrong with one file of ours, "PATH:LINE: why".
std::vector<std::string> fileProblems(std::string_view path, std::string_view text);

} // namespace vitrine::tools
