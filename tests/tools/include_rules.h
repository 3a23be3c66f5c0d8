// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The include matrix of the design: which folder may include which, and which third-party headers it may use.
//
// Includes go down the ranks, never up or sideways:
//   base < kernels < engine | profiler | sessions < ui/models < ui/widgets < ui/views < app/runner < app/serve <
//   app/cli | app/gui
// Within most of these folders the inner folders have an order too: each uses only those before it. Every source lies
// in a folder that the tables name. kernels/device includes only itself (it is compiled at run time).

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::tools {

/// What is wrong with the place of one source, "PATH: why", and with its includes, "PATH:LINE: why". `exists` says
/// whether a path is in the tree. Files outside the ranked folders (tests, tools) may include everything that exists.
std::vector<std::string> includeProblems(std::string_view path, std::string_view text,
                                         const std::function<bool(const std::string&)>& exists);

} // namespace vitrine::tools
