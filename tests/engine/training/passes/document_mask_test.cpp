// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Masks of documents with shared prompts beside masks that are made element by element.

#include "engine/training/passes/document_mask.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <random>

#include "kernels/program/interpreter.h"
#include "tests/repetitions.h"

namespace vitrine::engine {
namespace {

using kernels::BlockMask;

/// Documents of few tokens or around the size of a block, some of which are prefixes of later ones.
DocumentLayout randomLayout(std::mt19937& random) {
    DocumentLayout out;
    std::vector<std::int32_t> free; // documents without a prefix
    for (auto documents = 1 + random() % 9; documents > 0; --documents) {
        const auto size = random() % 3 == 0 ? 1 + random() % 5 : 120 + random() % 17;
        out.lengths.push_back(static_cast<std::int32_t>(random() % 5 == 0 ? 128 : size));
        const bool shares = !free.empty() && random() % 3 != 0;
        if (!shares) {
            free.push_back(static_cast<std::int32_t>(out.prefixes.size()));
        }
        out.prefixes.push_back(shares ? free[random() % free.size()] : -1);
    }
    if (out.lengths.size() > 1 && std::ranges::count(out.prefixes, -1) == std::ssize(out.prefixes)) {
        out.prefixes.back() = 0;
    }
    return out;
}

/// For each token of each document: which it is, and its position.
struct Token {
    std::int32_t document = 0, position = 0;
};

std::vector<Token> tokensOf(const DocumentLayout& layout) {
    std::vector<Token> out;
    for (std::size_t i = 0; i < layout.lengths.size(); ++i) {
        const std::int32_t prefix = layout.prefixes[i];
        const std::int32_t before = prefix < 0 ? 0 : layout.lengths[static_cast<std::size_t>(prefix)];
        for (std::int32_t t = 0; t < layout.lengths[i]; ++t) {
            out.push_back({static_cast<std::int32_t>(i), before + t});
        }
    }
    return out;
}

/// (queries, keys): whether the query sees the key.
std::vector<std::vector<std::uint8_t>> elementsOf(const DocumentLayout& layout, std::int64_t window) {
    const std::vector<Token> tokens = tokensOf(layout);
    std::vector<std::vector<std::uint8_t>> out(tokens.size(), std::vector<std::uint8_t>(tokens.size()));
    for (std::size_t query = 0; query < tokens.size(); ++query) {
        for (std::size_t key = 0; key <= query; ++key) {
            const std::int32_t document = tokens[query].document;
            const bool related = tokens[key].document == document ||
                                 tokens[key].document == layout.prefixes[static_cast<std::size_t>(document)];
            const bool near = window == 0 || tokens[query].position - tokens[key].position < window;
            out[query][key] = related && near ? 1 : 0;
        }
    }
    return out;
}

/// 0: empty, 1: partial, 2: full.
using Kinds = std::vector<std::vector<int>>;

Kinds kindsOf(const std::vector<std::vector<std::uint8_t>>& elements) {
    constexpr std::size_t kBlock = 128;
    const std::size_t tokens = elements.size();
    Kinds out;
    for (std::size_t query = 0; query < tokens; query += kBlock) {
        std::vector<int>& row = out.emplace_back();
        for (std::size_t key = 0; key < tokens; key += kBlock) {
            std::size_t allowed = 0;
            std::size_t all = 0;
            for (std::size_t q = query; q < std::min(query + kBlock, tokens); ++q) {
                const auto begin = elements[q].begin() + static_cast<std::ptrdiff_t>(key);
                const auto end = elements[q].begin() + static_cast<std::ptrdiff_t>(std::min(key + kBlock, tokens));
                allowed += static_cast<std::size_t>(std::count(begin, end, 1));
                all += static_cast<std::size_t>(end - begin);
            }
            row.push_back(allowed == 0 ? 0 : allowed == all ? 2 : 1);
        }
    }
    return out;
}

Kinds rowsOf(const BlockMask& mask) {
    Kinds out(static_cast<std::size_t>(mask.shape.queryBlocks()));
    for (std::size_t row = 0; row < out.size(); ++row) {
        out[row].resize(static_cast<std::size_t>(mask.shape.keyBlocks()));
        for (const kernels::BlockRun& run : mask.row(0, 0, static_cast<std::int64_t>(row))) {
            std::fill_n(out[row].begin() + run.first, run.count, run.full ? 2 : 1);
        }
    }
    return out;
}

Kinds columnsOf(const BlockMask& mask) {
    Kinds out(static_cast<std::size_t>(mask.shape.queryBlocks()),
              std::vector<int>(static_cast<std::size_t>(mask.shape.keyBlocks())));
    for (std::int64_t column = 0; column < mask.shape.keyBlocks(); ++column) {
        for (const kernels::BlockRun& run : mask.column(0, 0, column)) {
            for (std::int32_t row = run.first; row < run.first + run.count; ++row) {
                out[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)] = run.full ? 2 : 1;
            }
        }
    }
    return out;
}

std::int64_t windowOf(std::mt19937& random) {
    constexpr std::array<std::int64_t, 7> kWindows = {0, 0, 1, 8, 127, 128, 200};
    return kWindows[random() % kWindows.size()];
}

TEST(DocumentMask, BlocksOfSharedPromptsAreThoseOfTheElements) {
    std::mt19937 random(3);
    for (int round = 0; round < vitrine::test::repetitions(120); ++round) {
        const DocumentLayout layout = randomLayout(random);
        const std::int64_t window = windowOf(random);
        const Kinds expected = kindsOf(elementsOf(layout, window));
        const BlockMask mask = sharedPromptBlocks(layout, window);
        ASSERT_EQ(rowsOf(mask), expected) << "round " << round << " window " << window;
        ASSERT_EQ(columnsOf(mask), expected) << "round " << round << " window " << window;
        const auto counted = [&](int kind) {
            std::int64_t count = 0;
            for (const std::vector<int>& row : expected) {
                count += std::ranges::count(row, kind);
            }
            return count;
        };
        EXPECT_EQ(mask.empty, counted(0));
        EXPECT_EQ(mask.partial, counted(1));
        EXPECT_EQ(mask.full, counted(2));
    }
}

TEST(DocumentMask, TheProgramOfSharedPromptsGivesTheElements) {
    std::mt19937 random(4);
    for (int round = 0; round < vitrine::test::repetitions(30); ++round) {
        const DocumentLayout layout = randomLayout(random);
        const std::int64_t window = windowOf(random);
        const auto expected = elementsOf(layout, window);
        std::vector<std::int32_t> starts = documentStarts(layout.lengths);
        std::vector<std::int32_t> begins = prefixStarts(layout);
        std::vector<std::int32_t> ends = prefixEnds(layout);
        kernels::CaptureBinding binding;
        for (std::vector<std::int32_t>* values : {&starts, &begins, &ends}) {
            binding.tensors.push_back({values->data(), kernels::DType::I32, kernels::Shape{std::ssize(*values)}, {}});
        }
        const kernels::Program program = sharedPromptMask(window);
        ASSERT_EQ(program.captures.size(), 3U);
        kernels::Interpreter<float> interpreter(program, binding);
        const std::int64_t tokens = std::ssize(starts);
        for (std::int64_t query = 0; query < tokens; ++query) {
            std::vector<std::uint8_t> row;
            for (std::int64_t key = 0; key < tokens; key += kernels::kInterpreterWidth) {
                const auto count = static_cast<int>(std::min<std::int64_t>(kernels::kInterpreterWidth, tokens - key));
                interpreter.run({0, 0, query}, key, count, nullptr);
                row.insert(row.end(), interpreter.booleans(), interpreter.booleans() + count);
            }
            ASSERT_EQ(row, expected[static_cast<std::size_t>(query)]) << "round " << round << " query " << query;
        }
    }
}

TEST(DocumentMask, DocumentsWithoutPrefixesHaveTheBlocksOfToday) {
    const std::vector<std::int32_t> lengths = {5, 300, 128, 1, 77};
    const DocumentLayout layout{lengths, {-1, -1, -1, -1, -1}};
    for (const std::int64_t window : {0, 9, 140}) {
        const BlockMask expected = documentBlocks(lengths, window);
        const BlockMask mask = sharedPromptBlocks(layout, window);
        EXPECT_EQ(rowsOf(mask), rowsOf(expected));
        EXPECT_EQ(mask.rowOffsets, expected.rowOffsets); // as many runs
        EXPECT_EQ(mask.columnOffsets, expected.columnOffsets);
    }
}

/// As reinforcement learning has them. Elements would be 17 billion.
TEST(DocumentMask, ManyAnswersOfALongPromptAreFewRuns) {
    DocumentLayout layout{{4000}, {-1}};
    layout.lengths.resize(257, 500);
    layout.prefixes.resize(257, 0);
    const BlockMask mask = sharedPromptBlocks(layout, 0);
    EXPECT_EQ(mask.shape.queries, 132000);
    EXPECT_GT(mask.full, 25000);                       // the prompt's 31 for each of 1,000
    EXPECT_LT(mask.rowRuns.size(), std::size_t{5000}); // a few for each
}

} // namespace
} // namespace vitrine::engine
