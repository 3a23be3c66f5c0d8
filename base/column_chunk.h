// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Columns of events in compressed pieces: what the profiler writes, a session keeps and a view reads.
//
// A stream ("allocations", "memory.pyramid.2", ...) is a sequence of chunks; a chunk is up to some thousand rows.
// Every column is encoded on its own: integers in blocks of values or deltas packed to 0, 1, 2, 4 or 8 bytes, floats as
// bytes split by significance (as integers where all are whole), texts as lengths and bytes; then zstd where it pays.
// The layout of an encoded column stands above its writer in column_chunk.cpp. All functions are thread-safe.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace vitrine::base {

/// Limits of one chunk. Writers throw Internal beyond them, readers BadInput: no file makes a reader allocate more.
inline constexpr std::uint64_t kMaxChunkRows = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxTextBytes = std::uint64_t{64} << 20; ///< of one text column
inline constexpr std::uint64_t kMaxChunkColumns = 256;

enum class ColumnType : std::uint8_t { Int64, UInt64, Float64, Text };

/// One encoded column with the extremes of its values (0 for text and for no values; NaN does not count).
struct Column {
    std::string name;
    ColumnType type = ColumnType::Int64;
    double min = 0;
    double max = 0;
    std::vector<std::byte> data;
};

struct ColumnChunk {
    std::string stream;
    std::uint64_t sequence = 0; ///< number of this chunk in its stream, from 0
    std::uint64_t rows = 0;
    TimeNs timeBegin = 0; ///< smallest and largest time in the chunk
    TimeNs timeEnd = 0;
    std::vector<Column> columns;
};

/// Encoders. `name` goes into the column.
Column encodeColumn(std::string name, std::span<const std::int64_t> values);
Column encodeColumn(std::string name, std::span<const std::uint64_t> values);
Column encodeColumn(std::string name, std::span<const double> values);
Column encodeColumn(std::string name, std::span<const std::string> values);

/// Decoders. `rows` is what the chunk says; throws BadInput when the bytes do not hold exactly that many values of
/// that type, so that a damaged session is an error and not a crash. Never allocates more than `rows` asks for.
std::vector<std::int64_t> decodeInt64(const Column& column, std::uint64_t rows);
std::vector<std::uint64_t> decodeUInt64(const Column& column, std::uint64_t rows);
std::vector<double> decodeFloat64(const Column& column, std::uint64_t rows);
std::vector<std::string> decodeText(const Column& column, std::uint64_t rows);

/// The column called `name`; throws BadInput when the chunk has none.
const Column& findColumn(const ColumnChunk& chunk, std::string_view name);

/// A whole chunk as bytes and back (the session's blob). fromBytes checks everything it reads (a checksum covers the
/// whole chunk) and throws BadInput; the columns' own bytes are checked by the decoders.
std::vector<std::byte> toBytes(const ColumnChunk& chunk);
ColumnChunk fromBytes(std::span<const std::byte> bytes);

} // namespace vitrine::base
