// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/op_calls.h"

#include <algorithm>
#include <iterator>
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
constexpr std::size_t kFirstDecodes = 4;   ///< as prefill does, becomes the graph, is uploaded, is early for that
constexpr double kShortestWake = 0.2e-3;   ///< seconds by which a launch must exceed the usual one
constexpr std::size_t kFewestUntraced = 4; ///< steps that say more about the usual time than traced ones

double secondsOf(TimeNs time) {
    return static_cast<double>(time) * 1e-9;
}

/// An op in a step, in the order of the device.
struct CallInStep {
    std::uint32_t op = 0;
    std::uint64_t scope = 0;
    double seconds = 0, gapBefore = 0;
    TimeNs end = 0; ///< on the device
};

struct TracedStep {
    double own = 0, wall = 0;  ///< seconds: of this step, and the usual ones of steps like it
    bool first = false;        ///< of its name: libraries wake up
    TimeNs begin = 0, end = 0; ///< of its kernels; 0: none
    std::vector<CallInStep> calls;
};

/// How long steps of one name and size took, in their order. Tracing makes a step up to a tenth longer, so that steps
/// in which nothing of the device was recorded say what is usual, where there are some.
struct Walls {
    std::vector<double> seconds, untraced;
    double usual() const { return base::median(untraced.size() >= kFewestUntraced ? untraced : seconds); }
};

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
        TimeNs before = 0;
        for (const ScopeRow row : timeline_.scopes().all()) {
            const ScopePlace place = places_.around(row);
            if (row.kind == base::ScopeKind::Step) {
                before = row.begin;
                if (++seen > kStepsOfHost) {
                    break;
                }
            }
            if (row.kind != base::ScopeKind::Op || row.end < row.begin || place.op != 0 || place.stepScope == 0) {
                continue; // an op inside an op is a part of it
            }
            steps_[place.stepScope].calls.push_back(
                {row.name, row.id, secondsOf(row.end - row.begin), secondsOf(std::max<TimeNs>(0, row.begin - before))});
            before = row.end;
        }
    }

    bool empty() const { return steps_.empty(); }

    MeasuredOps finish(bool device) {
        MeasuredOps out;
        std::vector<TracedStep> launched, replayed, trained;
        for (auto& [scope, step] : steps_) {
            const std::optional<ScopeRow> row = timeline_.scopes().row(scope);
            if (!row || row->end <= row->begin || !isWhole(step, *row)) {
                continue;
            }
            step.first = firstOfName_[row->name] == scope;
            step.own = own_[scope];
            step.wall = walls_[{row->name, row->tokens}].usual();
            const std::string_view name = timeline_.text(row->name);
            const bool isReplay = device && name == "decode" && !step.first;
            if (isReplay) {
                fitIntoWall(step);
            }
            addCalls(step);
            (isReplay ? replayed : name == "train" ? trained : launched).push_back(std::move(step));
        }
        for (auto& [key, seconds] : calls_) {
            const auto& [op, bytes, flops] = key;
            out.calls.push_back({std::string(timeline_.text(op)), bytes, flops, base::median(seconds), seconds.size()});
        }
        out.trained = costOf(trained, device);
        wakes_.clear(); // a plan prices a later step of a training
        out.launched = costOf(launched, device);
        for (const auto& [op, seconds] : wakes_) {
            out.wakes.push_back({std::string(timeline_.text(op)), seconds});
        }
        if (device) {
            out.launched.step = 0; // a prompt in pieces has no waits; what is left are kernels that are compiled late
        }
        out.trained.first = 0; // a plan prices one step, and it means a later one
        out.replayed = costOf(replayed, false);
        out.replayed.first = device ? firstDecodes() : 0;
        out.replayed.layers = out.replayed.first > 0 ? static_cast<double>(layers_) : 0;
        return out;
    }

