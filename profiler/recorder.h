// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Turns trace events into column chunks. One recorder per run; record() may be called from any thread.
//
// Streams and their columns stand in profiler/streams.h. The owner calls drain() about every 250 ms and appends what it
// gets to the session; nothing of a chunk changes after it was drained.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/column_chunk.h"
#include "base/trace.h"

namespace vitrine::profiler {

class Recorder final : public base::TraceSink {
public:
    Recorder();
    ~Recorder() override;
    Recorder(const Recorder&) = delete; // sinks are shared by address
    Recorder& operator=(const Recorder&) = delete;

    base::StringId intern(std::string_view text) override;
    void record(const base::TraceEvent& event) override;

    /// Everything recorded since the last drain, as chunks with running sequence numbers. Encodes outside the lock.
    std::vector<base::ColumnChunk> drain();
    /// The last drain also seals the pyramids' upper levels.
    std::vector<base::ColumnChunk> finish();

    std::uint64_t events() const;
    std::uint64_t lostRecords() const; ///< dropped because drain() did not keep up with the bounded buffer

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::profiler
