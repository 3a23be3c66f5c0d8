// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Files of rows that are JSON values: JSON Lines, or one array of rows. An array is never in memory as a whole.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace vitrine::base {

struct JsonRow {
    std::string_view text;    ///< not parsed: it may be no JSON
    std::int64_t number = 0;  ///< from 1: the line, or the place in the array
    std::int64_t line = 0;    ///< of the file, in which it begins
    std::uint64_t offset = 0; ///< of its first byte in the file
    bool inArray = false;     ///< the file is one array
};

/// Calls `take` for each row: the elements of an array if the file begins with "[", else its lines that are not blank.
/// Throws BadInput "FILE: what" for a file that cannot be read, a row of more than 64 MiB, and an array that has no end
/// or whose rows cannot be told apart. Exceptions of `take` are passed on.
void forJsonRows(const std::string& path, const std::function<void(const JsonRow& row)>& take);

/// Whether the file begins with "[". False for what is no regular file: it might be gone when it was read.
bool isJsonArrayFile(const std::string& path);

/// The text of the row that begins at a byte of the file; empty behind the end. Throws as above.
std::string readJsonRow(const std::string& path, std::uint64_t offset);

} // namespace vitrine::base
