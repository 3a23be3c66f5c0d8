// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/batch_trace.h"

#include <algorithm>

namespace vitrine::engine {

BatchTrace::BatchTrace(kernels::Tracer& tracer, std::int32_t slots)
    : tracer_(tracer), open_(static_cast<std::size_t>(slots)), lost_(static_cast<std::size_t>(slots), -1) {}

void BatchTrace::step(const StepSchedule& schedule, const BatchMoment& moment, base::TimeNs begin, base::TimeNs end,
                      std::int32_t sampled, std::int32_t fill) {
    base::BatchStepEvent event;
    event.begin = begin;
    event.end = end;
    event.index = schedule.index;
    event.sampled = sampled;
    event.queued = moment.queued;
    event.running = moment.running;
    event.preempted = moment.preempted;
    event.usedPages = moment.pages.used;
    event.sharedPages = moment.pages.shared;
    event.cachedPages = moment.pages.cached;
    event.freePages = moment.pages.free;
    event.paddingRows = fill;
    event.paddingTokens = fill;

    std::vector<base::SlotSpanEvent> now(open_.size());
    for (std::size_t slot = 0; slot < now.size(); ++slot) {
        now[slot].state = lost_[slot] >= 0 ? base::SlotState::Preempted : base::SlotState::Idle;
        now[slot].request = lost_[slot];
    }
    for (const ScheduledRow& row : schedule.rows) {
        base::SlotSpanEvent& cell = now[static_cast<std::size_t>(row.slot)];
        lost_[static_cast<std::size_t>(row.slot)] = -1;
        if (row.kind == RowKind::Padding) {
            // Padding before a prompt of the same step belongs to the reading of it.
            const bool reads = cell.state == base::SlotState::Prefill;
            cell.state = reads ? cell.state : base::SlotState::Padding;
            cell.request = reads ? cell.request : row.request;
            cell.padding += row.tokens;
            event.paddingRows += 1;
            event.paddingTokens += row.tokens;
            continue;
        }
        const bool decodes = row.kind == RowKind::Decode;
        cell.state = decodes ? base::SlotState::Decode : base::SlotState::Prefill;
        cell.request = row.request;
        cell.tokens += row.tokens;
        event.decodeRows += decodes ? 1 : 0;
        event.prefillRows += decodes ? 0 : 1;
        event.prefillTokens += decodes ? 0 : row.tokens;
    }
    tracer_.record(event);
    for (std::size_t slot = 0; slot < now.size(); ++slot) {
        base::SlotSpanEvent& open = open_[slot];
        if (open.steps > 0 && (open.state != now[slot].state || open.request != now[slot].request)) {
            flush(slot);
        }
        if (open.steps == 0) {
            open.begin = begin;
            open.firstStep = schedule.index;
            open.slot = static_cast<std::int32_t>(slot);
            open.state = now[slot].state;
            open.request = now[slot].request;
        }
        ++open.steps;
        open.end = end;
        open.tokens += now[slot].tokens;
        open.padding += now[slot].padding;
    }
}

void BatchTrace::request(std::int32_t request, base::RequestChange phase, base::TimeNs time, std::int32_t slot,
                         std::int64_t step, std::int64_t tokens, std::string_view reason, std::int32_t sequence) {
    tracer_.record(base::RequestEvent{time, request, phase, slot, step, tokens, tracer_.intern(reason), sequence});
}

void BatchTrace::preempted(std::int32_t slot, std::int32_t request) {
    lost_[static_cast<std::size_t>(slot)] = request;
}

void BatchTrace::flush(std::size_t slot) {
    if (open_[slot].steps > 0) {
        tracer_.record(open_[slot]);
    }
    open_[slot] = {};
}

void BatchTrace::finish() {
    for (std::size_t slot = 0; slot < open_.size(); ++slot) {
        flush(slot);
    }
}

} // namespace vitrine::engine
