// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs a sweep to its end on one host, and waits for it: prices its runs, holds back what does not fit, and lets the
// queue's driver run one after the other. The session keeps the queue, so that another call can go on with it.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/runner/host/run_host.h"
#include "base/stop.h"
#include "engine/workload/common/output_files.h"
#include "engine/workload/sweep/queue_driver.h"
#include "sessions/session_file.h"

namespace vitrine::app {

/// The text of a session that holds the queue.
inline constexpr const char* kQueueText = "queue";

/// What happens, for a person who watches. Called on the thread of run() or on that of a run.
struct SweepListener {
    std::function<void(const engine::QueuedRun& run)> priced;
    std::function<void(const engine::QueuedRun& run)> started, ended;
    /// Its process was lost; `what` says how it goes on: "goes on from its last checkpoint".
    std::function<void(const engine::QueuedRun& run, const std::string& what)> broughtBack;
    std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)> progress;
};

class SweepDriver final : private engine::QueueHost {
public:
    /// `sessionFile` empty: nothing is kept. Throws BadInput for a session that cannot be had.
    SweepDriver(RunHost& host, const std::string& sessionFile, SweepListener listener);
    SweepDriver(const SweepDriver&) = delete; // the run's thread holds its address
    SweepDriver& operator=(const SweepDriver&) = delete;
    ~SweepDriver() override = default;

    /// Adds the sweep to the queue of the session; its name there is returned. Throws BadInput, also where another
    /// sweep or run writes into the same folder.
    std::string add(engine::SweepPlan plan);
    /// Takes up the sweep of this name that was interrupted or paused: what has ended stays so, but for runs whose
    /// process died. Throws BadInput where the session has no such sweep, or one with other values.
    void resume(const engine::SweepPlan& plan);

    /// Runs what waits of this sweep. Returns when nothing of it can start any more.
    void run(const std::string& sweep);
    /// Ends after the run that is going on. Any thread.
    void stopAfterRun();

    const engine::RunQueue& queue() const { return driver_.queue(); } ///< not while run() is going on
    /// The results of a run of this call, JSON; empty: it has none.
    const std::string& metrics(std::int64_t number) const;

private:
    void start(const engine::QueuedRun& run) override;
    void stop() override { host_.stop(); }
    bool isRecorded(const std::string& spec) const override;
    void keep(const engine::RunQueue& queue) override;
    void mark(const engine::QueuedRun& run) override;

    engine::RunQueue& edited() { return driver_.queue(); } ///< the queue, to change it
    void lock(const engine::SweepPlan& plan);
    void recoverOthers();
    void price(const std::string& sweep);
    void take(const nlohmann::json& message);
    void finish(std::int64_t number, const RunOutcome& outcome);

    RunHost& host_;
    std::string file_;
    SweepListener listener_;
    std::unique_ptr<sessions::SessionFile> session_; ///< null: none
    engine::QueueDriver driver_{*this};
    std::map<std::int64_t, std::string> metrics_;
    std::mutex mutex_; ///< of driver_ and session_ while a run is going on
    std::atomic<bool> stopping_ = false;
    std::vector<engine::FolderLock> locks_;
    base::StopSource pricing_;
    std::optional<RunOutcome> refused_; ///< what kept the run from starting
};

} // namespace vitrine::app
