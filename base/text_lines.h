// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reads text files line by line.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace vitrine::base {

/// Calls `take(line, number)` for each line that is not blank. Lines are numbered from 1 and are passed without the
/// line end. Throws BadInput for a file that cannot be read and for a line of more than 64 MiB. Exceptions of `take`
/// are passed on.
void forTextLines(const std::string& path, const std::function<void(std::string_view line, std::int64_t number)>& take);

struct TextLine {
    std::string_view text;
    std::int64_t number = 0;  ///< from 1
    std::uint64_t offset = 0; ///< of its first byte in the file
};
/// As above.
void forTextLines(const std::string& path, const std::function<void(const TextLine& line)>& take);

/// The line that begins at a byte of the file, without the line end; empty behind the end. Throws as above.
std::string readTextLine(const std::string& path, std::uint64_t offset);

} // namespace vitrine::base
