// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/common/interrupt.h"

#include <csignal>
#include <ctime>
#include <pthread.h>
#include <unistd.h>
#include <utility>

namespace vitrine::app {

namespace {

constexpr int kInterruptedExit = 130;

sigset_t watchedSignals() {
    sigset_t signals{};
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    return signals;
}

} // namespace

InterruptGuard::InterruptGuard(std::function<void()> onFirst) {
    const sigset_t signals = watchedSignals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    thread_ = std::thread([this, call = std::move(onFirst)] { watch(call); });
}

InterruptGuard::~InterruptGuard() {
    done_ = true;
    thread_.join();
    const sigset_t signals = watchedSignals();
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

void InterruptGuard::watch(const std::function<void()>& onFirst) {
    const sigset_t signals = watchedSignals();
    // Wakes now and then to see whether the guard ended.
    const timespec pause{0, 50'000'000};
    while (!done_) {
        if (sigtimedwait(&signals, nullptr, &pause) <= 0) {
            continue;
        }
        if (interrupted_.exchange(true)) {
            ::_exit(kInterruptedExit);
        }
        onFirst();
    }
}

} // namespace vitrine::app
