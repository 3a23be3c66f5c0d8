// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/op_calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/percentile.h"
#include "base/trace.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"

namespace vitrine::profiler {

using base::TimeNs;

namespace {

constexpr std::string_view kKernelLane = "Kernels";
constexpr TimeNs kOwnGap = 2000;           ///< a longer wait inside an op is the host's, not the op's
constexpr std::size_t kStepsOfHost = 64;   ///< steps that are read of a run without a device
constexpr std::size_t kStepsForWall = 512; ///< of each size
constexpr double kSeconds = 1e-9;

/// An op in a step, in the order of the device.
struct CallInStep {
    std::uint32_t op = 0;
    std::uint64_t scope = 0;
    TimeNs begin = 0, busy = 0, gapBefore = 0;
};

struct TracedStep {
    std::uint32_t name = 0;
    std::int64_t tokens = 0;
    TimeNs wall = 0;
    bool first = false; ///< of its name: compiles and warms up
    std::vector<CallInStep> calls;
};

double medianOf(std::vector<double> values) {
    std::ranges::sort(values);
    return base::percentile(values, 0.5).value_or(0);
}

class Collector {
public:
    explicit Collector(const RunTimeline& timeline) : timeline_(timeline), places_(timeline) { readWalls(); }

    void readKernels() {
        std::uint32_t lane = 0;
        TimeNs end = 0;
        for (const base::SpanEvent& span : timeline_.kernels().spans()) {
            if (lane == 0 && timeline_.text(span.lane.value) == kKernelLane) {
                lane = span.lane.value;
            }
            if (lane == 0 || span.lane.value != lane) {
                continue;
            }
            const ScopePlace place = places_.of(span.scope.value);
            if (place.stepScope != 0 && place.op != 0) {
                addKernel(span, place, end);
            }
            end = std::max(end, span.end);
        }
    }

    void readHostOps() {
        std::size_t seen = 0;
        for (const ScopeRow row : timeline_.scopes().all()) {
            const ScopePlace place = places_.around(row);
            if (row.kind == base::ScopeKind::Step && ++seen > kStepsOfHost) {
                break;
            }
            if (row.kind != base::ScopeKind::Op || row.end < row.begin || place.op != 0 || place.stepScope == 0) {
                continue; // an op inside an op is a part of it
            }
            TracedStep& step = steps_[place.stepScope];
            const TimeNs before = step.calls.empty() ? row.begin : step.calls.back().begin + step.calls.back().busy;
            step.calls.push_back({row.name, row.id, row.begin, row.end - row.begin, row.begin - before});
        }
    }

    bool empty() const { return steps_.empty(); }

    MeasuredOps finish(bool device) {
        MeasuredOps out;
        std::vector<TracedStep> launched, replayed;
        for (auto& [scope, step] : steps_) {
            const std::optional<ScopeRow> row = timeline_.scopes().row(scope);
            if (!row || row->end <= row->begin) {
                continue; // cut short
            }
            step.name = row->name;
            step.tokens = row->tokens;
            step.first = firstOfName_[row->name] == scope;
            step.wall = static_cast<TimeNs>(medianOf(walls_[{row->name, row->tokens}]));
            addCalls(step);
            const bool isReplay = device && timeline_.text(row->name) == "decode" && !step.first;
            (isReplay ? replayed : launched).push_back(std::move(step));
        }
        for (auto& [key, seconds] : calls_) {
            const auto& [op, bytes, flops] = key;
            out.calls.push_back({std::string(timeline_.text(op)), bytes, flops, medianOf(seconds), seconds.size()});
        }
        out.launched = costOf(launched, device);
        out.replayed = costOf(replayed, false);
        return out;
    }

private:
    void readWalls() {
        for (const ScopeRow row : timeline_.scopes().steps()) {
            firstOfName_.try_emplace(row.name, row.id);
            std::vector<double>& walls = walls_[{row.name, row.tokens}];
            if (row.end > row.begin && walls.size() < kStepsForWall) {
                walls.push_back(static_cast<double>(row.end - row.begin));
            }
        }
    }

