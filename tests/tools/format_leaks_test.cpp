// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Only kernels and engine/quant know formats of packed weights: a new one touches nothing else.

#include <algorithm>
#include <array>
#include <cctype>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/tools/include_rules.h"
#include "tests/tools/tree.h"

namespace vitrine::tools {
namespace {

bool mayKnowFormats(std::string_view path) {
    return path.starts_with("kernels/") || path.starts_with("engine/quant/") || path.starts_with("tests/") ||
           path.starts_with("resources/kernel-packs/");
}

/// The format that a source names; empty when it names none.
std::string_view formatIn(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr std::array<std::string_view, 4> kWords = {"mxfp4", "e2m1", "\"_blocks\"", "\"_scales\""};
    const auto* const found =
        std::ranges::find_if(kWords, [&](std::string_view word) { return text.find(word) != std::string::npos; });
    return found == kWords.end() ? std::string_view() : *found;
}

TEST(FormatLeaks, OnlyKernelsAndQuantKnowFormats) {
    std::size_t sources = 0;
    for (const TreeFile& file : treeFiles()) {
        if (isSource(file.path) && !mayKnowFormats(file.path)) {
            ++sources;
            EXPECT_EQ(formatIn(file.text), "")
                << file.path << ": ask kernels/formats/weight_formats.h or engine/quant/stored_weight.h";
        }
    }
    EXPECT_GT(sources, 300U) << "the walk found no sources";
}

TEST(FormatLeaks, FormatsAreFound) {
    EXPECT_EQ(formatIn("config.mxfp4 = true;"), "mxfp4");
    EXPECT_EQ(formatIn("\"Keep MXFP4 weights\""), "mxfp4");
    EXPECT_EQ(formatIn("name + \"_scales\""), "\"_scales\"");
    EXPECT_EQ(formatIn("kernels::packedTitles()"), "");
}

} // namespace
} // namespace vitrine::tools
