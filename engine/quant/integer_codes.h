// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Codes of 4 or 8 bits in the 32-bit words of checkpoints, to and from the rows that kernels read: (out, in), unsigned,
// of 4 bits two in a byte with the low nibble first. Words are little endian, the first code in the lowest bits.
// Stateless; safe from any thread.

#include <cstdint>
#include <span>

namespace vitrine::engine {

/// A matrix of codes (out, in).
struct CodeShape {
    std::int64_t out = 0;
    std::int64_t in = 0;
    int bits = 4;

    std::int64_t perWord() const { return 32 / bits; }
    std::int64_t rowBytes() const { return in * bits / 8; }
};

/// GPTQ: words (in / perWord, out), each with neighbouring inputs of one output. `in` is a multiple of perWord().
void rowsFromInputWords(const CodeShape& shape, std::span<const std::uint8_t> words, std::span<std::uint8_t> rows);
void inputWordsFromRows(const CodeShape& shape, std::span<const std::uint8_t> rows, std::span<std::uint8_t> words);

/// AWQ: words (in, out / perWord), each with neighbouring outputs of one input, in the order 0 2 4 6 1 3 5 7. Codes of
/// 4 bits only. `out` is a multiple of 8.
void rowsFromOutputWords(const CodeShape& shape, std::span<const std::uint8_t> words, std::span<std::uint8_t> rows);
void outputWordsFromRows(const CodeShape& shape, std::span<const std::uint8_t> rows, std::span<std::uint8_t> words);

/// Where code i of a word of AWQ stands among its eight outputs.
inline constexpr int kAwqOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};

/// Zeros of groups: U8 (out, groups) in memory. Files hold words along the outputs: with `outputsFirst` (ceil(out /
/// perWord), groups), as compressed-tensors has them, else (groups, out / perWord), as GPTQ and AWQ have them. `order`
/// is where code i of a word stands; null: at i. `added` is added to each code of the file, modulo 2^bits.
struct ZeroLayout {
    std::int64_t out = 0;
    std::int64_t groups = 0;
    int bits = 4;
    bool outputsFirst = false;
    const int* order = nullptr;
    int added = 0;
};
void zerosFromWords(const ZeroLayout& layout, std::span<const std::uint8_t> words, std::span<std::uint8_t> zeros);
void wordsFromZeros(const ZeroLayout& layout, std::span<const std::uint8_t> zeros, std::span<std::uint8_t> words);

/// out (columns, rows) = x (rows, columns), of elements of `size` bytes.
void transposeElements(std::int64_t rows, std::int64_t columns, std::size_t size, std::span<const std::uint8_t> x,
                       std::span<std::uint8_t> out);

/// The same for elements of whatever size the bytes come to.
void transposeScales(std::int64_t rows, std::int64_t columns, std::span<const std::uint8_t> x,
                     std::span<std::uint8_t> out);

} // namespace vitrine::engine
