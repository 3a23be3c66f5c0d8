// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Keeps one run in a session file while it happens: a thread of its own drains the recorder every 250 ms and appends
// what it got in one transaction, so that a killed program loses at most the last second.
//
// A session that cannot be written (full disk, a lock held for long) never stops the run: it is said once, chunks wait
// in memory, and when too many wait the rest is counted as lost. A session whose file is deleted or replaced meanwhile
// does not stop it either: unsaved() says at the end that nothing was saved.
//
// A run in real time loses records when they come faster than they can be kept: they are counted, and the run's
// timeline has a gap where they were (base::GapEvent). A run in virtual time waits for the session instead: its
// producers stand still while too much waits for a drain.
//
// A limit bounds what is kept of a run that goes on for long. When a part reaches a quarter of the limit, the next part
// begins as a run of its own ("NAME, part 2"). When all parts together exceed the limit, the oldest ones are deleted. A
// part that somebody renamed, tagged or wrote a note to stays, as does one with pictures. Each part says in its metrics
// which one it is ("part"), the run that goes on with it ("next_run") and what was deleted before it
// ("dropped_parts", "dropped_bytes").

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "app/runner/recording/part_trace.h"
#include "base/clock.h"
#include "base/trace.h"
#include "sessions/session_file.h"

namespace vitrine::app {

class RunRecording {
public:
    static constexpr std::chrono::milliseconds kPeriod{250};

    /// Creates the run in `session`. `limit`: about the most bytes that it may take there; 0: no limit.
    /// `timeBase`: of the run's clock. Throws what creating throws; nothing throws afterwards.
    RunRecording(std::unique_ptr<sessions::SessionFile> session, const sessions::RunInfo& info, std::uint64_t limit = 0,
                 base::TimeBase timeBase = base::TimeBase::Monotonic);
    ~RunRecording();                            ///< without finish(): the run is written as failed
    RunRecording(const RunRecording&) = delete; // a thread holds its address
    RunRecording& operator=(const RunRecording&) = delete;

    /// The run of the present part, or of the part before it while that is being written.
    sessions::RunId run() const;
    base::TraceSink& trace();

    /// May be called on any thread. The text is written at the next period.
    void appendText(const std::string& kind, std::string_view more);
    void setText(const std::string& kind, std::string body);
    /// Texts of one of many requests: `make` gives them, from what the numbers of the present part count from.
    void appendTexts(std::int32_t request,
                     const std::function<std::vector<sessions::RunText>(const PartOrigin& origin)>& make);
    /// Says that the texts of the request are complete. Their memory is freed when they have been written.
    void closeTexts(std::int32_t request);
    void setLiveValue(std::string_view name, const nlohmann::json& value);
    /// Records that were lost before they came to trace().
    void addLost(std::uint64_t records);
    /// All records that the present part lost, wherever. Final after finish().
    std::uint64_t lostRecords() const;

    /// Whether the present part has come to its share of the limit.
    bool partIsFull() const;
    /// What is reported from here on belongs to the next part; `metrics` (an object) are those of the part that ends
    /// here alone. REQUIRES a limit. On the thread that reports, between two steps.
    void nextPart(const nlohmann::json& metrics);

    /// Writes what is left, the metrics and the end of the run, and stops the thread. Returns one sentence about what
    /// could not be written, empty when the run is saved whole: a run that was done is then written as failed with it,
    /// where even that can be written. Once; later calls return nothing.
    std::string finish(sessions::RunStatus status, const std::string& metricsJson, const std::string& error);
    /// Why the run is not in a file that others can open, as a sentence: the session was deleted, moved or replaced.
    /// Empty: it is. After finish().
    const std::string& unsaved() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::app
