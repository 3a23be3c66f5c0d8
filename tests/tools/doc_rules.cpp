// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "tests/tools/doc_rules.h"

#include <regex>

#include "tests/tools/tree.h"

namespace vitrine::tools {

std::vector<CodeSpan> codeSpans(std::string_view markdown) {
    std::vector<CodeSpan> spans;
    bool isFenced = false;
    std::size_t lineNumber = 0;
    for (const std::string_view line : splitLines(markdown)) {
        ++lineNumber;
        if (line.substr(0, line.find_last_of('`') + 1).ends_with("```") || line.starts_with("```")) {
            isFenced = !isFenced;
            continue;
        }
        if (isFenced) {
            continue;
        }
        for (std::size_t open = line.find('`'); open != std::string_view::npos;) {
            const std::size_t close = line.find('`', open + 1);
            if (close == std::string_view::npos) {
                break;
            }
            spans.push_back({lineNumber, std::string(line.substr(open + 1, close - open - 1))});
            open = line.find('`', close + 1);
        }
    }
    return spans;
}

std::string spanProblem(const std::string& span, const DocTree& tree) {
    // Commands, shapes, patterns and placeholders have characters that no path or name has.
    static const std::regex kPath(R"((\./)?[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*/?)");
    static const std::regex kName(R"([A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)*(\(\))?)");
    static const std::regex kOption(R"(--[a-z][a-z0-9-]*)");
    static const std::regex kFile(R"([A-Za-z0-9_-]+\.(h|cpp|cuh|md|cmake))");
    if (std::regex_match(span, kOption)) {
        std::string key = span.substr(2);
        for (char& c : key) {
            c = c == '-' ? '_' : c;
        }
        return tree.wordExists(key) || tree.wordExists(span.substr(2)) ? "" : "no source knows this option";
    }
    if (std::regex_match(span, kName)) {
        std::string name = span.substr(0, span.find('('));
        name = name.substr(name.rfind(':') + 1);
        return tree.wordExists(name) || tree.pathExists(name) ? "" : "no source has this name";
    }
    if (std::regex_match(span, kPath)) {
        const std::string path = span.starts_with("./") ? span.substr(2) : span;
        // What a build or a run makes is not in the tree.
        if (path.starts_with("build/") || path.starts_with("demo/") || path.starts_with("..")) {
            return {};
        }
        const bool isPath = path.find('/') != std::string::npos || std::regex_match(path, kFile);
        return !isPath || tree.pathExists(path) ? "" : "there is no such path in the tree";
    }
    return {};
}

} // namespace vitrine::tools
