// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/column_chunk.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "base/codec.h"
#include "base/error.h"

namespace vitrine::base {
namespace {

using Ints = std::vector<std::int64_t>;
using Counts = std::vector<std::uint64_t>;
using Reals = std::vector<double>;
using Texts = std::vector<std::string>;

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMaxCount = std::numeric_limits<std::uint64_t>::max();

void expectRoundTrip(const Ints& values) {
    const Column column = encodeColumn("v", std::span<const std::int64_t>(values));
    EXPECT_EQ(column.type, ColumnType::Int64);
    ASSERT_EQ(decodeInt64(column, values.size()), values);
    const Counts counts(values.begin(), values.end());
    ASSERT_EQ(decodeUInt64(encodeColumn("v", std::span<const std::uint64_t>(counts)), counts.size()), counts);
}

/// Equal bits, so that NaN and -0.0 count.
void expectRoundTrip(const Reals& values) {
    const Reals back = decodeFloat64(encodeColumn("v", std::span<const double>(values)), values.size());
    ASSERT_EQ(back.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(back[i]), std::bit_cast<std::uint64_t>(values[i])) << i;
    }
}

TEST(ColumnChunk, ExtremeIntegers) {
    expectRoundTrip(Ints{});
    expectRoundTrip(Ints{0});
    expectRoundTrip(Ints{kMin, kMax, kMin, 0, kMax, -1, 1});
    expectRoundTrip(Ints(1000, kMin));
    expectRoundTrip(Ints(257, kMax));
}

TEST(ColumnChunk, RandomIntegersOfEveryWidthAndLength) {
    std::mt19937_64 random(3);
    for (const std::size_t count : {1U, 2U, 255U, 256U, 257U, 512U, 1000U, 5000U}) {
        for (int bits = 0; bits <= 64; bits += 4) {
            const std::uint64_t mask = bits == 0 ? 0 : kMaxCount >> (64 - bits);
            Ints plain(count);
            Ints rising(count);
            std::uint64_t at = random();
            for (std::size_t i = 0; i < count; ++i) {
                plain[i] = static_cast<std::int64_t>(random() & mask) - 1000;
                at += random() & mask;
                rising[i] = static_cast<std::int64_t>(at);
            }
            expectRoundTrip(plain);
            expectRoundTrip(rising);
        }
    }
}

TEST(ColumnChunk, Floats) {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    expectRoundTrip(Reals{});
    expectRoundTrip(Reals{0.0, 1.0, -1.0, 0x1p53, -0x1p53});
    expectRoundTrip(Reals{0.0, -0.0});
    expectRoundTrip(Reals{0x1p53 + 2, 1.0});
    expectRoundTrip(Reals{nan, inf, -inf, -0.0, 5e-324, std::numeric_limits<double>::max()});
    expectRoundTrip(Reals(3000, nan));
    std::mt19937_64 random(5);
    Reals any(5000);
    Reals whole(5000);
    for (std::size_t i = 0; i < any.size(); ++i) {
        any[i] = std::bit_cast<double>(random());
        whole[i] = static_cast<double>(random() % 1000000) * 512;
    }
    expectRoundTrip(any);
    expectRoundTrip(whole);
}

TEST(ColumnChunk, Texts) {
    const auto expectTexts = [](const Texts& values) {
        EXPECT_EQ(decodeText(encodeColumn("v", std::span<const std::string>(values)), values.size()), values);
    };
    expectTexts({});
    expectTexts({""});
    expectTexts({"layers.3.mlp.experts.gate_up", "", std::string("\0\xff", 2), "Grüße"});
    expectTexts(Texts(2000, "the same name again"));
    expectTexts({std::string(1000000, 'x'), "y"});
}

TEST(ColumnChunk, Extremes) {
    const Ints ints{5, -7, 3};
    const Column a = encodeColumn("a", std::span<const std::int64_t>(ints));
    EXPECT_EQ(a.min, -7);
    EXPECT_EQ(a.max, 5);
    const Counts counts{kMaxCount, 1};
    EXPECT_EQ(encodeColumn("b", std::span<const std::uint64_t>(counts)).max, static_cast<double>(kMaxCount));
    const Reals reals{std::nan(""), 2.5, -1.5};
    const Column c = encodeColumn("c", std::span<const double>(reals));
    EXPECT_EQ(c.min, -1.5);
    EXPECT_EQ(c.max, 2.5);
    const Reals none{std::nan("")};
    EXPECT_EQ(encodeColumn("d", std::span<const double>(none)).max, 0);
}

TEST(ColumnChunk, RegularColumnsAreSmall) {
    Ints times(4096);
    for (std::size_t i = 0; i < times.size(); ++i) {
        times[i] = kMax / 2 + static_cast<std::int64_t>(i) * 1000;
    }
    EXPECT_LT(encodeColumn("time", std::span<const std::int64_t>(times)).data.size(), 256U);
    EXPECT_LT(encodeColumn("dtype", std::span<const std::int64_t>(Ints(4096, 7))).data.size(), 64U);
}

TEST(ColumnChunk, WrongTypeRowsOrStorageAreRefused) {
    const Ints values(100, 3);
    const Column column = encodeColumn("v", std::span<const std::int64_t>(values));
    EXPECT_THROW(decodeUInt64(column, 100), BadInput);
    EXPECT_THROW(decodeFloat64(column, 100), BadInput);
    EXPECT_THROW(decodeText(column, 100), BadInput);
    EXPECT_THROW(decodeInt64(column, 0), BadInput);
    EXPECT_THROW(decodeInt64(column, 300), BadInput);
    EXPECT_THROW(decodeInt64(column, kMaxChunkRows + 1), BadInput);
    EXPECT_THROW(decodeInt64(column, kMaxCount), BadInput);
    EXPECT_THROW(decodeInt64(Column{.name = "v"}, 0), BadInput);
    Column other = column;
    other.data[0] = std::byte{9};
    EXPECT_THROW(decodeInt64(other, 100), BadInput);
}

TEST(ColumnChunk, TooManyRowsAreAMistakeOfTheWriter) {
    const Ints values(kMaxChunkRows + 1, 0);
    EXPECT_THROW(encodeColumn("v", std::span<const std::int64_t>(values)), Internal);
}

ColumnChunk sample(std::size_t rows) {
    std::mt19937_64 random(1);
    Ints times(rows);
    Counts bytes(rows);
    Reals rates(rows);
    Texts names(rows);
    std::int64_t time = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        times[i] = time += static_cast<std::int64_t>(random() % 5000);
        bytes[i] = 512 * (random() % 4096);
        rates[i] = static_cast<double>(random() % 1000) / 7;
        names[i] = "layers." + std::to_string(random() % 24);
    }
    ColumnChunk chunk{.stream = "allocations",
                      .sequence = 7,
                      .rows = rows,
                      .timeBegin = rows > 0 ? times.front() : 0,
                      .timeEnd = time};
    chunk.columns.push_back(encodeColumn("time", std::span<const std::int64_t>(times)));
    chunk.columns.push_back(encodeColumn("bytes", std::span<const std::uint64_t>(bytes)));
    chunk.columns.push_back(encodeColumn("rate", std::span<const double>(rates)));
    chunk.columns.push_back(encodeColumn("name", std::span<const std::string>(names)));
    return chunk;
}

