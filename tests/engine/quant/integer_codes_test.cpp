// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/integer_codes.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace vitrine::engine {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes randomBytes(std::mt19937& random, std::int64_t count) {
    Bytes out(static_cast<std::size_t>(count));
    for (std::uint8_t& byte : out) {
        byte = static_cast<std::uint8_t>(random());
    }
    return out;
}

/// Code (out, in) of rows.
int codeOf(const Bytes& rows, const CodeShape& shape, std::int64_t out, std::int64_t in) {
    const std::uint8_t byte = rows[static_cast<std::size_t>(out * shape.rowBytes() + in * shape.bits / 8)];
    return shape.bits == 8 ? byte : in % 2 == 0 ? byte & 15 : byte >> 4;
}

std::uint32_t wordOf(const Bytes& words, std::int64_t index) {
    std::uint32_t word = 0;
    std::memcpy(&word, words.data() + index * 4, 4);
    return word;
}

TEST(IntegerCodes, WordsOfGptqHoldNeighbouringInputs) {
    std::mt19937 random(1);
    for (const CodeShape& shape : {CodeShape{5, 40, 4}, CodeShape{33, 64, 4}, CodeShape{7, 12, 8}}) {
        const Bytes words = randomBytes(random, shape.out * shape.rowBytes());
        Bytes rows(words.size()), again(words.size());
        rowsFromInputWords(shape, words, rows);
        for (std::int64_t out = 0; out < shape.out; ++out) {
            for (std::int64_t in = 0; in < shape.in; ++in) {
                const std::uint32_t word = wordOf(words, in / shape.perWord() * shape.out + out);
                const auto expected = word >> (shape.bits * (in % shape.perWord())) & ((1U << shape.bits) - 1);
                ASSERT_EQ(codeOf(rows, shape, out, in), static_cast<int>(expected));
            }
        }
        inputWordsFromRows(shape, rows, again);
        EXPECT_EQ(again, words);
    }
}

TEST(IntegerCodes, WordsOfAwqHoldOutputsInTheirOrder) {
    std::mt19937 random(2);
    constexpr int kPlaceOf[8] = {0, 4, 1, 5, 2, 6, 3, 7}; // of an output in its word
    for (const CodeShape& shape : {CodeShape{8, 2, 4}, CodeShape{40, 66, 4}}) {
        const Bytes words = randomBytes(random, shape.out * shape.rowBytes());
        Bytes rows(words.size()), again(words.size());
        rowsFromOutputWords(shape, words, rows);
        for (std::int64_t out = 0; out < shape.out; ++out) {
            for (std::int64_t in = 0; in < shape.in; ++in) {
                const std::uint32_t word = wordOf(words, in * (shape.out / 8) + out / 8);
                ASSERT_EQ(codeOf(rows, shape, out, in), static_cast<int>(word >> (4 * kPlaceOf[out % 8]) & 15U));
            }
        }
        outputWordsFromRows(shape, rows, again);
        EXPECT_EQ(again, words);
    }
}

TEST(IntegerCodes, ZerosAreFoundInEveryLayout) {
    std::mt19937 random(3);
    for (const bool outputsFirst : {false, true}) {
        for (const int* order : {static_cast<const int*>(nullptr), kAwqOrder}) {
            ZeroLayout layout{outputsFirst ? 21 : 24, 5, 4, outputsFirst, order, 1};
            const Bytes zeros = [&] {
                Bytes out = randomBytes(random, layout.out * layout.groups);
                for (std::uint8_t& zero : out) {
                    zero &= 15U;
                }
                return out;
            }();
            Bytes words(static_cast<std::size_t>(3 * layout.groups * 4)), again(zeros.size());
            wordsFromZeros(layout, zeros, words);
            zerosFromWords(layout, words, again);
            EXPECT_EQ(again, zeros);
            const std::uint32_t first = wordOf(words, 0);
            EXPECT_EQ(first & 15U, (zeros[0] - 1U) & 15U) << "files hold the zero less one";
        }
    }
}

} // namespace
} // namespace vitrine::engine
