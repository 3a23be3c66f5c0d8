// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The devices of a run: a rank on each, with a context, a thread and a communicator. Rank 0 leads: its thread is the
// one that made the group, and only it decides what is done next. A group of one is that thread's context and nothing
// else.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernels/context/context.h"

namespace vitrine::kernels {

class DeviceGroup {
public:
    /// Opens a context for each entry, side by side; `trace` and `communicator` are filled in. Throws what a context
    /// throws when it is made, with the rank's number.
    explicit DeviceGroup(std::span<const ContextOptions> ranks);
    /// Ends the contexts on their threads. REQUIRES that what was made with them is gone.
    ~DeviceGroup();
    DeviceGroup(const DeviceGroup&) = delete; // contexts hold the addresses of its communicators
    DeviceGroup& operator=(const DeviceGroup&) = delete;

    int size() const;
    Context& leader() { return rank(0); }
    /// Belongs to that rank's thread, which is idle while run() does not run.
    Context& rank(int number);

    /// Calls work(context) for every rank on the rank's thread, all at once, and returns when all calls have ended. If
    /// one throws, the others end at their next collective, and the first error is thrown here, of its own type, with
    /// the rank and what it was doing. The ranks can work again afterwards. REQUIRES the thread that made the group.
    void run(const std::function<void(Context&)>& work);

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::kernels
