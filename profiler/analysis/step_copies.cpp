// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/step_copies.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "profiler/analysis/step_anatomy.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::profiler {

using base::TimeNs;

namespace {

constexpr std::string_view kInput = "checkpoint"; ///< how the engine calls an input that comes back

/// An input that came back: its memory on the device.
struct Returned {
    std::int32_t layer = -1;
    std::int32_t pass = 0;
    TimeNs born = 0;
    std::uint64_t bytes = 0;
};

const StepItem* itemOf(const StepAnatomy& step, TrainingPhase phase, std::int32_t pass, std::int32_t layer) {
    const auto found = std::ranges::find_if(step.items, [&](const StepItem& item) {
        return item.phase == phase && item.pass == pass && item.index == layer;
    });
    return found == step.items.end() ? nullptr : &*found;
}

/// Inputs come back from the last layer to the first one, each before the layer after it is computed.
std::vector<Returned> returnedInputs(const RunTimeline& timeline, const StepAnatomy& step) {
    std::vector<Returned> out;
    std::int32_t pass = -1, layer = 0;
    const auto rows = timeline.memory().allocations();
    for (std::size_t i = firstBornFrom(timeline, step.begin); i < rows.size(); ++i) {
        const AllocationRow row = rows[i];
        if (row.born > step.end) {
            break;
        }
        if (row.space != base::MemorySpace::Device || timeline.text(row.name) != kInput) {
            continue;
        }
        const StepPhase* phase = step.phaseAt(row.born);
        const std::int32_t now = phase != nullptr ? phase->pass : 0;
        if (now != pass) {
            pass = now;
            layer = -1;
            for (const StepItem& item : step.items) {
                layer = item.phase == TrainingPhase::Forward && item.pass == pass ? std::max(layer, item.index) : layer;
            }
        }
        out.push_back({layer--, pass, row.born, row.bytes});
    }
    return out;
}

/// Copies of the device's records in the step that are as large as an input. Memory is given out in whole units, so an
/// input may be a little smaller than its memory.
std::vector<StepCopy> recordedCopies(const RunTimeline& timeline, const StepAnatomy& step, std::uint64_t bytes) {
    constexpr std::uint64_t kUnit = 4096;
    std::vector<StepCopy> out;
    const std::span<const base::SpanEvent> spans = timeline.kernels().spans();
    for (auto span = std::ranges::lower_bound(spans, step.begin, {}, &base::SpanEvent::begin);
         span != spans.end() && span->begin <= step.end; ++span) {
        const std::string_view name = timeline.text(span->name.value);
        const bool toHost = name == "device to host";
        if (timeline.text(span->lane.value) == "Copies" && (toHost || name == "host to device") &&
            span->bytes <= bytes && span->bytes + kUnit > bytes) {
            out.push_back({toHost, -1, span->begin, span->end, span->bytes, 0});
        }
    }
    return out;
}

/// Ops wait for a copy that ends after the layer that needs it, or its memory, could begin.
void addWaits(StepCopy& copy, const StepAnatomy& step, std::int32_t pass) {
    const StepItem* needs = copy.toHost ? itemOf(step, TrainingPhase::Forward, pass, copy.layer + 2)
                                        : itemOf(step, TrainingPhase::Backward, pass, copy.layer + 1);
    if (needs != nullptr) {
        const TimeNs ready = copy.toHost ? needs->begin : needs->end;
        copy.waited = std::clamp<TimeNs>(copy.end - ready, 0, copy.end - copy.begin);
    }
}

} // namespace

std::size_t firstBornFrom(const RunTimeline& timeline, TimeNs time) {
    const auto rows = timeline.memory().allocations();
    std::size_t low = 0, high = rows.size();
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (rows[middle].born < time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void addCopies(const RunTimeline& timeline, StepAnatomy& step) {
    const std::vector<Returned> inputs = returnedInputs(timeline, step);
    if (inputs.empty()) {
        return;
    }
    step.pinned = timeline.memory().hostAt(step.end)[static_cast<std::size_t>(base::MemoryCategory::Activations)];
    std::vector<StepCopy> recorded = recordedCopies(timeline, step, inputs.front().bytes);
    step.copiesTimed = recorded.size() >= inputs.size();
    if (step.copiesTimed) {
        std::size_t out = 0, back = 0;
        for (StepCopy& copy : recorded) {
            std::size_t& next = copy.toHost ? out : back;
            if (next >= inputs.size()) {
                continue;
            }
            // They leave in the opposite order of their return, pass by pass.
            const Returned& input = inputs[next];
            const auto first = std::ranges::find(inputs, input.pass, &Returned::pass);
            const auto count = std::ranges::count(inputs, input.pass, &Returned::pass);
            const auto at = static_cast<std::ptrdiff_t>(next) - std::distance(inputs.begin(), first);
            copy.layer = copy.toHost ? (first + (count - 1 - at))->layer : input.layer;
            addWaits(copy, step, input.pass);
            ++next;
        }
        step.copies = std::move(recorded);
        return;
    }
    for (const Returned& input : inputs) {
        if (const StepItem* item = itemOf(step, TrainingPhase::Forward, input.pass, input.layer)) {
            step.copies.push_back({true, input.layer, item->end, item->end, input.bytes, 0});
        }
        step.copies.push_back({false, input.layer, input.born, input.born, input.bytes, 0});
    }
    std::ranges::stable_sort(step.copies, {}, &StepCopy::begin);
}

} // namespace vitrine::profiler
