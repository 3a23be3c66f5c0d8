// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/text_lines.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>

#include "base/error.h"
#include "base/regular_file.h"

namespace vitrine::base {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The next line without its end; false after the last.
bool nextLine(std::istream& file, std::string& line, const std::string& path) {
    line.clear();
    std::streambuf& bytes = *file.rdbuf();
    constexpr int kEnd = std::char_traits<char>::eof();
    int next = bytes.sbumpc();
    const bool any = next != kEnd;
    for (; next != kEnd && next != '\n'; next = bytes.sbumpc()) {
        if (line.size() >= kMostBytesOfALine) {
            throw BadInput(
                fmt::format("{}: a line has more than {} bytes; write one row on each line", path, kMostBytesOfALine));
        }
        line += static_cast<char>(next);
    }
    return any;
}

} // namespace

std::ifstream openTextFile(const std::string& path) {
    regularFileBytes(path);
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw BadInput(
            fmt::format("{}: cannot be read: {}; give a file of rows", path, errno != 0 ? std::strerror(errno) : ""));
    }
    return file;
}

void forTextLines(const std::string& path,
                  const std::function<void(std::string_view line, std::int64_t number)>& take) {
    forTextLines(path, [&take](const TextLine& line) { take(line.text, line.number); });
}

void forTextLines(const std::string& path, const std::function<void(const TextLine& line)>& take) {
    readNaming(path, [&] {
        std::ifstream file = openTextFile(path);
        forLinesFrom(file, {}, path, take);
    });
}

void forLinesFrom(std::istream& file, TextPlace place, const std::string& path,
                  const std::function<void(const TextLine& line)>& take) {
    std::string line;
    for (; nextLine(file, line, path); ++place.line) {
        const std::size_t mark = place.offset == 0 && line.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
        const std::string_view text = std::string_view(line).substr(mark);
        if (text.find_first_not_of(" \t\r") != std::string_view::npos) {
            take({text, place.line, place.offset + mark});
        }
        place.offset += line.size() + 1;
    }
}

void skipBeginning(std::istream& file, TextPlace& place, const std::string& path) {
    std::streambuf& bytes = *file.rdbuf();
    for (std::size_t i = 0; i < kByteOrderMark.size(); ++i) {
        if (bytes.sgetc() != static_cast<unsigned char>(kByteOrderMark[i])) {
            if (i > 0) {
                throw BadInput(path + ": line 1: begins with a part of a byte order mark; save it as UTF-8");
            }
            break;
        }
        bytes.sbumpc();
        ++place.offset;
    }
    for (int next = bytes.sgetc(); next == ' ' || next == '\t' || next == '\r' || next == '\n'; next = bytes.snextc()) {
        place.line += next == '\n' ? 1 : 0;
        ++place.offset;
    }
}

std::string readTextLine(const std::string& path, std::uint64_t offset) {
    std::string line;
    readNaming(path, [&] {
        std::ifstream file = openTextFile(path);
        file.seekg(static_cast<std::streamoff>(offset));
        if (file) {
            nextLine(file, line, path);
        }
    });
    return line;
}

} // namespace vitrine::base
