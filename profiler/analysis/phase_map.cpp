// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/phase_map.h"

#include <algorithm>

namespace vitrine::profiler {

using base::TimeNs;

namespace {

using Knot = PhaseMap::Knot;

TimeNs between(TimeNs at, TimeNs from, TimeNs to, TimeNs low, TimeNs high) {
    if (to <= from) {
        return high;
    }
    return low + static_cast<TimeNs>(static_cast<__int128>(at - from) * (high - low) / (to - from));
}

TimeNs mapped(const std::vector<Knot>& knots, TimeNs at, TimeNs Knot::* from, TimeNs Knot::* to) {
    if (knots.empty()) {
        return at;
    }
    const auto next = std::ranges::upper_bound(knots, at, {}, from);
    if (next == knots.begin()) {
        return knots.front().*to;
    }
    if (next == knots.end()) {
        return knots.back().*to;
    }
    const Knot& low = *(next - 1);
    return between(at, low.*from, (*next).*from, low.*to, (*next).*to);
}

const StepPhase* phaseLike(const StepAnatomy& step, const StepPhase& wanted, std::size_t from) {
    for (std::size_t i = from; i < step.phases.size(); ++i) {
        if (step.phases[i].kind == wanted.kind && step.phases[i].pass == wanted.pass) {
            return &step.phases[i];
        }
    }
    return nullptr;
}

const StepItem* itemLike(const StepAnatomy& step, const StepPhase& phase, std::int32_t index) {
    for (std::size_t i = phase.firstItem; i < phase.firstItem + phase.items; ++i) {
        if (step.items[i].index == index) {
            return &step.items[i];
        }
    }
    return nullptr;
}

} // namespace

PhaseMap::PhaseMap(const StepAnatomy& a, const StepAnatomy& b) {
    std::size_t next = 0; // of B's phases
    TimeNs reached = 0;   // of B's time
    for (const StepPhase& phase : a.phases) {
        const StepPhase* other = phaseLike(b, phase, next);
        if (other == nullptr) {
            add(phase.begin - a.begin, reached);
            add(phase.end - a.begin, reached);
            continue;
        }
        next = static_cast<std::size_t>(other - b.phases.data()) + 1;
        add(phase.begin - a.begin, other->begin - b.begin);
        for (std::size_t i = phase.firstItem; i < phase.firstItem + phase.items; ++i) {
            if (const StepItem* item = itemLike(b, *other, a.items[i].index)) {
                add(a.items[i].begin - a.begin, item->begin - b.begin);
            }
        }
        reached = other->end - b.begin;
        add(phase.end - a.begin, reached);
    }
}

PhaseMap PhaseMap::identity(TimeNs longest) {
    PhaseMap map;
    map.knots_ = {{0, 0}, {longest, longest}};
    return map;
}

void PhaseMap::add(TimeNs a, TimeNs b) {
    if (!knots_.empty()) {
        const Knot& last = knots_.back();
        if (a < last.a || b < last.b || (a == last.a && b == last.b)) {
            return;
        }
    }
    knots_.push_back({a, b});
}

TimeNs PhaseMap::timeInB(TimeNs a) const {
    return mapped(knots_, a, &Knot::a, &Knot::b);
}

TimeNs PhaseMap::timeInA(TimeNs b) const {
    return mapped(knots_, b, &Knot::b, &Knot::a);
}

} // namespace vitrine::profiler
