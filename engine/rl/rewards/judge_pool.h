// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The processes of a judging program and the answers that they judge.

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "engine/rl/rewards/judge_process.h"
#include "engine/rl/rewards/reward_command.h"
#include "engine/rl/rewards/rewarder.h"

namespace vitrine::engine {

/// Works in rounds. One thread, in which SIGPIPE is blocked. Its processes are gone with it.
class JudgePool {
public:
    explicit JudgePool(RewardCommandOptions options);
    ~JudgePool();
    JudgePool(const JudgePool&) = delete; // owns processes
    JudgePool& operator=(const JudgePool&) = delete;

    void add(Attempt attempt) { waiting_.push_back(std::move(attempt)); }
    /// Forgets all attempts and ends all processes; new ones come with new attempts.
    void drop();
    /// Gives work to processes, waits until something happens or `wake` can be read, and sees to it. `wake` does not
    /// wait when it is read; all that it has is read.
    std::vector<Judgement> round(int wake);
    const RewardCommandCounts& counts() const { return counts_; }

private:
    using Clock = std::chrono::steady_clock;
    using Count = std::int64_t RewardCommandCounts::*;

    struct Slot {
        std::unique_ptr<JudgeProcess> process;
        std::optional<std::int64_t> attempt;      ///< the id of what it judges
        Clock::time_point deadline;               ///< for its answer
        std::optional<Clock::time_point> closeBy; ///< it says no more: when it must have ended
        std::size_t polled = 0;                   ///< the first of its descriptors in the last round
    };

    void giveWork();
    void give(Slot& slot);
    bool start(Slot& slot);
    int longestWait() const;
    /// What the process has said and whether it is still well.
    void look(Slot& slot);
    void hear(Slot& slot);
    void takeAnswer(Slot& slot, const std::string& line);
    double secondsOf(const Slot& slot) const;
    void watchMemory();
    /// Ends the process of a slot for a reason. Its attempt, if it has one, has that as its error.
    void fail(Slot& slot, Count count, const std::string& reason);
    void retire(Slot& slot);
    void judged(Judgement judgement) { judged_.push_back(std::move(judgement)); }

    RewardCommandOptions options_;
    const base::Pipe lifeLine_; ///< of all processes
    RewardCommandCounts counts_;
    std::deque<Attempt> waiting_;
    std::vector<Slot> slots_;
    std::vector<std::unique_ptr<JudgeProcess>> ending_; ///< killed, and not gone yet
    std::vector<Judgement> judged_;                     ///< in this round
    std::int64_t failures_ = 0;                         ///< since the last good answer
    std::int64_t idleFailures_ = 0;                     ///< of processes that judged nothing
    Clock::time_point nextStart_;                       ///< no process starts before
    Clock::time_point nextScan_;                        ///< of the memory
};

} // namespace vitrine::engine
