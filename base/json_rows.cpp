// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/json_rows.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <system_error>

#include "base/error.h"
#include "base/regular_file.h"
#include "base/text_lines.h"

namespace vitrine::base {
namespace {

constexpr int kEndOfFile = std::char_traits<char>::eof();

/// Reads the elements of an array. Only strings and brackets are looked at: the parser of a row checks the rest.
class ArrayReader {
public:
    /// `place`: of the next byte of `file`.
    ArrayReader(std::istream& file, TextPlace place, const std::string& path)
        : bytes_(*file.rdbuf()), place_(place), path_(path) {}

    /// Behind the "[".
    void begin() { step(); }

    /// The next element; false behind the last one.
    bool next(std::string& text) {
        skipSpace();
        if (row_ == 0 && bytes_.sgetc() == ']') {
            return finish();
        }
        if (row_ > 0) {
            if (bytes_.sgetc() == ']') {
                return finish();
            }
            step(); // the comma, at which value() has stopped
            skipSpace();
        }
        ++row_;
        text = value();
        if (text.empty()) {
            fail("there is no value; remove the comma before or behind it");
        }
        return true;
    }

    /// One element, up to the comma or bracket behind it.
    std::string value() {
        start_ = place_;
        std::string text;
        std::size_t depth = 0, end = 0; ///< `end`: without the white space behind the value
        for (int next = bytes_.sgetc(); depth > 0 || (next != ',' && next != ']'); next = bytes_.sgetc()) {
            if (next == kEndOfFile) {
                fail("the file ends before the array does; it may have been cut off");
            }
            if (text.size() >= kMostBytesOfALine) {
                fail(fmt::format("has more than {} bytes; split it", kMostBytesOfALine));
            }
            text += static_cast<char>(step());
            if (next == '"') {
                readString(text);
            } else if (next == '{' || next == '[') {
                ++depth;
            } else if ((next == '}' || next == ']') && depth > 0) {
                --depth;
            }
            end = isSpace(next) ? end : text.size();
        }
        text.resize(end);
        return text;
    }

    std::int64_t row() const { return row_; }
    const TextPlace& start() const { return start_; } ///< of the last element

private:
    static bool isSpace(int byte) { return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n'; }

    int step() {
        const int byte = bytes_.sbumpc();
        place_.line += byte == '\n' ? 1 : 0;
        place_.offset += byte == kEndOfFile ? 0 : 1;
        return byte;
    }

    void skipSpace() {
        while (isSpace(bytes_.sgetc())) {
            step();
        }
    }

    /// The rest of a string, behind its first quote.
    void readString(std::string& text) {
        for (int next = bytes_.sgetc(); text.size() < kMostBytesOfALine; next = bytes_.sgetc()) {
            // Without this, a quote that is missing would turn all that follows inside out.
            if (next == '\n' || next == kEndOfFile) {
                fail(fmt::format("a string does not end in line {}; close it with a quote", place_.line));
            }
            text += static_cast<char>(step());
            if (next == '"') {
                return;
            }
            if (next == '\\' && bytes_.sgetc() != '\n' && bytes_.sgetc() != kEndOfFile) {
                text += static_cast<char>(step());
            }
        }
    }

    /// Nothing may stand behind the array.
    bool finish() {
        step();
        skipSpace();
        if (bytes_.sgetc() != kEndOfFile) {
            throw BadInput(fmt::format("{}: line {}: more text stands behind the array of rows; write one array, or "
                                       "one object on each line",
                                       path_, place_.line));
        }
        return false;
    }

    [[noreturn]] void fail(const std::string& what) const {
        throw BadInput(
            fmt::format("{}: {}line {}: {}", path_, row_ > 0 ? fmt::format("row {}: ", row_) : "", start_.line, what));
    }

    std::streambuf& bytes_;
    TextPlace place_;
    TextPlace start_;
    const std::string& path_;
    std::int64_t row_ = 0;
};

} // namespace

void forJsonRows(const std::string& path, const std::function<void(const JsonRow& row)>& take) {
    readNaming(path, [&] {
        std::ifstream file = openTextFile(path);
        TextPlace place;
        skipBeginning(file, place, path);
        if (file.rdbuf()->sgetc() != '[') {
            forLinesFrom(file, place, path, [&take](const TextLine& line) {
                take({line.text, line.number, line.number, line.offset, false});
            });
            return;
        }
        ArrayReader reader(file, place, path);
        reader.begin();
        for (std::string text; reader.next(text);) {
            take({text, reader.row(), reader.start().line, reader.start().offset, true});
        }
    });
}

bool isJsonArrayFile(const std::string& path) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) {
        return false;
    }
    bool array = false;
    readNaming(path, [&] {
        std::ifstream file = openTextFile(path);
        TextPlace place;
        skipBeginning(file, place, path);
        array = file.rdbuf()->sgetc() == '[';
    });
    return array;
}

std::string readJsonRow(const std::string& path, std::uint64_t offset) {
    if (!isJsonArrayFile(path)) {
        return readTextLine(path, offset);
    }
    std::string row;
    readNaming(path, [&] {
        std::ifstream file = openTextFile(path);
        file.seekg(static_cast<std::streamoff>(offset));
        if (file && file.peek() != kEndOfFile) {
            row = ArrayReader(file, {}, path).value();
        }
    });
    return row;
}

} // namespace vitrine::base
