// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Turns trace events into column chunks. One recorder per run; record() may be called from any thread.
//
// Streams and their columns stand in profiler/record/streams.h. The owner calls drain() about every 250 ms and appends
// what it gets to the session; nothing of a chunk changes after it was drained.
//
// A bounded number of records may wait for a drain. A recorder of a run in real time drops what comes beyond: it counts
// the lost records and records the gap (base::GapEvent). A recorder of a producer that can wait (a run in virtual time,
// an import) holds the producer's thread until a drain has made room, and loses nothing.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/column_chunk.h"
#include "base/trace.h"

namespace vitrine::profiler {

struct RecorderOptions {
    /// Records that may wait for a drain, at most 224 bytes each. Without drainSoon, records beyond are dropped, but
    /// ends of what was recorded (frees, ends of scopes, out-of-memory) have the same room once more, so that totals
    /// stay right.
    std::size_t maxWaiting = std::size_t{1} << 20;
    /// Set: record() waits when there is no room, and calls this before it waits. It must make another thread call
    /// drain() soon, and may be called from any thread that records; it must not record.
    std::function<void()> drainSoon;
};

class Recorder final : public base::TraceSink {
public:
    Recorder();
    explicit Recorder(const RecorderOptions& options);
    ~Recorder() override;
    Recorder(const Recorder&) = delete; // sinks are shared by address
    Recorder& operator=(const Recorder&) = delete;

    base::StringId intern(std::string_view text) override;
    /// The thread that drained last never waits: its records go beyond the bound.
    void record(const base::TraceEvent& event) override;

    /// record() in two halves, for callers that hold locks which the draining thread may want: waitForRoom() before
    /// they take the locks, recordWithoutWaiting() under them. In a recorder that waits the second half never drops a
    /// record.
    void waitForRoom();
    void recordWithoutWaiting(const base::TraceEvent& event);
    /// Draining has ended: waiting threads wake, and from here on the recorder drops what has no room.
    void stopWaiting();

    /// Everything recorded since the last drain, as chunks with running sequence numbers. Encodes outside the lock.
    std::vector<base::ColumnChunk> drain();
    /// The last drain: also closes the pyramid's nodes that are not full, and calls stopWaiting().
    std::vector<base::ColumnChunk> finish();

    std::uint64_t events() const;
    /// Dropped because drain() did not keep up, or because no reader would take them. Reported gaps are not counted.
    std::uint64_t lostRecords() const;

private:
    std::vector<base::ColumnChunk> take(bool last);

    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::profiler
