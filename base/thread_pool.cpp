// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <fmt/format.h>
#include <fstream>
#include <mutex>
#include <sched.h>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace vitrine::base {

namespace {

constexpr TimeNs kSpinNs = 40'000; // about what a sleeping thread takes to wake up
constexpr int kPiecesPerThread = 4;

// The word that opens a loop to the workers: generation, an open bit and the number of workers inside.
// All of it changes in one atomic step, so a late worker can never enter a loop that has ended.
constexpr std::uint64_t kInsideMask = 0x7FFFFFFF;
constexpr std::uint64_t kOpen = 0x80000000;
constexpr int kGenerationShift = 32;

std::uint64_t generationOf(std::uint64_t word) {
    return word >> kGenerationShift;
}

void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

/// Cores by the affinity mask and by the container's CPU quota.
int usableCores() {
    int cores = static_cast<int>(std::thread::hardware_concurrency());
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
        cores = CPU_COUNT(&mask);
    }
    std::ifstream file("/sys/fs/cgroup/cpu.max");
    std::string quota;
    std::int64_t period = 0;
    if (file >> quota >> period && period > 0 && quota != "max") {
        const std::int64_t allowed = std::strtoll(quota.c_str(), nullptr, 10);
        if (allowed > 0) {
            cores = static_cast<int>(std::min<std::int64_t>(cores, (allowed + period - 1) / period));
        }
    }
    return std::max(cores, 1);
}

/// Spins until `done` holds or the time is over. True: it held.
template <typename Done> bool spinUntil(TimeNs spinNs, Done done) {
    if (done()) {
        return true;
    }
    if (spinNs == 0) {
        return false;
    }
    const TimeNs end = monotonicNs() + spinNs;
    do {
        for (int i = 0; i < 16; ++i) {
            pause();
            if (done()) {
                return true;
            }
        }
    } while (monotonicNs() < end);
    return false;
}

using Body = std::function<void(std::int64_t, std::int64_t, int)>;

/// The pool whose loop this thread is in, and its number there.
struct Position {
    const void* pool = nullptr;
    int worker = 0;
};
thread_local Position currentPosition;

class PositionGuard {
public:
    explicit PositionGuard(Position position) : saved_(currentPosition) { currentPosition = position; }
    ~PositionGuard() { currentPosition = saved_; }
    PositionGuard(const PositionGuard&) = delete; // restores once
    PositionGuard& operator=(const PositionGuard&) = delete;

private:
    Position saved_;
};

} // namespace

struct ThreadPool::State {
    int threads = 1;
    TimeNs spinNs = kSpinNs;
    std::vector<std::thread> workers;

    std::mutex callerMutex; ///< one loop at a time
    std::mutex mutex;       ///< for sleeping and waking only
    std::condition_variable wake;
    std::condition_variable finished;
    std::atomic<bool> stopping{false};
    std::atomic<int> sleepers{0};
    std::atomic<bool> callerSleeps{false};
    std::atomic<std::uint64_t> word{0};

    // The loop. The caller writes it while no worker is inside; workers read it.
    const Body* body = nullptr;
    std::int64_t count = 0;
    std::int64_t pieces = 0;
    std::atomic<std::int64_t> nextPiece{0};
    std::atomic<bool> failed{false};
    std::exception_ptr error; ///< written by the one that set `failed`

    void runPieces(int worker) {
        const PositionGuard scope({this, worker});
        const std::int64_t size = count / pieces;
        const std::int64_t longer = count % pieces; // the first pieces take one more
        while (!failed.load(std::memory_order_relaxed)) {
            const std::int64_t piece = nextPiece.fetch_add(1, std::memory_order_relaxed);
            if (piece >= pieces) {
                return;
            }
            const std::int64_t begin = piece * size + std::min(piece, longer);
            const std::int64_t end = begin + size + (piece < longer ? 1 : 0);
            try {
                (*body)(begin, end, worker);
            } catch (...) {
                if (!failed.exchange(true)) {
                    error = std::current_exception();
                }
            }
        }
    }

    /// Enters the open loop; false when there is none that this worker has not seen.
    bool enter(std::uint64_t seenGeneration) {
        std::uint64_t current = word.load(std::memory_order_acquire);
        while (generationOf(current) != seenGeneration && (current & kOpen) != 0) {
            if (word.compare_exchange_weak(current, current + 1, std::memory_order_acq_rel,
                                           std::memory_order_acquire)) {
                return true;
            }
        }
        return false;
    }

