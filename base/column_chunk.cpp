// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/column_chunk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "base/byte_stream.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/integer_blocks.h"

namespace vitrine::base {

namespace {

static_assert(std::endian::native == std::endian::little,
              "chunks are written as the memory of a little-endian machine");

// ---------------------------------------------------------------------------------------------------------------
// An encoded column:   u8 storage (0 plain, 1 zstd) | body
// Body of integers:    as base/integer_blocks.h draws it
// Body of floats:      u8 kind: 0 bytes of all values by significance (plane 0 first), 1 whole numbers as integers
// Body of texts:       varint total bytes of the lengths | lengths as integers | the texts one after the other
// ---------------------------------------------------------------------------------------------------------------

enum class Storage : std::uint8_t { Plain, Zstd };
enum class FloatKind : std::uint8_t { Planes, Whole };

constexpr std::size_t kMinToCompress = 96; // below, a frame costs about what it saves
constexpr std::size_t kSample = 4096;      // zstd is tried on this much before a large body
constexpr double kWorthwhile = 0.9;        // share of its size that a compressed body may have

/// Puts the storage byte before the body, compressed where that pays.
std::vector<std::byte> store(std::span<const std::byte> bytes) {
    ByteWriter out;
    bool tryZstd = bytes.size() >= kMinToCompress;
    if (bytes.size() > 4 * kSample) {
        const std::span<const std::byte> middle = bytes.subspan(bytes.size() / 2 - kSample / 2, kSample);
        tryZstd = static_cast<double>(compress(middle).size()) < kWorthwhile * kSample;
    }
    if (tryZstd) {
        const std::vector<std::byte> packed = compress(bytes);
        if (static_cast<double>(packed.size()) < kWorthwhile * static_cast<double>(bytes.size())) {
            out.reserve(1 + packed.size());
            out.putByte(static_cast<std::uint8_t>(Storage::Zstd));
            out.putBytes(packed);
            return out.release();
        }
    }
    out.reserve(1 + bytes.size());
    out.putByte(static_cast<std::uint8_t>(Storage::Plain));
    out.putBytes(bytes);
    return out.release();
}

/// The body of a column and its reader; `unpacked` keeps the bytes when they were compressed.
class Body {
public:
    Body(const Column& column, std::size_t maxBytes) : name_("column " + column.name) {
        ByteReader outer(column.data, name_);
        const std::uint8_t storage = outer.takeByte();
        bytes_ = outer.take(outer.remaining());
        if (storage == static_cast<std::uint8_t>(Storage::Zstd)) {
            unpacked_ = decompress(bytes_, maxBytes);
            bytes_ = unpacked_;
        } else if (storage != static_cast<std::uint8_t>(Storage::Plain)) {
            throw outer.damaged("unknown storage");
        }
    }

    ByteReader reader() const { return ByteReader(bytes_, name_); }

private:
    std::string name_;
    std::vector<std::byte> unpacked_;
    std::span<const std::byte> bytes_;
};

void checkRowsToWrite(std::size_t rows) {
    if (rows > kMaxChunkRows) {
        throw Internal(fmt::format("column chunk: {} rows are more than the limit of {}", rows, kMaxChunkRows));
    }
}

void checkToRead(const Column& column, ColumnType type, std::uint64_t rows) {
    if (column.type != type) {
        throw BadInput(fmt::format("column {}: has another type than expected; the session is damaged or newer than "
                                   "this program",
                                   column.name));
    }
    if (rows > kMaxChunkRows) {
        throw BadInput(fmt::format("column {}: {} rows are more than a chunk may have; the session is damaged",
                                   column.name, rows));
    }
}

/// The bits of signed values, which have the same size and may be read as unsigned.
std::span<const std::uint64_t> bitsOf(std::span<const std::int64_t> values) {
    return {reinterpret_cast<const std::uint64_t*>(values.data()), values.size()};
}

template <typename Value> void setExtremes(Column& column, std::span<const Value> values) {
    if (!values.empty()) {
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        column.min = static_cast<double>(*low);
        column.max = static_cast<double>(*high);
    }
}

/// The values as integers when each of them is one that a double holds exactly; -0.0 has no integer.
std::optional<std::vector<std::int64_t>> wholeNumbers(std::span<const double> values) {
    constexpr double kExact = 0x1p53;
    std::vector<std::int64_t> whole;
    for (const double value : values) {
        if (!(std::abs(value) <= kExact)) {
            return std::nullopt;
        }
        const auto integer = static_cast<std::int64_t>(value);
        if (std::bit_cast<std::uint64_t>(static_cast<double>(integer)) != std::bit_cast<std::uint64_t>(value)) {
            return std::nullopt;
        }
        if (whole.empty()) {
            whole.reserve(values.size());
        }
        whole.push_back(integer);
    }
    return whole;
}

} // namespace

Column encodeColumn(std::string name, std::span<const std::int64_t> values) {
    checkRowsToWrite(values.size());
    Column column{.name = std::move(name), .type = ColumnType::Int64};
    setExtremes(column, values);
    ByteWriter body;
    putIntegers(body, bitsOf(values));
    column.data = store(body.bytes());
    return column;
}

Column encodeColumn(std::string name, std::span<const std::uint64_t> values) {
    checkRowsToWrite(values.size());
    Column column{.name = std::move(name), .type = ColumnType::UInt64};
    setExtremes(column, values);
    ByteWriter body;
    putIntegers(body, values);
    column.data = store(body.bytes());
    return column;
}

Column encodeColumn(std::string name, std::span<const double> values) {
    checkRowsToWrite(values.size());
    Column column{.name = std::move(name), .type = ColumnType::Float64};
    bool first = true;
    for (const double value : values) {
        if (std::isnan(value)) {
            continue;
        }
        column.min = first ? value : std::min(column.min, value);
        column.max = first ? value : std::max(column.max, value);
        first = false;
    }
    ByteWriter body;
    if (const std::optional<std::vector<std::int64_t>> whole = wholeNumbers(values)) {
        body.putByte(static_cast<std::uint8_t>(FloatKind::Whole));
        putIntegers(body, bitsOf(*whole));
    } else {
        body.putByte(static_cast<std::uint8_t>(FloatKind::Planes));
        std::byte* const planes = body.grow(values.size() * sizeof(double));
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto bits = std::bit_cast<std::uint64_t>(values[i]);
            for (std::size_t plane = 0; plane < sizeof(double); ++plane) {
                planes[plane * values.size() + i] = static_cast<std::byte>(bits >> (8 * plane));
            }
        }
    }
    column.data = store(body.bytes());
    return column;
}

