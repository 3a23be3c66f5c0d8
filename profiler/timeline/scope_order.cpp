// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/scope_order.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace vitrine::profiler {

ScopeRefs ScopeOrder::view(const BeginOf& beginOf) {
    if (!waiting_.empty()) {
        std::vector<Part> parts = std::exchange(waiting_, {});
        std::int64_t turn = 0;
        for (Part& part : parts) {
            part.begin = beginOf(part.ref);
            part.turn = turn++;
        }
        takeBackAfter(std::min_element(parts.begin(), parts.end())->begin, beginOf, parts);
        std::sort(parts.begin(), parts.end());
        merge(std::move(parts), beginOf);
    }
    ScopeRefs view;
    view.refs_ = refs_.view();
    view.runs_ = runs_.view();
    view.single_ = single_.view();
    return view;
}

/// Takes back the scopes that begin later; they come again before others of the same begin.
void ScopeOrder::takeBackAfter(base::TimeNs begin, const BeginOf& beginOf, std::vector<Part>& parts) {
    std::int64_t turn = 0;
    while (size() > 0) {
        const ScopeRun run = runs_.back();
        const ScopeRef ref = at(run, size() - 1);
        const base::TimeNs begins = beginOf(ref);
        if (begins <= begin) {
            return;
        }
        const bool inPlace = run.replay != kNoReplay;
        Part part{ref, 1, inPlace, begins, --turn};
        const bool continues = inPlace && turn < -1 && parts.back().inPlace && parts.back().ref.replay == ref.replay &&
                               parts.back().ref.item == ref.item + 1;
        if (continues) {
            part.count += parts.back().count;
            parts.back() = part;
        } else {
            parts.push_back(part);
        }
        if (!inPlace) {
            single_.truncate(single_.size() - 1);
        }
        refs_.popBack();
        if (run.firstRef == size()) {
            runs_.truncate(runs_.size() - 1);
        }
    }
}

void ScopeOrder::merge(std::vector<Part> parts, const BeginOf& beginOf) {
    const auto later = [](const Part& a, const Part& b) { return b < a; };
    std::priority_queue<Part, std::vector<Part>, decltype(later)> begun(later); // replays that another part cut
    std::size_t next = 0;
    while (next < parts.size() || !begun.empty()) {
        Part part;
        if (begun.empty() || (next < parts.size() && parts[next] < begun.top())) {
            part = parts[next++];
        } else {
            part = begun.top();
            begun.pop();
        }
        do {
            push(part);
            --part.count;
            if (part.count > 0) {
                ++part.ref.item;
                part.begin = beginOf(part.ref);
            }
        } while (part.count > 0 && (next == parts.size() || part < parts[next]) &&
                 (begun.empty() || part < begun.top()));
        if (part.count > 0) {
            begun.push(part);
        }
    }
}

/// Appends the first scope of a part.
void ScopeOrder::push(const Part& part) {
    const std::uint32_t replay = part.inPlace ? part.ref.replay : kNoReplay;
    if (runs_.empty() || runs_.back().replay != replay) {
        runs_.push({static_cast<std::uint32_t>(size()),
                    part.inPlace ? part.ref.item : static_cast<std::uint32_t>(single_.size()), replay});
    }
    if (!part.inPlace) {
        single_.push(part.ref);
    }
    refs_.push(runs_.size() - 1);
}

} // namespace vitrine::profiler
