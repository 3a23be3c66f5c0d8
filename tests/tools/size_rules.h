// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How long functions and classes are. The rules read lines as clang-format writes them: a definition begins at the
// indentation at which its closing brace stands.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::tools {

inline constexpr std::size_t kMaxFunctionLines = 80;
inline constexpr std::size_t kMaxClassLines = 800;

/// A definition: a function, or a class with what stands between its braces.
struct Definition {
    std::string name;  ///< "Class::function", "function" or "Class"
    std::string owner; ///< the class; empty for a free function
    std::size_t line = 0;
    std::size_t lines = 0;
    bool isFunction = false;
};

/// The functions and classes that a source defines. Functions inside a class body count to the class alone.
std::vector<Definition> definitionsOf(std::string_view text);

/// Lines of each class over all files that define parts of it: its own body, and members that stand elsewhere.
void addClassLines(std::string_view text, std::map<std::string, std::size_t>& lines);

} // namespace vitrine::tools
