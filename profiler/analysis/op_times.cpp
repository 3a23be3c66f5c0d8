// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/op_times.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/trace.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

PhaseOps phaseOps(const RunTimeline& timeline, std::string_view phase) {
    std::optional<ScopeRow> found;
    for (const ScopeRow row : timeline.scopes().phases()) {
        if (timeline.text(row.name) == phase && row.end > row.begin) {
            found = row;
        }
    }
    PhaseOps result;
    if (!found) {
        return result;
    }
    std::map<std::uint32_t, OpTime> byName;
    const auto rows = timeline.scopes().all();
    base::TimeNs until = found->begin, inOps = 0; // the end of the last op: what begins before it is a part of it
    for (std::size_t i = scopesUpTo(timeline, found->begin - 1); i < rows.size(); ++i) {
        const ScopeRow row = rows[i];
        if (row.begin >= found->end) {
            break;
        }
        if (row.kind != base::ScopeKind::Op || row.end <= row.begin || row.begin < until) {
            continue;
        }
        OpTime& op = byName[row.name];
        op.time += row.end - row.begin;
        ++op.calls;
        inOps += row.end - row.begin;
        until = row.end;
    }
    if (byName.empty()) {
        return result;
    }
    for (auto& [name, op] : byName) {
        op.name = std::string(timeline.text(name));
        result.ops.push_back(std::move(op));
    }
    std::ranges::stable_sort(result.ops, std::greater(), &OpTime::time);
    result.total = found->end - found->begin;
    result.other = std::max<base::TimeNs>(0, result.total - inOps);
    return result;
}

} // namespace vitrine::profiler