Column encodeColumn(std::string name, std::span<const std::string> values) {
    checkRowsToWrite(values.size());
    Column column{.name = std::move(name), .type = ColumnType::Text};
    std::vector<std::uint64_t> lengths;
    lengths.reserve(values.size());
    std::uint64_t total = 0;
    for (const std::string& value : values) {
        lengths.push_back(value.size());
        total += value.size();
    }
    if (total > kMaxTextBytes) {
        throw Internal(fmt::format("column {}: {} bytes of text are more than the limit of {}", column.name, total,
                                   kMaxTextBytes));
    }
    ByteWriter packedLengths;
    putIntegers(packedLengths, lengths);
    ByteWriter body;
    body.reserve(kMaxVarintBytes + packedLengths.bytes().size() + total);
    body.putUnsigned(packedLengths.bytes().size());
    body.putBytes(packedLengths.bytes());
    for (const std::string& value : values) {
        body.putBytes(std::as_bytes(std::span(value)));
    }
    column.data = store(body.bytes());
    return column;
}

std::vector<std::int64_t> decodeInt64(const Column& column, std::uint64_t rows) {
    checkToRead(column, ColumnType::Int64, rows);
    const Body body(column, maxIntegerBytes(rows));
    ByteReader in = body.reader();
    std::vector<std::int64_t> values(rows);
    takeIntegers(in, {reinterpret_cast<std::uint64_t*>(values.data()), values.size()});
    in.expectEnd();
    return values;
}

std::vector<std::uint64_t> decodeUInt64(const Column& column, std::uint64_t rows) {
    checkToRead(column, ColumnType::UInt64, rows);
    const Body body(column, maxIntegerBytes(rows));
    ByteReader in = body.reader();
    std::vector<std::uint64_t> values(rows);
    takeIntegers(in, values);
    in.expectEnd();
    return values;
}

std::vector<double> decodeFloat64(const Column& column, std::uint64_t rows) {
    checkToRead(column, ColumnType::Float64, rows);
    const Body body(column, 1 + maxIntegerBytes(rows));
    ByteReader in = body.reader();
    const std::uint8_t kind = in.takeByte();
    std::vector<double> values(rows);
    if (kind == static_cast<std::uint8_t>(FloatKind::Whole)) {
        std::vector<std::uint64_t> whole(rows);
        takeIntegers(in, whole);
        std::ranges::transform(whole, values.begin(),
                               [](std::uint64_t bits) { return static_cast<double>(static_cast<std::int64_t>(bits)); });
    } else if (kind == static_cast<std::uint8_t>(FloatKind::Planes)) {
        const std::span<const std::byte> planes = in.take(rows * sizeof(double));
        for (std::size_t i = 0; i < rows; ++i) {
            std::uint64_t bits = 0;
            for (std::size_t plane = 0; plane < sizeof(double); ++plane) {
                bits |= static_cast<std::uint64_t>(planes[plane * rows + i]) << (8 * plane);
            }
            values[i] = std::bit_cast<double>(bits);
        }
    } else {
        throw in.damaged("unknown kind of numbers");
    }
    in.expectEnd();
    return values;
}

