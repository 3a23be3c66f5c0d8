// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <unordered_set>
#include <utility>

#include "tests/tools/doc_rules.h"
#include "tests/tools/tree.h"

namespace vitrine::tools {
namespace {

bool isGuide(const TreeFile& file) {
    return file.path == "README.md" || file.path == "ARCHITECTURE.md" || file.path == "CONTRIBUTING.md";
}

/// Every word (letters, digits, '_' and '-') of all files that are no guides.
std::unordered_set<std::string> wordsOfTree() {
    std::unordered_set<std::string> words;
    for (const TreeFile& file : treeFiles()) {
        if (isGuide(file)) {
            continue;
        }
        for (const bool withHyphens : {false, true}) {
            std::string word;
            for (const char c : file.text) {
                if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (withHyphens && c == '-')) {
                    word.push_back(c);
                } else if (!word.empty()) {
                    words.insert(std::exchange(word, {}));
                }
            }
        }
    }
    return words;
}

TEST(Docs, WhatTheGuidesNameExists) {
    const std::unordered_set<std::string> words = wordsOfTree();
    // Guides also name a folder or file by the end of its path: "ops/", "rms_norm.h".
    const auto pathExists = [](const std::string& path) {
        return existsInTree(path) || std::ranges::any_of(treeFiles(), [&](const TreeFile& file) {
                   return path.ends_with('/') ? file.path.find('/' + path) != std::string::npos
                                              : file.path.ends_with('/' + path);
               });
    };
    const DocTree tree{pathExists,
                       [&](const std::string& word) { return words.contains(word) || words.contains("--" + word); }};
    for (const TreeFile& file : treeFiles()) {
        if (!isGuide(file)) {
            continue;
        }
        for (const CodeSpan& span : codeSpans(file.text)) {
            const std::string problem = spanProblem(span.text, tree);
            EXPECT_TRUE(problem.empty()) << file.path << ':' << span.line << ": `" << span.text << "`: " << problem;
        }
    }
}

TEST(Docs, TheContributingGuideIsShort) {
    for (const TreeFile& file : treeFiles()) {
        if (file.path == "CONTRIBUTING.md") {
            EXPECT_LE(splitLines(file.text).size(), 40U);
        }
    }
}

TEST(Docs, FindsCodeSpansOutsideFences) {
    const std::vector<CodeSpan> spans = codeSpans("a `b` c `d e`\n```sh\n`no`\n```\n`f`\nunclosed ` here\n");
    ASSERT_EQ(spans.size(), 3U);
    EXPECT_EQ(spans[0].text, "b");
    EXPECT_EQ(spans[1].text, "d e");
    EXPECT_EQ(spans[2].text, "f");
    EXPECT_EQ(spans[2].line, 5U);
}

TEST(Docs, JudgesSpans) {
    const DocTree tree{[](const std::string& path) { return path == "base/error.h" || path == "base/"; },
                       [](const std::string& word) { return word == "TraceSink" || word == "vram_budget"; }};
    for (const char* good : {"base/error.h", "base/", "TraceSink", "base::TraceSink", "TraceSink()", "--vram-budget",
                             "build/full/app/vitrine", "ninja -C build/full", "a / b", "*.cpp", ".vitrine", "3.0"}) {
        EXPECT_EQ(spanProblem(good, tree), "") << good;
    }
    for (const char* bad :
         {"base/errors.h", "./tools/gone", "error.h", "TraceSinks", "base::Sink", "gone()", "--gone"}) {
        EXPECT_NE(spanProblem(bad, tree), "") << bad;
    }
}

} // namespace
} // namespace vitrine::tools