/// Everything that a reader does with a chunk.
void readAll(const ColumnChunk& chunk) {
    for (const Column& column : chunk.columns) {
        switch (column.type) {
        case ColumnType::Int64:
            EXPECT_EQ(decodeInt64(column, chunk.rows).size(), chunk.rows);
            break;
        case ColumnType::UInt64:
            EXPECT_EQ(decodeUInt64(column, chunk.rows).size(), chunk.rows);
            break;
        case ColumnType::Float64:
            EXPECT_EQ(decodeFloat64(column, chunk.rows).size(), chunk.rows);
            break;
        case ColumnType::Text:
            EXPECT_EQ(decodeText(column, chunk.rows).size(), chunk.rows);
            break;
        }
    }
}

TEST(ColumnChunk, AChunkRoundTrips) {
    for (const std::size_t rows : {0U, 1U, 300U, 5000U}) {
        const ColumnChunk chunk = sample(rows);
        const ColumnChunk back = fromBytes(toBytes(chunk));
        EXPECT_EQ(back.stream, chunk.stream);
        EXPECT_EQ(back.sequence, chunk.sequence);
        EXPECT_EQ(back.rows, chunk.rows);
        EXPECT_EQ(back.timeBegin, chunk.timeBegin);
        EXPECT_EQ(back.timeEnd, chunk.timeEnd);
        ASSERT_EQ(back.columns.size(), chunk.columns.size());
        for (std::size_t i = 0; i < chunk.columns.size(); ++i) {
            EXPECT_EQ(back.columns[i].name, chunk.columns[i].name);
            EXPECT_EQ(back.columns[i].type, chunk.columns[i].type);
            EXPECT_EQ(back.columns[i].min, chunk.columns[i].min);
            EXPECT_EQ(back.columns[i].max, chunk.columns[i].max);
            EXPECT_EQ(back.columns[i].data, chunk.columns[i].data);
        }
        readAll(back);
    }
}