std::vector<std::string> decodeText(const Column& column, std::uint64_t rows) {
    checkToRead(column, ColumnType::Text, rows);
    const Body body(column, kMaxVarintBytes + maxIntegerBytes(rows) + kMaxTextBytes);
    ByteReader in = body.reader();
    std::vector<std::uint64_t> lengths(rows);
    const std::uint64_t lengthBytes = in.takeUnsigned();
    if (lengthBytes > in.remaining()) {
        throw in.damaged("lengths reach beyond the end");
    }
    ByteReader lengthsIn = in.sub(lengthBytes);
    takeIntegers(lengthsIn, lengths);
    lengthsIn.expectEnd();
    std::vector<std::string> values;
    values.reserve(rows);
    for (const std::uint64_t length : lengths) {
        const std::span<const std::byte> text = in.take(length);
        values.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
    }
    in.expectEnd();
    return values;
}

const Column& findColumn(const ColumnChunk& chunk, std::string_view name) {
    const auto found = std::ranges::find(chunk.columns, name, &Column::name);
    if (found == chunk.columns.end()) {
        throw BadInput(fmt::format("stream {}: column {} is missing; the session is damaged or newer than this program",
                                   chunk.stream, name));
    }
    return *found;
}

// ---------------------------------------------------------------------------------------------------------------
// A chunk:   "VC" | u8 version | text stream | varint sequence, rows | signed varint timeBegin, timeEnd
//            | varint columns, each: text name | u8 type | f64 min, max | varint size, data
//            | u64 checksum of all before.                                A text is a varint size and its bytes.
// ---------------------------------------------------------------------------------------------------------------

namespace {

constexpr std::array<std::uint8_t, 3> kChunkStart = {'V', 'C', 1};
constexpr std::size_t kChecksumBytes = 8;

} // namespace

std::vector<std::byte> toBytes(const ColumnChunk& chunk) {
    checkRowsToWrite(chunk.rows);
    if (chunk.timeBegin > chunk.timeEnd || chunk.columns.size() > kMaxChunkColumns) {
        throw Internal(fmt::format("stream {}: a chunk from {} to {} ns with {} columns cannot be written",
                                   chunk.stream, chunk.timeBegin, chunk.timeEnd, chunk.columns.size()));
    }
    ByteWriter out;
    std::size_t size = 128 + chunk.stream.size();
    for (const Column& column : chunk.columns) {
        size += 64 + column.name.size() + column.data.size();
    }
    out.reserve(size);
    for (const std::uint8_t byte : kChunkStart) {
        out.putByte(byte);
    }
    out.putText(chunk.stream);
    out.putUnsigned(chunk.sequence);
    out.putUnsigned(chunk.rows);
    out.putSigned(chunk.timeBegin);
    out.putSigned(chunk.timeEnd);
    out.putUnsigned(chunk.columns.size());
    for (const Column& column : chunk.columns) {
        out.putText(column.name);
        out.putByte(static_cast<std::uint8_t>(column.type));
        out.putFixed(std::bit_cast<std::uint64_t>(column.min));
        out.putFixed(std::bit_cast<std::uint64_t>(column.max));
        out.putUnsigned(column.data.size());
        out.putBytes(column.data);
    }
    out.putFixed(checksum64(out.bytes()));
    return out.release();
}

ColumnChunk fromBytes(std::span<const std::byte> bytes) {
    ByteReader in(bytes, "column chunk");
    if (bytes.size() < kChunkStart.size() + kChecksumBytes) {
        throw in.damaged("too short");
    }
    for (const std::uint8_t byte : kChunkStart) {
        if (in.takeByte() != byte) {
            throw in.damaged("unknown start; the session is damaged or newer than this program");
        }
    }
    const std::size_t covered = bytes.size() - kChecksumBytes;
    if (ByteReader(bytes.subspan(covered), "column chunk").takeFixed() != checksum64(bytes.first(covered))) {
        throw in.damaged("the checksum differs");
    }
    ColumnChunk chunk;
    chunk.stream = in.takeText();
    chunk.sequence = in.takeUnsigned();
    chunk.rows = in.takeUnsigned();
    chunk.timeBegin = in.takeSigned();
    chunk.timeEnd = in.takeSigned();
    const std::uint64_t columns = in.takeUnsigned();
    if (chunk.rows > kMaxChunkRows || chunk.timeBegin > chunk.timeEnd || columns > kMaxChunkColumns) {
        throw in.damaged("rows, times or columns out of range");
    }
    for (std::uint64_t i = 0; i < columns; ++i) {
        Column column;
        column.name = in.takeText();
        const std::uint8_t type = in.takeByte();
        if (type > static_cast<std::uint8_t>(ColumnType::Text)) {
            throw in.damaged("unknown type of a column");
        }
        if (std::ranges::find(chunk.columns, column.name, &Column::name) != chunk.columns.end()) {
            throw in.damaged("two columns of one name");
        }
        column.type = static_cast<ColumnType>(type);
        column.min = std::bit_cast<double>(in.takeFixed());
        column.max = std::bit_cast<double>(in.takeFixed());
        const std::span<const std::byte> data = in.take(in.takeUnsigned());
        column.data.assign(data.begin(), data.end());
        chunk.columns.push_back(std::move(column));
    }
    in.take(kChecksumBytes);
    in.expectEnd();
    return chunk;
}

} // namespace vitrine::base
