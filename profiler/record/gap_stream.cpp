// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/record/column_io.h"
#include "profiler/record/event_streams.h"

namespace vitrine::profiler {

void GapStream::write(ColumnWriter& w, std::span<const Event> rows) {
    w.timeColumn("begin", rows, [](const Event& r) { return r.begin; });
    w.timeColumn("end", rows, [](const Event& r) { return r.end; });
    w.unsignedColumn("records", rows, [](const Event& r) { return r.records; });
    w.unsignedColumn("memory_records", rows, [](const Event& r) { return r.memoryRecords; });
}

void GapStream::read(const ChunkReader& in, std::vector<Event>& events) {
    const auto begin = in.timeColumn("begin");
    const auto end = in.timeColumn("end");
    const auto records = in.unsignedColumn("records");
    const auto memoryRecords = in.unsignedColumn("memory_records");
    for (std::size_t row = 0; row < in.rows(); ++row) {
        if (end[row] < begin[row]) {
            throw in.damaged("end", "a gap ends before it begins");
        }
        events.push_back({begin[row], end[row], records[row], memoryRecords[row]});
    }
}

} // namespace vitrine::profiler
