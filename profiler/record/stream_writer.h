// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Records of streams to chunks and back; for the encoders of this folder.

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
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

/// Chunks of all events of a list's streams.
template <class List>
void encodeEvents(const typename List::Batch& batch, ChunkNumbers& numbers, std::vector<base::ColumnChunk>& out) {
    List::each([&]<class Stream>() {
        using Event = typename Stream::Event;
        encodeStream<Event>(Stream::kName, std::get<std::vector<Event>>(batch), numbers, out, &Stream::write);
    });
}

/// Adds the rows of a chunk to its stream's events; false for a stream that is not in the list.
template <class List> bool decodeEvents(const base::ColumnChunk& chunk, typename List::Batch& batch) {
    bool known = false;
    List::each([&]<class Stream>() {
        if (chunk.stream == Stream::kName) {
            Stream::read(ChunkReader(chunk), std::get<std::vector<typename Stream::Event>>(batch));
            known = true;
        }
    });
    return known;
}

} // namespace vitrine::profiler
