// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs a queue, one run after the other, for the window and for the command line alike. It decides which run is next,
// takes what a run reports, ends what the rule ends, and brings back what was interrupted or lost. How a run is started
// and where the queue is kept is the affair of its QueueHost. It never waits, and belongs to one thread at a time.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "engine/workload/sweep/run_queue.h"

namespace vitrine::engine {

/// What a program does for its queue.
class QueueHost {
public:
    virtual ~QueueHost() = default;
    /// Starts a run. Where it cannot start, QueueDriver::ended() is told so, as of a run that failed.
    virtual void start(const QueuedRun& run) = 0;
    /// Asks the run that is going on to end soon.
    virtual void stop() = 0;
    /// Whether the session has a record of a run of this experiment, JSON. isSameExperiment() compares.
    virtual bool isRecorded(const std::string& spec) const = 0;
    /// Writes the queue into the session.
    virtual void keep(const RunQueue& queue) = 0;
    /// Writes into the session what the queue knows of a run that has ended: its sweep and its name.
    virtual void mark(const QueuedRun& run) = 0;
};

/// How a run ended.
struct QueueEnd {
    enum class How : std::uint8_t { Done, Cancelled, Failed };
    How how = How::Done;
    std::int64_t run = 0; ///< number in the session; 0: what started() said
    std::string error;    ///< one sentence
    std::string metricsJson;
};

/// Where an interrupted run can go on. Both are experiments as JSON.
struct GoingOn {
    std::optional<std::string> fromCheckpoint; ///< nothing: it had written none
    std::optional<std::string> overItself;     ///< nothing: it leaves nothing in a folder
};

class QueueDriver {
public:
    enum class After : std::uint8_t {
        Ended,
        Lost, ///< its process or its device died for the first time: findGoingOn(), then goOn()
    };

    explicit QueueDriver(QueueHost& host) : host_(host) {}

    /// Changes to the queue are kept by keep().
    RunQueue& queue() { return queue_; }
    const RunQueue& queue() const { return queue_; }
    void load(RunQueue queue);
    void keep() { host_.keep(queue_); }

    /// The run to start now, of one sweep or of all (empty). Nothing while one runs or is being brought back, the queue
    /// is paused or none waits.
    std::optional<std::int64_t> next(std::string_view sweep = {}) const;
    /// False, and nothing happens, where the queue does not let it run.
    bool start(std::int64_t number);
    /// The run that this driver has started; 0: none.
    std::int64_t own() const { return own_; }
    const QueuedRun* current() const;

    // What the run reports. All do nothing without a run.
    void started(std::int64_t run);
    /// False: there is no run.
    bool progress(std::string_view what, std::uint64_t done, std::uint64_t total);
    /// True where an evaluation came. The rule of the sweep may have asked the run to end then.
    bool metric(std::string_view name, double value);
    After ended(const QueueEnd& end);
    void endByUser(); ///< asks the run to end

    /// Looks at the folder of an interrupted run. It may wait until the run's process has let go of the folder, so the
    /// window calls it on another thread.
    static GoingOn findGoingOn(const std::string& spec);
    /// An interrupted run waits again: from its last checkpoint, or from its beginning, over what it left. A run that
    /// never began does not touch its folder's content. Returns what becomes of it, "goes on from ..".
    std::string goOn(std::int64_t number, const GoingOn& where);
    /// The person who goes on with a run gives it a new chance to be brought back.
    void forgiveLoss(std::int64_t number) { broughtBack_.erase(number); }

private:
    QueueHost& host_;
    RunQueue queue_;
    std::int64_t own_ = 0, lost_ = 0; ///< `lost_`: waits for goOn(); 0: none
    bool endedByRule_ = false, endedByUser_ = false;
    bool worked_ = false;                ///< the run has reported work, so its folder is its own
    std::set<std::int64_t> broughtBack_; ///< runs that were lost once
    std::set<std::int64_t> begun_;       ///< those of them that had worked
};

/// Whether two experiments, JSON, ask for the same.
bool isSameExperiment(const std::string& one, const std::string& other);

} // namespace vitrine::engine
