// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// In which steps the device is traced. Tracing costs time (up to 11 % of a decode step, docs/performance.md), so it
// looks at a few steps out of many: the first `steps` of every `period` decode steps, and every step of another kind
// (prefill, load, logits). Full mode traces every kernel there. Light mode traces whole graphs, and every kernel of a
// few steps: of those that are no decode steps the first, second, fourth, eighth and so on, and two decode steps of
// every thousand. So the tables of kernels are never empty, steps late in a long prompt are seen too, and 11 % of two
// steps in a thousand are far below the 2 % that light may cost.

#include <bit>
#include <cstdint>
#include <string_view>

#include "profiler/gpu/device_work.h"

namespace vitrine::profiler {

class TraceWindow {
public:
    /// `steps` at least 1; `period` at least `steps`.
    TraceWindow(bool full, std::int64_t steps, std::int64_t period)
        : full_(full), steps_(steps < 1 ? 1 : steps), period_(period < steps_ ? steps_ : period) {}

    /// Before the first step: loading, warming up.
    TraceDetail atStart() const { return full_ ? TraceDetail::Everything : TraceDetail::Graphs; }

    /// For the step that begins now.
    TraceDetail next(std::string_view stepName) {
        if (stepName != "decode") {
            return full_ || std::has_single_bit(++others_) ? TraceDetail::Everything : TraceDetail::Graphs;
        }
        const std::int64_t step = decoded_++;
        // The first decode step is not chosen: it captures the graph that the others replay.
        const std::int64_t place = step % kKernelPeriod;
        if (!full_ && place >= 1 && place <= kKernelSteps) {
            return TraceDetail::Everything;
        }
        return step % period_ < steps_ ? atStart() : TraceDetail::Nothing;
    }

private:
    static constexpr std::int64_t kKernelSteps = 2, kKernelPeriod = 1000;

    bool full_;
    std::int64_t steps_, period_;
    std::int64_t decoded_ = 0;
    std::uint64_t others_ = 0;
};

} // namespace vitrine::profiler
