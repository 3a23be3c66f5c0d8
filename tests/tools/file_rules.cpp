// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "tests/tools/file_rules.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "tests/tools/tree.h"

namespace vitrine::tools {

namespace {

constexpr std::array<std::string_view, 2> kLicenceLines = {"SPDX-FileCopyrightText: The Vitrine authors",
                                                           "SPDX-License-Identifier: GPL-3.0-only"};

/// Written in two parts so that this file keeps its own rule.
constexpr std::array<std::string_view, 3> kNotes = {"TO"
                                                    "DO",
                                                    "FIX"
                                                    "ME",
                                                    "XX"
                                                    "X"};

bool isScript(std::string_view text) {
    return text.starts_with("#!");
}

bool isCMake(std::string_view path) {
    return path.ends_with(".cmake") || path.ends_with("CMakeLists.txt");
}

bool isWordCharacter(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool hasWord(std::string_view line, std::string_view word) {
    for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !isWordCharacter(line[at - 1])) && (end == line.size() || !isWordCharacter(line[end]))) {
            return true;
        }
    }
    return false;
}

std::string_view fileName(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

bool isSnakeCase(std::string_view name) {
    return std::ranges::all_of(
        name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; });
}

/// "pragma once" before the first line of code.
bool isGuarded(const std::vector<std::string_view>& lines) {
    for (const std::string_view line : lines) {
        if (!line.empty() && !line.starts_with("//")) {
            return line == "#pragma once";
        }
    }
    return false;
}

} // namespace

std::vector<std::string> fileProblems(std::string_view path, std::string_view text) {
    std::vector<std::string> problems;
    const auto report = [&](std::size_t line, const std::string& why) {
        problems.push_back(std::string(path) + ':' + std::to_string(line) + ": " + why);
    };
    const std::vector<std::string_view> lines = splitLines(text);
    const bool isCode = isSource(path) || isCMake(path) || isScript(text);
    if (isCode) {
        const std::size_t first = isScript(text) ? 1 : 0;
        for (std::size_t i = 0; i < kLicenceLines.size(); ++i) {
            if (lines.size() <= first + i || !lines[first + i].ends_with(kLicenceLines[i])) {
                report(first + i + 1, "this line must say " + std::string(kLicenceLines[i]));
            }
        }
        if (lines.size() > kMaxLines) {
            report(lines.size(), "longer than " + std::to_string(kMaxLines) + " lines; split the file");
        }
        if (!text.empty() && !text.ends_with('\n')) {
            report(lines.size(), "the last line does not end");
        }
    }
    if (isSource(path) && !isSnakeCase(fileName(path))) {
        report(1, "file names are snake_case");
    }
    // A device file with kernels is what the run-time compiler starts from: nobody includes it.
    const bool header = isHeader(path) && text.find("__global__") == std::string_view::npos;
    if (header && !isGuarded(lines)) {
        report(1, "a header starts with #pragma once");
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
        for (const std::string_view note : kNotes) {
            if (isCode && hasWord(lines[i], note)) {
                report(i + 1, "an open note (" + std::string(note) + "); do it or write an issue");
            }
        }
        if (header && lines[i].starts_with("using namespace")) {
            report(i + 1, "no using namespace in headers");
        }
        if (path.ends_with("_test.cpp") && lines[i].find("GTEST_SKIP()") != std::string_view::npos &&
            lines[i].find("GTEST_SKIP() <<") == std::string_view::npos &&
            lines[i].find('"') == std::string_view::npos) {
            report(i + 1, "a skipped test prints its reason");
        }
    }
    return problems;
}

} // namespace vitrine::tools
