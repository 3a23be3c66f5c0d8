// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A fixed set of threads for data-parallel loops. One pool per CPU context; loops do not nest.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace vitrine::base {

class ThreadPool {
public:
    /// `threads` counts the calling thread; 0 means one for each core this process may use.
    explicit ThreadPool(int threads = 0);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete; // threads hold its address
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const;

    /// Calls body(begin, end, worker) over [0, count) in pieces of at least `grain`; returns when all are done.
    /// Which worker gets which piece is not fixed, so results must not depend on `worker` (0 .. threads-1: scratch
    /// only). The first exception thrown by a piece is rethrown here. A nested call runs on the calling thread.
    void parallelFor(std::int64_t count, std::int64_t grain,
                     const std::function<void(std::int64_t begin, std::int64_t end, int worker)>& body);

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::base
