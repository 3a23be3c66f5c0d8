// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a run measured of its ops, for the times of later plans: how long calls of each op took, and what steps cost
// beside their ops. On a GPU from its kernels, elsewhere from the scopes of ops. Pure functions over an immutable
// timeline; any thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vitrine::profiler {

class RunTimeline;

/// Calls of one op that moved and computed the same.
struct OpCalls {
    std::string op;
    std::uint64_t bytes = 0, flops = 0; ///< of one call
    double seconds =
        0; ///< of one call, median; a kernel that begins before the last one has ended counts from that end
    std::size_t calls = 0;
};

/// What the steps of one kind cost beside their ops, seconds; medians.
struct StepCost {
    double gap = 0;    ///< between two ops that were ready
    double host = 0;   ///< from the begin of one op on the host to that of the next
    double step = 0;   ///< of a step, beside the ops and what is between them
    double first = 0;  ///< what the first steps took more than later ones
    double layers = 0; ///< of the model, where `first` grows with them: of replayed steps
    std::size_t steps = 0;
};

/// What the first launches of an op took the host more than later ones, seconds, beside `first` of StepCost.
struct OpWake {
    std::string op;
    double seconds = 0;
};

struct MeasuredOps {
    std::vector<OpWake> wakes;  ///< of steps whose ops the host launches
    std::vector<OpCalls> calls; ///< by op, bytes and FLOPs
    StepCost launched;          ///< of steps whose ops the host launches, and of steps on a CPU
    StepCost replayed;          ///< of decode steps on a GPU, which replays them as graphs
    StepCost trained;           ///< of training steps
};

/// Of the steps in which the device was traced, on a CPU of the first steps.
MeasuredOps measuredOps(const RunTimeline& timeline);

} // namespace vitrine::profiler
