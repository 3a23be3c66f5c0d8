// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows to columns and back, for the streams of this folder.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/column_chunk.h"
#include "base/error.h"
#include "base/trace.h"

namespace vitrine::profiler {

inline constexpr std::string_view kShapeColumns[base::kMaxTraceDimensions] = {"shape0", "shape1", "shape2", "shape3",
                                                                              "shape4"};

// A row of the templates stream is one event of a template; the first row of each template is its header.
enum class TemplateRow : std::uint8_t { Header, Allocation, Free, ScopeBegin, ScopeEnd, Span };
inline constexpr std::uint64_t kTemplateRowKinds = 6;

/// Times of a run stay within 0 and 2^61 ns (73 years), so that sums and differences cannot overflow.
inline constexpr base::TimeNs kMaxTime = base::TimeNs{1} << 61;

/// The most that columns of names, which are numbered, and columns of 32-bit integers hold.
inline constexpr std::uint64_t kMaxName = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

/// The rank of a row's device (base::DeviceRank): left out in runs on one device.
inline constexpr std::string_view kDeviceColumn = "device";
inline constexpr std::string_view kOpCategoryColumn = "op_category";
inline constexpr std::string_view kFormatColumn = "format";
inline constexpr std::uint64_t kMaxDevice = std::numeric_limits<base::DeviceRank>::max();

/// Builds one chunk column by column. Time columns keep to the range of times and widen the chunk's time range.
class ColumnWriter {
public:
    ColumnWriter(std::string stream, std::uint64_t sequence, std::size_t rows) {
        chunk_.stream = std::move(stream);
        chunk_.sequence = sequence;
        chunk_.rows = rows;
    }

    template <class Row, class Field>
    void unsignedColumn(std::string_view name, std::span<const Row> rows, Field field) {
        put<std::uint64_t>(name, rows, field);
    }
    template <class Row, class Field> void signedColumn(std::string_view name, std::span<const Row> rows, Field field) {
        put<std::int64_t>(name, rows, field);
    }
    template <class Row, class Field> void realColumn(std::string_view name, std::span<const Row> rows, Field field) {
        put<double>(name, rows, field);
    }
    template <class Row, class Field> void textColumn(std::string_view name, std::span<const Row> rows, Field field) {
        put<std::string>(name, rows, field);
    }
    template <class Row, class Field> void timeColumn(std::string_view name, std::span<const Row> rows, Field field) {
        const auto inRange = [&](const Row& row) { return std::clamp<base::TimeNs>(field(row), 0, kMaxTime); };
        for (const Row& row : rows) {
            const base::TimeNs time = inRange(row);
            chunk_.timeBegin = hasTime_ ? std::min(chunk_.timeBegin, time) : time;
            chunk_.timeEnd = hasTime_ ? std::max(chunk_.timeEnd, time) : time;
            hasTime_ = true;
        }
        put<std::int64_t>(name, rows, inRange);
    }

    /// A column that is left out when it is 0 everywhere, which is what readers take it for then.
    template <class Row, class Field>
    void optionalColumn(std::string_view name, std::span<const Row> rows, Field field) {
        if (std::ranges::any_of(rows, [&](const Row& row) { return field(row) != 0; })) {
            put<std::uint64_t>(name, rows, field);
        }
    }

    base::ColumnChunk finish() && { return std::move(chunk_); }

private:
    template <class Value, class Row, class Field>
    void put(std::string_view name, std::span<const Row> rows, Field field) {
        std::vector<Value> values;
        values.reserve(rows.size());
        for (const Row& row : rows) {
            values.push_back(static_cast<Value>(field(row)));
        }
        chunk_.columns.push_back(base::encodeColumn(std::string(name), std::span<const Value>(values)));
    }

    base::ColumnChunk chunk_;
    bool hasTime_ = false;
};

/// Reads columns of a chunk and checks their ranges. Every failure is BadInput "STREAM: COLUMN: ...".
class ChunkReader {
public:
    explicit ChunkReader(const base::ColumnChunk& chunk);

    std::size_t rows() const { return static_cast<std::size_t>(chunk_.rows); }
    bool has(std::string_view name) const; ///< for columns that only some chunks have; the others throw without theirs
    std::vector<std::uint64_t> unsignedColumn(std::string_view name,
                                              std::uint64_t max = std::numeric_limits<std::uint64_t>::max()) const;
    /// Zeros where the chunk has no such column.
    std::vector<std::uint64_t> optionalColumn(std::string_view name, std::uint64_t max) const {
        return has(name) ? unsignedColumn(name, max) : std::vector<std::uint64_t>(rows());
    }
    std::vector<std::int64_t> signedColumn(std::string_view name,
                                           std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                                           std::int64_t max = std::numeric_limits<std::int64_t>::max()) const;
    std::vector<std::int64_t> timeColumn(std::string_view name) const; ///< from 0 to kMaxTime
    std::vector<double> realColumn(std::string_view name) const;
    std::vector<std::string> textColumn(std::string_view name) const;

    base::BadInput damaged(std::string_view column, std::string_view why) const;

private:
    const base::ColumnChunk& chunk_;
};

} // namespace vitrine::profiler
