// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace vitrine::app {

/// While it lives, Ctrl-C (also SIGTERM and SIGHUP) calls `onFirst` on a thread of its own instead of ending the
/// program; the second one ends it at once with exit code 130. Make it before other threads, since they inherit the
/// blocked signals.
class InterruptGuard {
public:
    explicit InterruptGuard(std::function<void()> onFirst);
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete; // changes the process's signals
    InterruptGuard& operator=(const InterruptGuard&) = delete;

    /// Whether a signal came.
    bool interrupted() const { return interrupted_; }

private:
    void watch(const std::function<void()>& onFirst);

    std::atomic<bool> done_ = false;
    std::atomic<bool> interrupted_ = false;
    std::thread thread_;
};

} // namespace vitrine::app
