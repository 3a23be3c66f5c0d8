// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rewards/reward_command.h"

#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <fmt/format.h>
#include <mutex>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <unordered_set>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"
#include "engine/rl/rewards/judge_pool.h"

namespace vitrine::engine {

namespace {

constexpr std::int64_t kMostJudges = 1024;
constexpr std::chrono::milliseconds kLongestTake{100};
constexpr std::chrono::hours kLongestTimeout{24};

void checkOptions(const RewardCommandOptions& options) {
    if (options.command.find_first_not_of(" \t\r\n") == std::string::npos) {
        throw base::BadInput("reward_command: is empty; give the command line of a program that judges");
    }
    if (options.command.find('\0') != std::string::npos) {
        throw base::BadInput("reward_command: has a NUL byte");
    }
    if (options.processes < 1 || options.processes > kMostJudges) {
        throw base::BadInput(
            fmt::format("reward_command: {} processes; 1 to {} can judge", options.processes, kMostJudges));
    }
    if (options.timeout.count() <= 0 || options.timeout > kLongestTimeout) {
        throw base::BadInput("reward_command: the time for an answer must be more than 0 and a day at most");
    }
}

} // namespace

struct RewardCommand::State {
    explicit State(RewardCommandOptions given) : options(std::move(given)) {
        base::setNonBlocking(wake.read);
        base::setNonBlocking(wake.write);
    }

    /// The thread that talks to the processes.
    void work() {
        // The end of a process is an error of a write. The signal stays with this thread, and goes with it.
        sigset_t pipe;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
        try {
            JudgePool pool(options);
            while (workOnce(pool)) {
            }
        } catch (const std::exception& error) {
            const std::lock_guard lock(mutex);
            broken = fmt::format("reward_command: {}", error.what());
            failAll();
        }
        arrived.notify_all();
    }

    /// A round; false: it was the last.
    bool workOnce(JudgePool& pool) {
        bool forget = false;
        std::deque<Attempt> news;
        {
            const std::lock_guard lock(mutex);
            if (stopping) {
                return false;
            }
            forget = std::exchange(dropping, false);
            news.swap(handedIn);
        }
        if (forget) {
            pool.drop();
        }
        for (Attempt& attempt : news) {
            pool.add(std::move(attempt));
        }
        std::vector<Judgement> judged = pool.round(wake.read.get());
        const std::lock_guard lock(mutex);
        poolCounts = pool.counts();
        if (!dropping) { // else they are of what was dropped
            for (Judgement& judgement : judged) {
                if (const auto one = open.find(judgement.id); one != open.end()) {
                    open.erase(one);
                }
                done.push_back(std::move(judgement));
            }
        }
        if (!done.empty()) {
            arrived.notify_all();
        }
        return true;
    }

    /// With the lock held: nobody judges any more.
    void failAll() {
        for (const std::int64_t id : open) {
            done.push_back({.id = id, .error = broken});
        }
        open.clear();
        handedIn.clear();
    }

    void wakeThread() const {
        // A full pipe wakes it too.
        if (::write(wake.write.get(), "", 1) < 0) {
            return;
        }
    }

    const RewardCommandOptions options;
    const base::Pipe wake;
    RewardCommandCounts counts; ///< the owner's
    std::int64_t notTaken = 0;  ///< the owner's

    std::mutex mutex; ///< of all below, except the thread
    std::condition_variable arrived;
    std::deque<Attempt> handedIn;               ///< the pool does not have them yet
    std::unordered_multiset<std::int64_t> open; ///< ids without a judgement
    std::vector<Judgement> done;
    RewardCommandCounts poolCounts;
    std::string broken; ///< why the thread has ended; empty: it has not
    bool dropping = false, stopping = false;
    std::thread thread; ///< last: it uses the members above
};

RewardCommand::RewardCommand(const RewardCommandOptions& options) {
    checkOptions(options);
    state_ = std::make_unique<State>(options);
}

RewardCommand::~RewardCommand() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->stopping = true;
    }
    state_->wakeThread();
    if (state_->thread.joinable()) {
        state_->thread.join();
    }
}

void RewardCommand::judge(Attempt attempt) {
    {
        const std::lock_guard lock(state_->mutex);
        state_->open.insert(attempt.id);
        state_->handedIn.push_back(std::move(attempt));
        if (!state_->broken.empty()) {
            state_->failAll();
        }
    }
    ++state_->notTaken;
    if (!state_->thread.joinable()) {
        try {
            state_->thread = std::thread([state = state_.get()] { state->work(); });
        } catch (const std::system_error& error) {
            const std::lock_guard lock(state_->mutex);
            state_->broken = fmt::format("reward_command: {}", error.what());
            state_->failAll();
        }
    }
    state_->wakeThread();
}

std::vector<Judgement> RewardCommand::take(bool wait) {
    std::vector<Judgement> taken;
    {
        std::unique_lock lock(state_->mutex);
        if (wait && state_->notTaken > 0) {
            state_->arrived.wait_for(lock, kLongestTake, [this] { return !state_->done.empty(); });
        }
        taken.swap(state_->done);
        state_->counts = state_->poolCounts;
    }
    state_->notTaken -= static_cast<std::int64_t>(taken.size());
    return taken;
}

std::int64_t RewardCommand::waiting() const {
    return state_->notTaken;
}

void RewardCommand::drop() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->handedIn.clear();
        state_->open.clear();
        state_->done.clear();
        state_->dropping = true;
    }
    state_->notTaken = 0;
    state_->wakeThread();
}

const RewardCommandCounts& RewardCommand::counts() const {
    return state_->counts;
}

} // namespace vitrine::engine
