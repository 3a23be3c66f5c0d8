// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a batch did that served requests: its steps, what each slot did, the life of each request, and the numbers that
// batches are compared by. Times are nanoseconds since the trace began (its first arrival or step), so that two runs of
// one trace lie on one axis. Pure functions over immutable snapshots; any thread.

#include <QString>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/trace.h"
#include "profiler/timeline/timeline_rows.h"
#include "sessions/session_file.h"
#include "ui/models/batching/batch_runs.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

/// One request from its arrival to its end; -1: has not happened.
struct BatchRequest {
    std::int32_t number = 0;
    base::TimeNs arrived = 0;
    base::TimeNs admitted = -1;
    base::TimeNs firstToken = -1;
    base::TimeNs end = -1;
    std::int32_t slot = -1; ///< its last one
    std::int64_t promptTokens = 0;
    std::int64_t outputTokens = 0;
    std::int32_t preemptions = 0;
    base::RequestChange phase = base::RequestChange::Arrived; ///< the last one
    QString reason;                                           ///< of its end

    bool finished() const { return phase == base::RequestChange::Finished; }
    /// Seconds: to the first token, for each token after it, from the arrival to the end. Nothing until they are known.
    std::optional<double> ttft() const;
    std::optional<double> tpot() const;
    std::optional<double> endToEnd() const;
};

/// A change of what a request does: where its lane changes colour.
enum class RequestState : std::uint8_t { Queued, Prefill, Decode, Preempted, Padding, Idle };
struct RequestPiece {
    base::TimeNs begin = 0, end = 0;
    RequestState state = RequestState::Queued;
};

/// Seconds of all requests that have them, ascending.
struct BatchLatencies {
    std::vector<double> ttft, tpot, endToEnd;
};

struct BatchSide {
    sessions::RunId run = 0;
    QString mode; ///< "continuous", "static"
    /// What distinguishes batches of one trace, by the experiment's keys; batchSettingText() says them.
    std::map<std::string, std::string> settings;
    std::int32_t slotCount = 0;
    base::TimeNs origin = 0; ///< of the run's clock
    base::TimeNs end = 0;    ///< of the last step or request
    bool live = false;
    bool stopped = false; ///< before its requests were through: cancelled, failed, interrupted
    bool virtualTime = false;
    std::vector<base::BatchStepEvent> steps;     ///< by begin, without gaps in their numbers
    std::vector<base::SlotSpanEvent> spans;      ///< by slot, then by begin
    std::vector<std::size_t> slotBegins;         ///< slots + 1 places in spans
    std::vector<BatchRequest> requests;          ///< by number
    std::vector<base::RequestEvent> borders;     ///< by time; reasons are those of the timeline
    std::vector<RequestPiece> pieces;            ///< request after request, each by begin
    std::vector<std::size_t> pieceBegins;        ///< requests + 1 places in pieces
    std::int64_t poolPages = 0;                  ///< most that were in any state together
    std::int64_t generated = 0, decodeSteps = 0; ///< steps in which a request got a token
    std::int64_t prefillTokens = 0, paddingTokens = 0;
    std::int64_t preemptions = 0;
    std::int32_t finished = 0, refused = 0, cancelled = 0;
    std::int64_t mostPages = 0;
    BatchLatencies latencies;

    bool empty() const { return steps.empty() && requests.empty(); }
    double seconds() const { return static_cast<double>(end) * 1e-9; }
    /// A part of a server's session: it knows of requests that arrived before it began.
    bool beginsLater() const { return origin < 0; }
    /// Generated tokens over the time since the first arrival; since the beginning of a part, whose tokens are those of
    /// its own time: its metrics count the same.
    double tokensPerSecond() const;
    /// Tokens for each slot and step in which tokens were made.
    double utilization() const;
    /// The step that runs at `time`, or the last one before it; nothing before the first.
    const base::BatchStepEvent* stepAt(base::TimeNs time) const;
    const BatchRequest* request(std::int32_t number) const;
};
using BatchSidePtr = std::shared_ptr<const BatchSide>;

BatchSidePtr batchSide(const sessions::RunInfo& run, const profiler::RunTimeline& timeline);

struct BatchPair {
    BatchSidePtr a, b;              ///< either may be null
    std::optional<bool> sameTokens; ///< every request that both finished got the same tokens; nothing: not known
    std::int32_t finishedInBoth = 0;
    /// Of A and B: "Continuous, preemption swap" names what differs between the two; the heads of columns are one word.
    std::array<QString, 2> titles, heads;
};
BatchPair batchPair(BatchSidePtr a, BatchSidePtr b, const profiler::RunTimeline* timelineA,
                    const profiler::RunTimeline* timelineB);

} // namespace vitrine::ui
