// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Turns trace events into column chunks. One recorder per run; record() may be called from any thread.
//
// Streams and their columns stand in profiler/record/streams.h. The owner calls drain() about every 250 ms and appends what it
// gets to the session; nothing of a chunk changes after it was drained.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/column_chunk.h"
#include "base/trace.h"

namespace vitrine::profiler {

struct RecorderOptions {
    /// Records that may wait for a drain; what comes beyond is dropped and counted. Ends of what was recorded (frees, ends
    /// of scopes, out-of-memory) have the same room once more, so that totals stay right. At most 224 bytes each.
    std::size_t maxWaiting = std::size_t{1} << 20;
};

class Recorder final : public base::TraceSink {
public:
    Recorder();
    explicit Recorder(const RecorderOptions& options);
    ~Recorder() override;
    Recorder(const Recorder&) = delete; // sinks are shared by address
    Recorder& operator=(const Recorder&) = delete;

    base::StringId intern(std::string_view text) override;
    void record(const base::TraceEvent& event) override;

    /// Everything recorded since the last drain, as chunks with running sequence numbers. Encodes outside the lock.
    std::vector<base::ColumnChunk> drain();
    /// The last drain: also closes the pyramid's nodes that are not full.
    std::vector<base::ColumnChunk> finish();

    std::uint64_t events() const;
    std::uint64_t lostRecords() const; ///< dropped because drain() did not keep up with the bounded buffer

private:
    std::vector<base::ColumnChunk> take(bool last);

    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::profiler
