// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Only the files below know formats of packed weights: a new one touches nothing else.

#include <algorithm>
#include <array>
#include <cctype>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <string_view>

#include "tests/tools/include_rules.h"
#include "tests/tools/tree.h"

namespace vitrine::tools {
namespace {

/// What each format has a part in: these a new format touches, as ARCHITECTURE.md counts them. An entry is how a path
/// starts.
constexpr std::array<std::string_view, 5> kOfEveryFormat = {
    "kernels/core/weight_view.",          // its value and its name for kernels
    "kernels/formats/",                   // its row, its elements as floats
    "kernels/device/abi/weight_format.h", // its number on a GPU
    "kernels/device/formats/",            // its elements as floats on a GPU
    "engine/quant/",                      // its tensors in a checkpoint
};

/// What is written for one format, to be fast or because only that format is packed so. A new format touches none of
/// it before it has fast kernels of its own.
constexpr std::array<std::string_view, 18> kOfOneFormat = {
    // Types of elements that files and sessions know by a number.
    "kernels/core/dtype.",
    // Fast products of the CPU.
    "kernels/ops/linear/dot_tile.h",
    "kernels/ops/linear/gemv_",
    // Packed weights with an adapter in them, and what a kernel over packed weights is given.
    "kernels/ops/linear/weights",
    // Floats to packed weights while a model trains, for the formats that training packs.
    "kernels/ops/linear/pack_weight",
    "kernels/device/abi/pack_weight.h",
    "kernels/device/linear/pack_",
    // Experts: which kernels a weight may go to.
    "kernels/ops/experts/expert_tiles",
    "kernels/ops/fused/expert_decode_cuda.cpp",
    // Device code.
    "kernels/device/abi/expert_gemm.h",
    "kernels/device/abi/mxfp4_gemv.h",
    "kernels/device/experts/expert_ring.cuh",
    "kernels/device/experts/expert_rows.cuh",
    "kernels/device/experts/expert_stream.cuh",
    "kernels/device/experts/expert_weights.cuh",
    "kernels/device/experts/mxfp4_",
    "kernels/device/linear/dequantize_",
    "resources/kernel-packs/",
};

bool startsWithOneOf(std::string_view path, std::span<const std::string_view> starts) {
    return std::ranges::any_of(starts, [&](std::string_view start) { return path.starts_with(start); });
}

bool mayKnowFormats(std::string_view path) {
    return startsWithOneOf(path, kOfEveryFormat) || startsWithOneOf(path, kOfOneFormat) || path.starts_with("tests/");
}

/// The format that a source names; empty when it names none.
std::string_view formatIn(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr std::array<std::string_view, 11> kWords = {"mxfp4", "nf4",  "e2m1", "gptq",        "q4_k",       "q5_k",
                                                         "q6_k",  "q4_1", "q5_1", "\"_blocks\"", "\"_scales\""};
    const auto* const found =
        std::ranges::find_if(kWords, [&](std::string_view word) { return text.find(word) != std::string::npos; });
    return found == kWords.end() ? std::string_view() : *found;
}

TEST(FormatLeaks, OnlyTheListedFilesKnowFormats) {
    std::size_t sources = 0;
    for (const TreeFile& file : treeFiles()) {
        if (isSource(file.path) && !mayKnowFormats(file.path)) {
            ++sources;
            EXPECT_EQ(formatIn(file.text), "")
                << file.path << ": ask kernels/formats/weight_formats.h or engine/quant/storage_scheme.h";
        }
    }
    EXPECT_GT(sources, 300U) << "the walk found no sources";
}

TEST(FormatLeaks, TheListNamesNothingThatKnowsNone) {
    const auto knows = [](std::string_view start) {
        return std::ranges::any_of(treeFiles(), [&](const TreeFile& file) {
            return isSource(file.path) && file.path.starts_with(start) && !formatIn(file.text).empty();
        });
    };
    for (const std::string_view start : kOfEveryFormat) {
        EXPECT_TRUE(knows(start)) << start << " names no format: take it from the list";
    }
    for (const std::string_view start : kOfOneFormat) {
        EXPECT_TRUE(knows(start)) << start << " names no format: take it from the list";
    }
}

TEST(FormatLeaks, TheListLeavesTheRestOfItsFoldersOut) {
    EXPECT_TRUE(mayKnowFormats("kernels/formats/integer_format.cpp"));
    EXPECT_FALSE(mayKnowFormats("kernels/ops/linear/weight_check.cpp"));
    EXPECT_TRUE(mayKnowFormats("engine/quant/storage_scheme.cpp"));
    EXPECT_FALSE(mayKnowFormats("kernels/ops/linear/matmul.cpp"));
    EXPECT_FALSE(mayKnowFormats("kernels/ops/rowwise/rms_norm.cpp"));
    EXPECT_FALSE(mayKnowFormats("kernels/context/context.cpp"));
    EXPECT_FALSE(mayKnowFormats("engine/model/weights.cpp"));
}

TEST(FormatLeaks, FormatsAreFound) {
    EXPECT_EQ(formatIn("config.mxfp4 = true;"), "mxfp4");
    EXPECT_EQ(formatIn("\"Keep MXFP4 weights\""), "mxfp4");
    EXPECT_EQ(formatIn("name + \"_scales\""), "\"_scales\"");
    EXPECT_EQ(formatIn("kernels::packedTitles()"), "");
}

} // namespace
} // namespace vitrine::tools