    void addKernel(const base::SpanEvent& span, const ScopePlace& place, TimeNs end) {
        TracedStep& step = steps_[place.stepScope];
        const TimeNs busy = std::max<TimeNs>(0, span.end - std::max(span.begin, end));
        const TimeNs gap = step.calls.empty() ? 0 : std::max<TimeNs>(0, span.begin - end);
        if (!step.calls.empty() && step.calls.back().scope == span.scope.value) {
            step.calls.back().busy += busy + std::min(gap, kOwnGap);
        } else {
            step.calls.push_back({place.op, span.scope.value, span.begin, busy, gap});
        }
    }

    void addCalls(const TracedStep& step) {
        for (const CallInStep& call : step.calls) {
            if (const std::optional<ScopeRow> row = timeline_.scopes().row(call.scope)) {
                calls_[{call.op, row->bytes, row->flops}].push_back(static_cast<double>(call.busy) * kSeconds);
            }
        }
    }

    /// From the begin of one op on the host to that of the next, of all ops of a step.
    void addHostTimes(const TracedStep& step, std::vector<double>& times) const {
        std::optional<TimeNs> before;
        for (const CallInStep& call : step.calls) {
            const std::optional<ScopeRow> row = timeline_.scopes().row(call.scope);
            if (row && before && row->begin > *before) {
                times.push_back(static_cast<double>(row->begin - *before) * kSeconds);
            }
            before = row ? std::optional(row->begin) : std::nullopt;
        }
    }

    StepCost costOf(const std::vector<TracedStep>& steps, bool hostLaunches) const {
        StepCost cost;
        std::vector<double> gaps, hosts, rest;
        for (const TracedStep& step : steps) {
            for (const CallInStep& call : step.calls) {
                gaps.push_back(static_cast<double>(call.gapBefore) * kSeconds);
            }
            if (hostLaunches) {
                addHostTimes(step, hosts);
            }
        }
        cost.steps = steps.size();
        cost.host = medianOf(std::move(hosts));
        // Where the host was behind, half of the gaps and more are its doing.
        std::ranges::sort(gaps);
        cost.gap = base::percentile(gaps, hostLaunches ? 0.1 : 0.5).value_or(0);
        for (const TracedStep& step : steps) {
            if (!hostLaunches || !step.first) {
                rest.push_back(static_cast<double>(step.wall) * kSeconds - queued(step, cost));
            }
        }
        cost.step = std::max(0.0, medianOf(rest));
        if (const double shortOf = medianOf(rest); shortOf < 0 && !hostLaunches && !steps.empty()) {
            // Tracing widens gaps: the untraced steps say what they really are.
            cost.gap = std::max(0.0, cost.gap + shortOf / static_cast<double>(steps.front().calls.size()));
        }
        return cost;
    }

    /// Seconds of a step's ops and what is between them, as plans add them up.
    static double queued(const TracedStep& step, const StepCost& cost) {
        double device = 0, host = 0;
        for (const CallInStep& call : step.calls) {
            host += cost.host;
            device = std::max(device + cost.gap, host) + static_cast<double>(call.busy) * kSeconds;
        }
        return device;
    }

    const RunTimeline& timeline_;
    ScopePlaces places_;
    std::map<std::uint64_t, TracedStep> steps_;                                   ///< by scope
    std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<double>> walls_; ///< by name and tokens
    std::unordered_map<std::uint32_t, std::uint64_t> firstOfName_;
    std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::vector<double>> calls_;
};

} // namespace

MeasuredOps measuredOps(const RunTimeline& timeline) {
    Collector collector(timeline);
    collector.readKernels();
    const bool device = !collector.empty();
    if (!device) {
        collector.readHostOps();
    }
    return collector.finish(device);
}

} // namespace vitrine::profiler
