// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs that wait for one machine: their order, their states, their clock. It starts nothing itself: who owns it asks
// next(), starts that run and tells what becomes of it. One thread at a time.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workload/sweep/sweep_plan.h"

namespace vitrine::engine {

enum class QueueState : std::uint8_t {
    Waiting,
    Running,
    DoesNotFit, ///< held back: its planned peak is above the budget
    Paused,     ///< held back by the user, or interrupted when the program ended
    Finished,
    EndedByRule,
    Failed,
    EndedByUser,
};
inline constexpr int kQueueStates = 8;
/// "waiting", "does not fit", "ended by the rule", "ended by you": words of tables.
std::string_view queueStateWords(QueueState state);
/// Finished, ended or failed: nothing becomes of it any more.
bool hasEnded(QueueState state);
/// Finished or ended by the rule.
bool isDone(QueueState state);
/// Whether a run may go from one state to the other.
bool canBecome(QueueState from, QueueState to);

struct QueueEvaluation {
    std::int64_t step = 0;
    double value = 0; ///< loss, or reward of a run that earns them

    bool operator==(const QueueEvaluation& other) const = default;
};

/// What the planner says of a run before it starts.
struct QueuePrice {
    bool fits = true;
    std::uint64_t peak = 0, budget = 0;
    double seconds = 0;      ///< of the whole run; 0: not known
    std::string nearest;     ///< the nearest change in words; empty: none was found
    std::string nearestSpec; ///< the experiment with that change, JSON
    std::uint64_t nearestPeak = 0;
    double nearestTime = 0; ///< its step time over the one before
    std::string error;      ///< why there is no price

    bool operator==(const QueuePrice& other) const = default;
};

struct QueuedRun {
    std::int64_t number = 0; ///< "#38", given by the queue
    std::string name, sweep; ///< `sweep`: name of its plan; empty: none
    SweepValues values;
    std::string spec; ///< the experiment, JSON
    QueueState state = QueueState::Waiting;
    bool interrupted = false; ///< paused because the program ended while it ran
    bool lost = false;        ///< failed because its process or its device did, not by what it was asked
    std::optional<QueuePrice> price;
    std::string reason; ///< of its end, one sentence

    std::int64_t run = 0; ///< number in the session; 0: none
    std::int64_t step = 0, steps = 0;
    std::uint64_t peak = 0; ///< measured
    std::int64_t startedMs = 0, endedMs = 0;
    double tokensPerSecond = 0;
    bool earnsRewards = false;   ///< by its workload: values are rewards, and higher is better; else losses
    std::optional<double> value; ///< newest loss or reward of a step
    std::vector<QueueEvaluation> evaluations;

    bool operator==(const QueuedRun& other) const = default;
};

/// When a run is planned to begin and to end.
struct QueueTime {
    std::int64_t number = 0;
    std::int64_t beginMs = 0, endMs = 0;
    bool known = true; ///< false: it or one before it has no planned time
};

/// A run's newest evaluation against the best of its sweep at the same step.
struct RuleVerdict {
    std::int64_t step = 0;
    double value = 0, best = 0;
    double behind = 0;           ///< by how much it is worse; below zero: better
    std::int64_t bestNumber = 0; ///< of the run that has the best value
    bool ends = false;           ///< the rule of the sweep ends the run here
};

class RunQueue {
public:
    /// Failures one after the other that always pause the queue.
    static constexpr int kMostFailures = 3;

    // Filling it.
    std::int64_t add(QueuedRun run); ///< gives it a number; it waits
    /// Adds a plan and its runs, and gives the plan another name where there is one of that name. Returns the name.
    /// Throws BadInput.
    std::string addSweep(SweepPlan plan);
    bool remove(std::int64_t number); ///< one that waits, is held back or paused
    /// Moves a run that has not begun to a place among those that have not begun.
    bool move(std::int64_t number, std::size_t place);
    /// Other settings for a run that has not begun; it has no price then.
    bool edit(std::int64_t number, const std::string& spec);
    bool setPrice(std::int64_t number, const QueuePrice& price);
    bool hold(std::int64_t number);    ///< waiting or held back: becomes paused
    bool release(std::int64_t number); ///< paused: waits again, or is held back where it does not fit
    bool setRule(const std::string& sweep, const std::optional<StopRule>& rule);
    /// Numbers of new runs are above this one.
    void numberAbove(std::int64_t number);

    // Running it.
    /// The run to start now; nothing while one runs, the queue is paused or none waits.
    std::optional<std::int64_t> next() const;
    bool start(std::int64_t number, std::int64_t nowMs);
    /// Ends the running one. `state` is one that hasEnded() says yes to.
    bool end(std::int64_t number, QueueState state, const std::string& reason, std::int64_t nowMs);
    void pauseAfterRun(bool on); ///< without a run it pauses at once
    bool pausesAfterRun() const { return pauseAfterRun_; }
    void pause(std::string reason); ///< at once; a sentence, or nothing to say
    void resume();
    bool paused() const { return paused_; }
    const std::string& pauseReason() const { return pauseReason_; }
    void setGoOnAfterFailure(bool on) { goOn_ = on; }
    bool goesOnAfterFailure() const { return goOn_; }
    /// After the program ended while the queue worked: the run is paused as interrupted, and so is the queue, so that
    /// nothing starts by itself.
    void recover();
    /// The running one is paused as interrupted, to go on where it was: its process was lost. It counts as no failure.
    bool interrupt(std::int64_t number);
    /// A run that was lost is paused as interrupted, to go on where it was.
    bool bringBack(std::int64_t number);

    // Reading it.
    const std::vector<QueuedRun>& runs() const { return runs_; } ///< in order
    const QueuedRun* find(std::int64_t number) const;
    QueuedRun* find(std::int64_t number);
    const QueuedRun* running() const;
    const std::map<std::string, SweepPlan, std::less<>>& sweeps() const { return sweeps_; }
    std::vector<const QueuedRun*> runsOf(std::string_view sweep) const;
    /// Of the running one and those that wait, one after the other from now on: sums of planned times.
    std::vector<QueueTime> clock(std::int64_t nowMs) const;
    /// Of the newest evaluation; nothing without one, or where no other run of the sweep was evaluated at that step.
    std::optional<RuleVerdict> verdict(std::int64_t number) const;

    nlohmann::json toJson() const;
    /// Nothing for what is no queue.
    static std::optional<RunQueue> read(std::string_view json);

private:
    bool become(QueuedRun& run, QueueState state);

    std::vector<QueuedRun> runs_;
    std::map<std::string, SweepPlan, std::less<>> sweeps_;
    std::int64_t last_ = 0;
    bool goOn_ = true, paused_ = false, pauseAfterRun_ = false;
    int failures_ = 0; ///< one after the other
    std::string pauseReason_;
};

/// Whether an experiment (JSON) samples answers that earn rewards: then its runs are compared by these.
bool earnsRewards(const nlohmann::json& spec);
/// By how much a value is worse than another one; below zero: better.
double behindBy(double value, double other, bool rewards);

/// Seconds that the running one still has by its plan.
double secondsLeft(const QueuedRun& run, std::int64_t nowMs);

} // namespace vitrine::engine
