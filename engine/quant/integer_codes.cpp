// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/integer_codes.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace vitrine::engine {
namespace {

constexpr std::int64_t kTile = 32; ///< of a transposition: both sides stay in the cache

std::uint32_t wordAt(std::span<const std::uint8_t> words, std::int64_t index) {
    std::uint32_t word = 0;
    std::memcpy(&word, words.data() + index * 4, sizeof word);
    return word;
}

void setWord(std::span<std::uint8_t> words, std::int64_t index, std::uint32_t word) {
    std::memcpy(words.data() + index * 4, &word, sizeof word);
}

void requireBytes(std::size_t has, std::int64_t needs) {
    if (has != static_cast<std::size_t>(needs)) {
        throw base::Internal("codes and words of a packed weight do not belong together");
    }
}

/// visit(row, column) for all, in square tiles.
template <class Visit> void inTiles(std::int64_t rows, std::int64_t columns, const Visit& visit) {
    for (std::int64_t r = 0; r < rows; r += kTile) {
        for (std::int64_t c = 0; c < columns; c += kTile) {
            for (std::int64_t row = r; row < std::min(rows, r + kTile); ++row) {
                for (std::int64_t column = c; column < std::min(columns, c + kTile); ++column) {
                    visit(row, column);
                }
            }
        }
    }
}

std::uint32_t maskOf(int bits) {
    return (1U << bits) - 1;
}

std::uint8_t nibbleOf(std::span<const std::uint8_t> rows, std::int64_t code) {
    const std::uint8_t pair = rows[static_cast<std::size_t>(code / 2)];
    return code % 2 == 0 ? pair & 15U : pair >> 4;
}

std::int64_t zeroWord(const ZeroLayout& layout, std::int64_t word, std::int64_t group, std::int64_t words) {
    return layout.outputsFirst ? word * layout.groups + group : group * words + word;
}

std::int64_t zeroWords(const ZeroLayout& layout) {
    const std::int64_t perWord = 32 / layout.bits;
    return (layout.out + perWord - 1) / perWord;
}

} // namespace

void rowsFromInputWords(const CodeShape& shape, std::span<const std::uint8_t> words, std::span<std::uint8_t> rows) {
    const std::int64_t perRow = shape.in / shape.perWord();
    requireBytes(words.size(), perRow * shape.out * 4);
    requireBytes(rows.size(), perRow * shape.out * 4);
    transposeElements(perRow, shape.out, 4, words, rows); // a word's bytes are those of the row
}

void inputWordsFromRows(const CodeShape& shape, std::span<const std::uint8_t> rows, std::span<std::uint8_t> words) {
    const std::int64_t perRow = shape.in / shape.perWord();
    requireBytes(words.size(), perRow * shape.out * 4);
    requireBytes(rows.size(), perRow * shape.out * 4);
    transposeElements(shape.out, perRow, 4, rows, words);
}

void rowsFromOutputWords(const CodeShape& shape, std::span<const std::uint8_t> words, std::span<std::uint8_t> rows) {
    const std::int64_t columns = shape.out / 8;
    requireBytes(words.size(), shape.in * columns * 4);
    requireBytes(rows.size(), shape.out * shape.rowBytes());
    inTiles(shape.in / 2, columns, [&](std::int64_t pair, std::int64_t column) {
        const std::uint32_t low = wordAt(words, 2 * pair * columns + column);
        const std::uint32_t high = wordAt(words, (2 * pair + 1) * columns + column);
        for (int i = 0; i < 8; ++i) {
            const std::int64_t out = column * 8 + kAwqOrder[i];
            rows[static_cast<std::size_t>(out * shape.rowBytes() + pair)] =
                static_cast<std::uint8_t>((low >> (4 * i) & 15U) | (high >> (4 * i) & 15U) << 4);
        }
    });
}

void outputWordsFromRows(const CodeShape& shape, std::span<const std::uint8_t> rows, std::span<std::uint8_t> words) {
    const std::int64_t columns = shape.out / 8;
    requireBytes(words.size(), shape.in * columns * 4);
    requireBytes(rows.size(), shape.out * shape.rowBytes());
    inTiles(shape.in, columns, [&](std::int64_t in, std::int64_t column) {
        std::uint32_t word = 0;
        for (int i = 0; i < 8; ++i) {
            const std::int64_t out = column * 8 + kAwqOrder[i];
            word |= std::uint32_t{nibbleOf(rows, out * shape.in + in)} << (4 * i);
        }
        setWord(words, in * columns + column, word);
    });
}

void zerosFromWords(const ZeroLayout& layout, std::span<const std::uint8_t> words, std::span<std::uint8_t> zeros) {
    const std::int64_t perWord = 32 / layout.bits;
    const std::int64_t count = zeroWords(layout);
    requireBytes(words.size(), count * layout.groups * 4);
    requireBytes(zeros.size(), layout.out * layout.groups);
    for (std::int64_t index = 0; index < count; ++index) {
        for (std::int64_t group = 0; group < layout.groups; ++group) {
            const std::uint32_t word = wordAt(words, zeroWord(layout, index, group, count));
            for (int i = 0; i < perWord; ++i) {
                const std::int64_t out = index * perWord + (layout.order == nullptr ? i : layout.order[i]);
                if (out < layout.out) {
                    const std::uint32_t code = (word >> (layout.bits * i)) + static_cast<std::uint32_t>(layout.added);
                    zeros[static_cast<std::size_t>(out * layout.groups + group)] =
                        static_cast<std::uint8_t>(code & maskOf(layout.bits));
                }
            }
        }
    }
}

void wordsFromZeros(const ZeroLayout& layout, std::span<const std::uint8_t> zeros, std::span<std::uint8_t> words) {
    const std::int64_t perWord = 32 / layout.bits;
    const std::int64_t count = zeroWords(layout);
    requireBytes(words.size(), count * layout.groups * 4);
    requireBytes(zeros.size(), layout.out * layout.groups);
    for (std::int64_t index = 0; index < count; ++index) {
        for (std::int64_t group = 0; group < layout.groups; ++group) {
            std::uint32_t word = 0;
            for (int i = 0; i < perWord; ++i) {
                const std::int64_t out = index * perWord + (layout.order == nullptr ? i : layout.order[i]);
                if (out < layout.out) {
                    const std::uint32_t code = zeros[static_cast<std::size_t>(out * layout.groups + group)] -
                                               static_cast<std::uint32_t>(layout.added);
                    word |= (code & maskOf(layout.bits)) << (layout.bits * i);
                }
            }
            setWord(words, zeroWord(layout, index, group, count), word);
        }
    }
}

void transposeElements(std::int64_t rows, std::int64_t columns, std::size_t size, std::span<const std::uint8_t> x,
                       std::span<std::uint8_t> out) {
    requireBytes(x.size(), rows * columns * static_cast<std::int64_t>(size));
    requireBytes(out.size(), rows * columns * static_cast<std::int64_t>(size));
    inTiles(rows, columns, [&](std::int64_t row, std::int64_t column) {
        std::memcpy(out.data() + static_cast<std::size_t>(column * rows + row) * size,
                    x.data() + static_cast<std::size_t>(row * columns + column) * size, size);
    });
}

void transposeScales(std::int64_t rows, std::int64_t columns, std::span<const std::uint8_t> x,
                     std::span<std::uint8_t> out) {
    transposeElements(rows, columns, x.size() / static_cast<std::size_t>(rows * columns), x, out);
}

} // namespace vitrine::engine
