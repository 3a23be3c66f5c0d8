// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/text_lines.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>

#include "base/error.h"

namespace vitrine::base {
namespace {

/// The next line without its end; false after the last. A device or a damaged file may have no line end at all.
bool nextLine(std::istream& file, std::string& line, const std::string& path) {
    constexpr std::size_t kMostBytes = std::size_t{64} << 20;
    line.clear();
    std::streambuf& bytes = *file.rdbuf();
    constexpr int kEnd = std::char_traits<char>::eof();
    int next = bytes.sbumpc();
    const bool any = next != kEnd;
    for (; next != kEnd && next != '\n'; next = bytes.sbumpc()) {
        if (line.size() >= kMostBytes) {
            throw BadInput(
                fmt::format("{}: a line has more than {} bytes; write one row on each line", path, kMostBytes));
        }
        line += static_cast<char>(next);
    }
    return any;
}

std::ifstream openText(const std::string& path) {
    std::error_code ignored;
    std::ifstream file(path, std::ios::binary);
    if (!file || std::filesystem::is_directory(path, ignored)) {
        throw BadInput(path + ": cannot be read; give a file of rows");
    }
    return file;
}

} // namespace

void forTextLines(const std::string& path,
                  const std::function<void(std::string_view line, std::int64_t number)>& take) {
    forTextLines(path, [&take](const TextLine& line) { take(line.text, line.number); });
}

void forTextLines(const std::string& path, const std::function<void(const TextLine& line)>& take) {
    std::ifstream file = openText(path);
    std::string line;
    std::uint64_t offset = 0;
    for (std::int64_t number = 1; nextLine(file, line, path); ++number) {
        if (line.find_first_not_of(" \t\r") != std::string::npos) {
            take({line, number, offset});
        }
        offset += line.size() + 1;
    }
}

std::string readTextLine(const std::string& path, std::uint64_t offset) {
    std::ifstream file = openText(path);
    file.seekg(static_cast<std::streamoff>(offset));
    std::string line;
    if (file) {
        nextLine(file, line, path);
    }
    return line;
}

} // namespace vitrine::base
