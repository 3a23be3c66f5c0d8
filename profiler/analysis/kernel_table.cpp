// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/kernel_table.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"

namespace vitrine::profiler {

using base::TimeNs;

namespace {

constexpr std::string_view kKernels = "Kernels";

/// Length of the union of intervals that come by begin.
class Union {
public:
    void add(TimeNs begin, TimeNs end) {
        length_ += std::max<TimeNs>(0, end - std::max(begin, end_));
        end_ = std::max(end_, end);
    }
    TimeNs length() const { return length_; }

private:
    TimeNs end_ = std::numeric_limits<TimeNs>::min();
    TimeNs length_ = 0;
};

/// For runs whose ops did not say it.
base::MemoryCategory guessedCategory(std::string_view op) {
    struct Rule {
        std::string_view part;
        base::MemoryCategory category;
    };
    // The first part that the name contains decides: KvWrite, LmHeadBackward, AdamW, ...
    static constexpr Rule kRules[] = {
        {"Backward", base::MemoryCategory::Gradients},  {"Gradient", base::MemoryCategory::Gradients},
        {"Adam", base::MemoryCategory::Optimizer},      {"Kv", base::MemoryCategory::KvCache},
        {"LmHead", base::MemoryCategory::Logits},       {"Sample", base::MemoryCategory::Logits},
        {"CrossEntropy", base::MemoryCategory::Logits}, {"Fill", base::MemoryCategory::Weights},
        {"Dequant", base::MemoryCategory::Weights},     {"BlockMask", base::MemoryCategory::BlockMask},
        {"AllReduce", base::MemoryCategory::Comm},      {"LogProbs", base::MemoryCategory::Logits},
        {"PolicyLoss", base::MemoryCategory::Logits},
    };
    for (const Rule& rule : kRules) {
        if (op.find(rule.part) != std::string_view::npos) {
            return rule.category;
        }
    }
    return base::MemoryCategory::Activations;
}

class Tabulator {
public:
    explicit Tabulator(const RunTimeline& timeline) : timeline_(timeline), places_(timeline) {}

    void add(const base::SpanEvent& span) {
        const ScopePlace place = places_.of(span.scope.value);
        const TimeNs length = span.end - span.begin;
        KernelRow& row = kernels_[{span.name.value, place.op}];
        row.shortest = row.launches == 0 ? length : std::min(row.shortest, length);
        row.longest = std::max(row.longest, length);
        row.total += length;
        ++row.launches;
        table_.total += length;
        ++table_.launches;
        all_.add(span.begin, span.end);
        if (place.op != 0) {
            attributed_.add(span.begin, span.end);
            OpCall& call = calls_[span.scope.value];
            call.op = place.op;
            call.single = call.launches == 0 || (call.single && call.kernel == span.name.value);
            call.kernel = span.name.value;
            ++call.launches;
            call.busy.add(span.begin, span.end);
        }
        if (place.stepScope != 0) {
            Step& step = steps_[place.stepScope];
            step.row.begin = step.row.launches == 0 ? span.begin : step.row.begin;
            step.row.end = std::max(step.row.end, span.end);
            step.row.scope = place.stepScope;
            step.row.step = place.step;
            ++step.row.launches;
            step.busy.add(span.begin, span.end);
        }
    }

    KernelTable finish() {
        table_.busy = all_.length();
        table_.attributed = attributed_.length();
        addCalls();
        for (auto& [key, row] : kernels_) {
            row.name = std::string(timeline_.text(key.first));
            row.op = std::string(timeline_.text(key.second));
            row.category = key.second == 0 ? base::MemoryCategory::Other : categoryOfOp(timeline_, key.second);
            row.share = part(row.total, table_.total);
            table_.kernels.push_back(std::move(row));
        }
        for (auto& [scope, step] : steps_) {
            step.row.busy = step.busy.length();
            table_.steps.push_back(step.row);
        }
        std::ranges::stable_sort(table_.kernels, std::greater{}, &KernelRow::total);
        std::ranges::stable_sort(table_.ops, std::greater{}, &KernelOpRow::busy);
        std::ranges::stable_sort(table_.steps, {}, &KernelStepRow::begin);
        return std::move(table_);
    }

private:
    struct OpCall {
        std::uint32_t op = 0, kernel = 0;
        std::uint64_t launches = 0;
        bool single = true; ///< one kernel is all that it launched
        Union busy;
    };
    struct Step {
        KernelStepRow row;
        Union busy;
    };

    static double part(TimeNs length, TimeNs whole) {
        return whole == 0 ? 0 : static_cast<double>(length) / static_cast<double>(whole);
    }

    void addCalls() {
        std::map<std::uint32_t, KernelOpRow> ops;
        for (const auto& [scope, call] : calls_) {
            KernelOpRow& op = ops[call.op];
            ++op.calls;
            op.launches += call.launches;
            op.busy += call.busy.length();
            const std::optional<ScopeRow> row = timeline_.scopes().row(scope);
            if (!row) {
                continue;
            }
            op.bytes += row->bytes;
            op.flops += row->flops;
            if (call.single) {
                KernelRow& kernel = kernels_[{call.kernel, call.op}];
                kernel.bytes += row->bytes;
                kernel.flops += row->flops;
            } else {
                mixed_[{call.kernel, call.op}] = true;
            }
        }
        for (auto& [name, op] : ops) {
            op.op = std::string(timeline_.text(name));
            op.share = part(op.busy, table_.busy);
            table_.ops.push_back(std::move(op));
        }
        for (const auto& [key, mixed] : mixed_) {
            kernels_[key].bytes = kernels_[key].flops = 0; // only some of its launches could be counted
        }
    }

    const RunTimeline& timeline_;
    ScopePlaces places_;
    KernelTable table_;
    Union all_, attributed_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, KernelRow> kernels_; ///< by name and op
    std::map<std::pair<std::uint32_t, std::uint32_t>, bool> mixed_;
    std::unordered_map<std::uint64_t, OpCall> calls_; ///< by op scope
    std::unordered_map<std::uint64_t, Step> steps_;
};

} // namespace

KernelTable kernelTable(const RunTimeline& timeline, TimeNs begin, TimeNs end) {
    Tabulator tabulator(timeline);
    std::uint32_t lane = 0;
    for (const base::SpanEvent& span : timeline.kernels().spans()) {
        if (lane == 0 && timeline.text(span.lane.value) == kKernels) {
            lane = span.lane.value;
        }
        if (lane != 0 && span.lane.value == lane && span.begin >= begin && span.begin < end) {
            tabulator.add(span);
        }
    }
    return tabulator.finish();
}

base::MemoryCategory categoryOfOp(const RunTimeline& timeline, std::uint32_t name) {
    const std::optional<base::MemoryCategory> said = timeline.scopes().categoryOfOp(name);
    return said ? *said : guessedCategory(timeline.text(name));
}

} // namespace vitrine::profiler
