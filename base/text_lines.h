// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reads text files line by line. A byte order mark at the beginning of a file is no part of its first line.

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace vitrine::base {

/// Calls `take(line, number)` for each line that is not blank. Lines are numbered from 1 and are passed without the
/// line end. Throws BadInput for what is no regular file, for a file that cannot be read and for a line of more than
/// 64 MiB. Exceptions of `take` are passed on.
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

/// For readers of other kinds of rows: the file, opened before its first byte. Throws as above.
std::ifstream openTextFile(const std::string& path);
/// A place in a file that is read from its beginning to its end.
struct TextPlace {
    std::int64_t line = 1;
    std::uint64_t offset = 0;
};
/// Goes behind a byte order mark and white space. Throws BadInput where only a part of the mark stands there.
void skipBeginning(std::istream& file, TextPlace& place, const std::string& path);
/// The lines from `place` on, which need not be the beginning of a line.
void forLinesFrom(std::istream& file, TextPlace place, const std::string& path,
                  const std::function<void(const TextLine& line)>& take);
/// A line or another row that is larger is refused: a device or a damaged file may have no end.
inline constexpr std::size_t kMostBytesOfALine = std::size_t{64} << 20;

} // namespace vitrine::base
