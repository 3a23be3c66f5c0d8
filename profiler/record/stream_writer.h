// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Records of one stream to chunks; for the encoders of this folder.

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/record/column_io.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {

/// Cuts a stream into chunks of at most kRowsPerChunk rows and writes `describe(table, records)` for each.
template <class Record, class Describe>
void encodeStream(std::string_view stream, std::span<const Record> records, ChunkNumbers& numbers,
                  std::vector<base::ColumnChunk>& out, Describe describe) {
    for (std::size_t first = 0; first < records.size(); first += kRowsPerChunk) {
        const std::span<const Record> piece = records.subspan(first, std::min(kRowsPerChunk, records.size() - first));
        ColumnWriter writer(std::string(stream), numbers.take(std::string(stream)), piece.size());
        describe(writer, piece);
        out.push_back(std::move(writer).finish());
    }
}

} // namespace vitrine::profiler
