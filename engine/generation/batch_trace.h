// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tells a batch's steps, slots and requests to the trace. A slot's neighbouring equal steps become one event, so that a
// thousand requests over a hundred thousand steps stay a few thousand rows.

#include <string_view>
#include <vector>

#include "engine/generation/scheduler.h"
#include "kernels/core/tracer.h"

namespace vitrine::engine {

/// What stood around a step when it was scheduled.
struct BatchMoment {
    std::int32_t queued = 0, running = 0, preempted = 0;
    PageCounts pages;
};

class BatchTrace {
public:
    BatchTrace(kernels::Tracer& tracer, std::int32_t slots);

    /// A step has ended. `fill`: rows without a slot that only made the batch as large as a bucket.
    void step(const StepSchedule& schedule, const BatchMoment& moment, base::TimeNs begin, base::TimeNs end,
              std::int32_t sampled, std::int32_t fill);
    void request(std::int32_t request, base::RequestChange phase, base::TimeNs time, std::int32_t slot,
                 std::int64_t step, std::int64_t tokens, std::string_view reason = {}, std::int32_t sequence = -1);
    /// The slot's request lost its place before the coming step.
    void preempted(std::int32_t slot, std::int32_t request);
    /// Writes what slots were doing.
    void finish();

private:
    void flush(std::size_t slot);

    kernels::Tracer& tracer_;
    std::vector<base::SlotSpanEvent> open_; ///< by slot; steps 0: none yet
    std::vector<std::int32_t> lost_;        ///< by slot: the preempted request whose place is still free; -1: none
};

} // namespace vitrine::engine