    void leave() {
        const std::uint64_t after = word.fetch_sub(1) - 1;
        if ((after & (kInsideMask | kOpen)) == 0 && callerSleeps.load()) {
            const std::lock_guard lock(mutex);
            finished.notify_one();
        }
    }

    void workerMain(int worker) {
        std::uint64_t seen = 0;
        const auto hasNews = [&] { return generationOf(word.load()) != seen || stopping.load(); };
        while (true) {
            if (!spinUntil(spinNs, hasNews)) {
                std::unique_lock lock(mutex);
                // Announced before the word is read again; the caller writes the word before it reads `sleepers`.
                // Both in one total order (seq_cst), so one of them sees the other.
                ++sleepers;
                wake.wait(lock, hasNews);
                --sleepers;
            }
            if (stopping.load()) {
                return;
            }
            const std::uint64_t generation = generationOf(word.load(std::memory_order_acquire));
            if (enter(seen)) {
                // The loop cannot end, nor a new one begin, while this worker is inside.
                seen = generationOf(word.load(std::memory_order_relaxed));
                runPieces(worker);
                leave();
            } else {
                seen = generation; // it ended before this worker came
            }
        }
    }

    void openLoop() {
        const std::uint64_t generation = (generationOf(word.load(std::memory_order_relaxed)) + 1) & 0xFFFFFFFF;
        word.store((generation << kGenerationShift) | kOpen);
        if (sleepers.load() > 0) {
            const std::lock_guard lock(mutex);
            wake.notify_all();
        }
    }

    void closeLoop() {
        word.fetch_and(~kOpen);
        const auto empty = [&] { return (word.load() & kInsideMask) == 0; };
        if (!spinUntil(spinNs, empty)) {
            std::unique_lock lock(mutex);
            callerSleeps = true;
            finished.wait(lock, empty);
            callerSleeps = false;
        }
    }

    void stop() noexcept {
        {
            const std::lock_guard lock(mutex);
            stopping = true;
        }
        wake.notify_all();
        for (std::thread& worker : workers) {
            worker.join();
        }
    }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
    const int cores = usableCores();
    state_->threads = threads > 0 ? threads : cores;
    if (state_->threads > cores) {
        state_->spinNs = 0; // spinning would take the core from the thread that is waited for
    }
    try {
        for (int worker = 1; worker < state_->threads; ++worker) {
            state_->workers.emplace_back([state = state_.get(), worker] { state->workerMain(worker); });
        }
    } catch (const std::system_error& error) {
        const std::size_t started = state_->workers.size() + 1;
        state_->stop();
        throw BadInput(fmt::format("threads: the system allows {} of the {} asked for ({}); ask for fewer", started,
                                   state_->threads, error.what()));
    } catch (...) {
        state_->stop();
        throw;
    }
}

ThreadPool::~ThreadPool() {
    state_->stop();
}

int ThreadPool::threads() const {
    return state_->threads;
}

void ThreadPool::parallelFor(std::int64_t count, std::int64_t grain, const Body& body) {
    if (count <= 0) {
        return;
    }
    State& s = *state_;
    const bool nested = currentPosition.pool == &s;
    const std::int64_t pieces =
        std::min<std::int64_t>(count / std::max<std::int64_t>(grain, 1), std::int64_t{kPiecesPerThread} * s.threads);
    if (nested) {
        body(0, count, currentPosition.worker);
        return;
    }
    const std::lock_guard callers(s.callerMutex);
    if (pieces <= 1 || s.threads == 1) {
        const PositionGuard scope({&s, 0});
        body(0, count, 0);
        return;
    }
    s.body = &body;
    s.count = count;
    s.pieces = pieces;
    s.nextPiece.store(0, std::memory_order_relaxed); // published by openLoop
    s.failed.store(false, std::memory_order_relaxed);
    s.error = nullptr;
    s.openLoop();
    s.runPieces(0);
    s.closeLoop();
    if (s.error) {
        std::rethrow_exception(std::exchange(s.error, nullptr));
    }
}

} // namespace vitrine::base
