// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Keeps one run in a session file while it happens: a thread of its own drains the recorder every 250 ms and appends
// what it got in one transaction, so that a killed program loses at most the last second.
//
// A session that cannot be written (full disk, a lock held for long) never stops the run: it is said once, chunks wait
// in memory, and when too many wait the rest is counted as lost.

#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/trace.h"
#include "sessions/session_file.h"

namespace vitrine::app {

class RunRecording {
public:
    static constexpr std::chrono::milliseconds kPeriod{250};

    /// Creates the run in `session`. Throws what that throws; from then on nothing here throws but finish's caller's own.
    RunRecording(std::unique_ptr<sessions::SessionFile> session, const sessions::RunInfo& info);
    ~RunRecording();                            ///< without finish(): the run is written as failed
    RunRecording(const RunRecording&) = delete; // a thread holds its address
    RunRecording& operator=(const RunRecording&) = delete;

    sessions::RunId run() const;
    base::TraceSink& trace();

    /// From any thread; kept at the next period.
    void appendText(const std::string& kind, std::string_view more);
    void setText(const std::string& kind, std::string body);
    /// Nothing more comes to it: once it is written it takes no memory.
    void closeText(const std::string& kind);
    void setLiveValue(std::string_view name, const nlohmann::json& value);
    /// Records that were lost before they came to trace().
    void addLost(std::uint64_t records);

    /// Writes what is left, the metrics and the end of the run, and stops the thread. Once.
    void finish(sessions::RunStatus status, const std::string& metricsJson, const std::string& error);

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::app