TEST(ColumnChunk, FindsColumns) {
    const ColumnChunk chunk = sample(3);
    EXPECT_EQ(findColumn(chunk, "rate").type, ColumnType::Float64);
    EXPECT_THROW(findColumn(chunk, "missing"), BadInput);
}

TEST(ColumnChunk, EveryDamagedBlobIsRefused) {
    const std::vector<std::byte> good = toBytes(sample(300));
    std::mt19937 random(2);
    for (int round = 0; round < 5000; ++round) {
        std::vector<std::byte> damaged = good;
        if (round % 5 == 0) {
            damaged.resize(random() % good.size());
        } else {
            damaged[random() % damaged.size()] ^= static_cast<std::byte>(1 + random() % 255);
        }
        EXPECT_THROW(fromBytes(damaged), BadInput) << round;
    }
}

TEST(ColumnChunk, ABlobWithAValidChecksumOverNonsenseIsNoCrash) {
    const std::vector<std::byte> good = toBytes(sample(300));
    std::mt19937 random(4);
    int refused = 0;
    for (int round = 0; round < 10000; ++round) {
        std::vector<std::byte> damaged(good.begin(), good.end() - 8);
        const auto edits = 1 + random() % 4;
        for (unsigned i = 0; i < edits; ++i) {
            // Half of the edits go into the first bytes, where the sizes stand.
            const std::size_t reach = random() % 2 == 0 ? 48 : damaged.size();
            damaged[random() % reach] = static_cast<std::byte>(random() % 2 == 0 ? 0xFF : random());
        }
        const std::uint64_t sum = checksum64(damaged);
        for (unsigned i = 0; i < 8; ++i) {
            damaged.push_back(static_cast<std::byte>(sum >> (8 * i)));
        }
        try {
            readAll(fromBytes(damaged));
        } catch (const BadInput&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 1000);
}

TEST(ColumnChunk, DamagedColumnsAreNoCrash) {
    const ColumnChunk good = sample(700);
    std::mt19937 random(8);
    int refused = 0;
    for (int round = 0; round < 20000; ++round) {
        ColumnChunk chunk;
        chunk.rows = random() % 8 == 0 ? random() % 2000 : good.rows;
        Column column = good.columns[random() % good.columns.size()];
        const auto edits = random() % 4;
        for (unsigned i = 0; i < edits; ++i) {
            const std::size_t reach =
                random() % 2 == 0 ? std::min<std::size_t>(16, column.data.size()) : column.data.size();
            column.data[random() % reach] = static_cast<std::byte>(random());
        }
        if (random() % 8 == 0) {
            column.data.resize(random() % column.data.size());
        }
        chunk.columns.push_back(std::move(column));
        try {
            readAll(chunk);
        } catch (const BadInput&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 2000);
}

TEST(ColumnChunk, PlainBodiesAreCheckedToo) {
    // Storage plain: the decoders see the damage themselves, without zstd before them.
    std::mt19937 random(12);
    const Ints values{1, 500, -3, 70000, 5, 6, 7};
    Column column = encodeColumn("v", std::span<const std::int64_t>(values));
    ASSERT_EQ(column.data[0], std::byte{0});
    for (int round = 0; round < 20000; ++round) {
        Column damaged = column;
        damaged.data.resize(1 + random() % (column.data.size() + 8));
        for (std::size_t i = 1; i < damaged.data.size(); ++i) {
            if (random() % 3 == 0) {
                damaged.data[i] = static_cast<std::byte>(random() % 2 == 0 ? random() % 16 : random());
            }
        }
        damaged.type = static_cast<ColumnType>(random() % 4);
        ColumnChunk chunk{.rows = random() % 600};
        chunk.columns.push_back(std::move(damaged));
        try {
            readAll(chunk);
        } catch (const BadInput&) {
        }
    }
}

TEST(ColumnChunk, ABadChunkIsNotWritten) {
    ColumnChunk chunk = sample(3);
    chunk.timeEnd = chunk.timeBegin - 1;
    EXPECT_THROW(toBytes(chunk), Internal);
    chunk = sample(3);
    chunk.columns.resize(kMaxChunkColumns + 1);
    EXPECT_THROW(toBytes(chunk), Internal);
}

} // namespace
} // namespace vitrine::base
