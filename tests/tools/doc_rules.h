// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What guides promise must exist: paths, identifiers and options in the code spans of a Markdown page.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::tools {

/// The `code spans` outside fenced blocks, with their line numbers.
struct CodeSpan {
    std::size_t line = 0;
    std::string text;
};
std::vector<CodeSpan> codeSpans(std::string_view markdown);

/// The tree as the check sees it.
struct DocTree {
    std::function<bool(const std::string&)> pathExists;
    std::function<bool(const std::string&)> wordExists; ///< somewhere in the sources
};

/// Why the span is wrong; empty when it is right or nothing to check (commands, numbers, file endings, patterns).
std::string spanProblem(const std::string& span, const DocTree& tree);

} // namespace vitrine::tools
