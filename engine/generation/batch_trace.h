// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reports a batch's steps, slots and requests to the trace. Neighbouring steps in which a slot does the same become one
// event. So a thousand requests over a hundred thousand steps give only a few thousand slot events.

#include <string_view>
#include <vector>

#include "engine/generation/scheduler.h"
#include "kernels/core/tracer.h"

namespace vitrine::engine {

/// The numbers of requests and pages when a step was scheduled.
struct BatchMoment {
    std::int32_t queued = 0, running = 0, preempted = 0;
    PageCounts pages;
};

class BatchTrace {
public:
    BatchTrace(kernels::Tracer& tracer, std::int32_t slots);

    /// Reports a step that has ended. `fill` is the number of rows that belong to no slot and only fill the step up to
    /// a bucket.
    void step(const StepSchedule& schedule, const BatchMoment& moment, base::TimeNs begin, base::TimeNs end,
              std::int32_t sampled, std::int32_t fill);
    void request(std::int32_t request, base::RequestChange phase, base::TimeNs time, std::int32_t slot,
                 std::int64_t step, std::int64_t tokens, std::string_view reason = {}, std::int32_t sequence = -1);
    /// Notes that the slot's request was preempted before the coming step.
    void preempted(std::int32_t slot, std::int32_t request);
    /// Reports what each slot has done since its last event.
    void finish();

private:
    void flush(std::size_t slot);

    kernels::Tracer& tracer_;
    /// By slot: the event that is not reported yet; its `steps` is 0 when there is none.
    std::vector<base::SlotSpanEvent> open_;
    std::vector<std::int32_t> lost_; ///< by slot: the preempted request, while the slot stays free after it; -1: none
};

} // namespace vitrine::engine