private:
    /// When what was recorded of the device began, in order.
    std::vector<TimeNs> tracedTimes() const {
        std::vector<TimeNs> times;
        for (const base::SpanEvent& span : timeline_.kernels().spans()) {
            times.push_back(span.begin);
        }
        std::ranges::sort(times);
        return times;
    }

    void readWalls() {
        const std::vector<TimeNs> traced = tracedTimes();
        TimeNs before = 0; // steps are launched ahead: what one waits for the one before is not its own
        for (const ScopeRow row : timeline_.scopes().steps()) {
            firstOfName_.try_emplace(row.name, row.id);
            Walls& walls = walls_[{row.name, row.tokens}];
            const TimeNs own = std::max<TimeNs>(0, row.end - std::max(row.begin, before));
            own_[row.id] = secondsOf(own);
            if (own > 0 && walls.seconds.size() < kStepsForWall) {
                walls.seconds.push_back(secondsOf(own));
                const auto inside = std::ranges::lower_bound(traced, row.begin);
                if (inside == traced.end() || *inside >= row.end) {
                    walls.untraced.push_back(secondsOf(own));
                }
            }
            before = std::max(before, row.end);
        }
    }

    /// Whether the kernels can be those of the step. A graph that is replayed again before its records are read leaves
    /// the times of another replay in them.
    static bool isWhole(const TracedStep& step, const ScopeRow& row) {
        const TimeNs length = row.end - row.begin;
        return step.end == 0 || (step.begin >= row.begin - length && step.end <= row.end + length &&
                                 step.end - step.begin <= length + length / 4);
    }

    void addKernel(const base::SpanEvent& span, const ScopePlace& place, TimeNs end) {
        TracedStep& step = steps_[place.stepScope];
        layers_ = std::max(layers_, place.layer + 1);
        step.begin = step.end == 0 ? span.begin : std::min(step.begin, span.begin);
        step.end = std::max(step.end, span.end);
        const TimeNs busy = std::max<TimeNs>(0, span.end - std::max(span.begin, end));
        const TimeNs gap = step.calls.empty() ? 0 : std::max<TimeNs>(0, span.begin - end);
        if (!step.calls.empty() && step.calls.back().scope == span.scope.value) {
            step.calls.back().seconds += secondsOf(busy + std::min(gap, kOwnGap));
        } else {
            step.calls.push_back({place.op, span.scope.value, secondsOf(busy), secondsOf(gap)});
        }
        step.calls.back().end = std::max(end, span.end);
    }

    /// Tracing keeps kernels of a graph from overlapping. The untraced steps say how long all of them really take.
    static void fitIntoWall(TracedStep& step) {
        double sum = 0;
        for (const CallInStep& call : step.calls) {
            sum += call.seconds;
        }
        if (sum <= 0) {
            return;
        }
        const double factor = std::min(1.0, step.wall / sum);
        const double gap = std::max(0.0, step.wall - sum * factor) / static_cast<double>(step.calls.size());
        for (CallInStep& call : step.calls) {
            call.seconds *= factor;
            call.gapBefore = std::min(call.gapBefore, gap);
        }
    }

    void addCalls(const TracedStep& step) {
        for (const CallInStep& call : step.calls) {
            if (const std::optional<ScopeRow> row = timeline_.scopes().row(call.scope)) {
                calls_[{call.op, row->bytes, row->flops}].push_back(call.seconds);
            }
        }
    }

    /// What the first decode steps of the run took more than usual.
    double firstDecodes() const {
        double most = 0;
        for (const auto& [key, walls] : walls_) {
            if (timeline_.text(key.first) == "decode" && walls.seconds.size() >= kFirstDecodes * 2) {
                double more = 0;
                for (std::size_t i = 0; i < kFirstDecodes; ++i) {
                    more += walls.seconds[i] - walls.usual();
                }
                most = std::max(most, more);
            }
        }
        return most;
    }

    /// From the begin of each op of a step on the host to that of the next; 0: not known.
    std::vector<double> hostTimes(const TracedStep& step) const {
        std::vector<double> times(step.calls.size());
        std::optional<TimeNs> before;
        for (std::size_t i = 0; i < step.calls.size(); ++i) {
            const std::optional<ScopeRow> row = timeline_.scopes().row(step.calls[i].scope);
            if (row && before && row->begin > *before) {
                times[i - 1] = secondsOf(row->begin - *before);
            }
            before = row ? std::optional(row->begin) : std::nullopt;
        }
        return times;
    }

    /// By how much the first launches of ops exceed the usual one, because a library wakes up for them. A library first
    /// waits until the device has done what was launched before; that is the time of the ops before.
    std::vector<double> wakesOf(const TracedStep& step, const StepCost& cost) const {
        std::vector<double> wakes = hostTimes(step);
        for (std::size_t i = 0; i < wakes.size(); ++i) {
            const std::optional<ScopeRow> row = timeline_.scopes().row(step.calls[i].scope);
            const double waited = row && i > 0 ? secondsOf(std::max<TimeNs>(0, step.calls[i - 1].end - row->begin)) : 0;
            const double wake = wakes[i] - waited - cost.host;
            wakes[i] = wake >= kShortestWake ? wake : 0;
        }
        return wakes;
    }

    void addWakes(const TracedStep& step, const std::vector<double>& wakes) {
        for (std::size_t i = 0; i < wakes.size(); ++i) {
            if (wakes[i] > 0) {
                wakes_[step.calls[i].op] += wakes[i];
            }
        }
    }

    StepCost costOf(const std::vector<TracedStep>& steps, bool hostLaunches) {
        StepCost cost;
        std::vector<double> gaps, hosts, rest, first;
        for (const TracedStep& step : steps) {
            for (const CallInStep& call : step.calls) {
                gaps.push_back(call.gapBefore);
            }
            if (hostLaunches) {
                std::ranges::copy_if(hostTimes(step), std::back_inserter(hosts), [](double time) { return time > 0; });
            }
        }
        cost.steps = steps.size();
        cost.host = base::median(std::move(hosts));
        // Where the host was behind, half of the gaps and more are its doing.
        std::ranges::sort(gaps);
        cost.gap = base::percentile(gaps, hostLaunches ? 0.1 : 0.5).value_or(0);
        for (const TracedStep& step : steps) {
            const double known = queued(step, cost, {});
            if (step.first) {
                const std::vector<double> wakes = hostLaunches ? wakesOf(step, cost) : std::vector<double>();
                addWakes(step, wakes);
                first.push_back(step.own - queued(step, cost, wakes));
            }
            if (!step.first || !hostLaunches) {
                rest.push_back((hostLaunches ? step.own : step.wall) - known);
            }
        }
        cost.step = std::max(0.0, base::median(std::move(rest)));
        cost.first = std::max(0.0, base::median(std::move(first)) - cost.step);
        return cost;
    }

    /// Seconds of a step's ops and what is between them, as plans add them up. `wakes`: of each op, or empty.
    static double queued(const TracedStep& step, const StepCost& cost, const std::vector<double>& wakes) {
        double device = 0, host = 0;
        for (std::size_t i = 0; i < step.calls.size(); ++i) {
            if (!wakes.empty() && wakes[i] > 0) {
                host = std::max(host, device) + wakes[i];
            }
            host += cost.host;
            device = std::max(device + cost.gap, host) + step.calls[i].seconds;
        }
        return device;
    }

    const RunTimeline& timeline_;
    ScopePlaces places_;
    std::map<std::uint64_t, TracedStep> steps_;                     ///< by scope
    std::map<std::pair<std::uint32_t, std::int64_t>, Walls> walls_; ///< by name and tokens
    std::unordered_map<std::uint64_t, double> own_; ///< by step: seconds since it began and the one before had ended
    std::unordered_map<std::uint32_t, std::uint64_t> firstOfName_;
    std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::vector<double>> calls_;
    std::map<std::uint32_t, double> wakes_; ///< by op
    std::int32_t layers_ = 0;               ///< of the model
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
