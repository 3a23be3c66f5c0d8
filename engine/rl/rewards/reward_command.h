// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A program of the user's that judges answers. It is started once per process and kept running; it reads a JSON object
// a line and answers each with a line, in the same order:
//   {"id": 3, "prompt": "...", "messages": [...], "answer": "...", "cut": false, "turn": 0, "row": {...},
//    "evaluation": false}
//   0.5        or {"reward": 0.5} or {"score": 0.5}        or {"message": "..."}, which goes on with the conversation
// An object may have other members; an "id" must be the one that was asked. `prompt` is the text of the last message of
// the user's, `row` the members of the problem's line. Errors of the program go to the log. A program that ends, is
// silent too long, takes too much memory or prints what is no answer costs the answer that it had: its judgement has an
// error, and a new process takes its place. It cannot end the run.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/rl/rewards/rewarder.h"

namespace vitrine::engine {

struct RewardCommandOptions {
    std::string command;                       ///< a line for /bin/sh -c
    std::int64_t processes = 4;                ///< that judge at the same time, 1 to 1024
    std::chrono::milliseconds timeout{30'000}; ///< for one answer, a day at most; for the first, the start counts too
    /// Resident bytes of one process and its children, looked at about ten times a second; what they share counts for
    /// each. 0: no limit.
    std::uint64_t memoryBytes = std::uint64_t{4} << 30;
};

/// Counts over the life of a command.
struct RewardCommandCounts {
    std::int64_t judged = 0; ///< good answers
    std::int64_t crashes = 0, timeouts = 0, badAnswers = 0, overMemory = 0;
};

/// Starts nothing yet: processes come with the first answers, and a thread that talks to them while others work. Its
/// processes and their children are gone with it, at most two seconds later. A program that starts a new session or
/// process group of its own must see to its end itself. This holds where Vitrine is killed, too.
class RewardCommand final : public Rewarder {
public:
    /// Throws BadInput "reward_command: what" for an empty command and for limits out of their range.
    explicit RewardCommand(const RewardCommandOptions& options);
    ~RewardCommand() override;
    RewardCommand(const RewardCommand&) = delete; // owns processes
    RewardCommand& operator=(const RewardCommand&) = delete;

    void judge(Attempt attempt) override;
    std::vector<Judgement> take(bool wait) override;
    std::int64_t waiting() const override;
    /// Ends all processes. Returns before they are gone.
    void drop() override;
    /// As of the last take().
    const RewardCommandCounts& counts() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::engine
