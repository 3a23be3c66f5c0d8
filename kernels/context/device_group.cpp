// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/context/device_group.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "kernels/context/context_options.h"
#include "kernels/context/rank_error.h"
#include "kernels/context/thread_ranks.h"

namespace vitrine::kernels {

/// Work goes to the threads by its number; each thread counts those that it has done.
struct DeviceGroup::State {
    std::unique_ptr<RunTrace> trace; ///< null: one rank, whose context has its own
    std::vector<std::unique_ptr<Communicator>> communicators;
    std::vector<std::unique_ptr<Context>> contexts;
    std::vector<std::thread> threads; ///< of the ranks from 1 on

    std::mutex mutex; ///< of all below
    std::condition_variable changed;
    std::function<void(int)> work;
    std::uint64_t number = 0; ///< of `work`
    int busy = 0;             ///< threads that have not done it yet
    bool ending = false;

    struct Failure {
        std::exception_ptr error;
        int rank = 0;
    };
    std::optional<Failure> failure; ///< the first one

    void loop(int rank);
    void attempt(int rank, const std::function<void(int)>& what);
    void fail(int rank, const std::exception_ptr& error);
    void runOnAll(std::function<void(int)> what);
    void endThreads();
    std::string placeOf(int rank) const;
};

void DeviceGroup::State::loop(int rank) {
    std::uint64_t done = 0;
    for (;;) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return ending || number != done; });
        if (ending) {
            return;
        }
        done = number;
        lock.unlock();
        attempt(rank, work);
        lock.lock();
        --busy;
        lock.unlock();
        changed.notify_all();
    }
}

void DeviceGroup::State::attempt(int rank, const std::function<void(int)>& what) {
    try {
        what(rank);
    } catch (...) {
        fail(rank, std::current_exception());
    }
}

std::string DeviceGroup::State::placeOf(int rank) const {
    const std::unique_ptr<Context>& context = contexts[static_cast<std::size_t>(rank)];
    return context == nullptr ? std::string() : context->tracer().failedAt();
}

void DeviceGroup::State::fail(int rank, const std::exception_ptr& error) {
    {
        const std::lock_guard lock(mutex);
        // One that only unwinds for another's error may come before it.
        if (!failure || (isRankAborted(failure->error) && !isRankAborted(error))) {
            failure = {errorOfRank(error, rank, placeOf(rank)), rank};
        }
    }
    communicators[static_cast<std::size_t>(rank)]->abort();
}

void DeviceGroup::State::runOnAll(std::function<void(int)> what) {
    {
        const std::lock_guard lock(mutex);
        work = std::move(what);
        ++number;
        busy = static_cast<int>(threads.size());
        failure.reset();
    }
    changed.notify_all();
    attempt(0, work);
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return busy == 0; });
    if (failure) {
        for (const std::unique_ptr<Communicator>& each : communicators) {
            each->recover();
        }
        std::rethrow_exception(failure->error);
    }
}

void DeviceGroup::State::endThreads() {
    {
        const std::lock_guard lock(mutex);
        ending = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) {
        thread.join();
    }
}

DeviceGroup::DeviceGroup(std::span<const ContextOptions> ranks) : state_(std::make_unique<State>()) {
    State& state = *state_;
    if (ranks.size() == 1) {
        state.contexts.push_back(std::make_unique<Context>(ranks.front()));
        return;
    }
    if (ranks.front().sink != nullptr) {
        state.trace = std::make_unique<RunTrace>(*ranks.front().sink);
    }
    state.communicators = makeThreadRanks(static_cast<int>(ranks.size()));
    state.contexts.resize(ranks.size());
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
        state.threads.emplace_back([&state, rank] { state.loop(static_cast<int>(rank)); });
    }
    try {
        state.runOnAll([&](int rank) {
            const auto at = static_cast<std::size_t>(rank);
            ContextOptions options = ranks[at];
            options.trace = state.trace.get();
            options.communicator = state.communicators[at].get();
            state.contexts[at] = std::make_unique<Context>(options);
        });
        leader().group_ = this;
    } catch (...) {
        state.runOnAll([&](int rank) { state.contexts[static_cast<std::size_t>(rank)].reset(); });
        state.endThreads();
        throw;
    }
}

DeviceGroup::~DeviceGroup() {
    State& state = *state_;
    if (state.threads.empty()) {
        return;
    }
    state.runOnAll([&](int rank) { state.contexts[static_cast<std::size_t>(rank)].reset(); });
    state.endThreads();
}

int DeviceGroup::size() const {
    return static_cast<int>(state_->contexts.size());
}

Context& DeviceGroup::rank(int number) {
    return *state_->contexts[static_cast<std::size_t>(number)];
}

void DeviceGroup::run(const std::function<void(Context&)>& work) {
    if (size() == 1) {
        work(leader());
        return;
    }
    state_->runOnAll([&](int rank) { work(this->rank(rank)); });
}

} // namespace vitrine::kernels
