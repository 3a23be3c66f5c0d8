// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/record/column_io.h"

#include <algorithm>
#include <fmt/format.h>

namespace vitrine::profiler {

ChunkReader::ChunkReader(const base::ColumnChunk& chunk) : chunk_(chunk) {
    if (chunk.rows > base::kMaxChunkRows) {
        throw damaged("rows", "more than a chunk may have");
    }
}

bool ChunkReader::has(std::string_view name) const {
    return std::ranges::find(chunk_.columns, name, &base::Column::name) != chunk_.columns.end();
}

std::vector<std::uint64_t> ChunkReader::unsignedColumn(std::string_view name, std::uint64_t max) const {
    std::vector<std::uint64_t> values = base::decodeUInt64(base::findColumn(chunk_, name), chunk_.rows);
    if (std::ranges::any_of(values, [max](std::uint64_t value) { return value > max; })) {
        throw damaged(name, "a value is out of range");
    }
    return values;
}

std::vector<std::int64_t> ChunkReader::signedColumn(std::string_view name, std::int64_t min, std::int64_t max) const {
    std::vector<std::int64_t> values = base::decodeInt64(base::findColumn(chunk_, name), chunk_.rows);
    if (std::ranges::any_of(values, [min, max](std::int64_t value) { return value < min || value > max; })) {
        throw damaged(name, "a value is out of range");
    }
    return values;
}

std::vector<std::int64_t> ChunkReader::timeColumn(std::string_view name) const {
    return signedColumn(name, 0, kMaxTime);
}

std::vector<double> ChunkReader::realColumn(std::string_view name) const {
    return base::decodeFloat64(base::findColumn(chunk_, name), chunk_.rows);
}

std::vector<std::string> ChunkReader::textColumn(std::string_view name) const {
    return base::decodeText(base::findColumn(chunk_, name), chunk_.rows);
}

base::BadInput ChunkReader::damaged(std::string_view column, std::string_view why) const {
    return base::BadInput(fmt::format("stream {}: {}: {}; the session is damaged", chunk_.stream, column, why));
}

} // namespace vitrine::profiler
