// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/scope_places.h"

#include <gtest/gtest.h>
#include <random>

#include "profiler/timeline/scope_facet.h"
#include "tests/profiler/timeline/timeline_script.h"

namespace vitrine::profiler {
namespace {

using base::ScopeKind;
using test::TimelineScript;

/// More scopes than places are remembered, nested at random.
std::shared_ptr<const RunTimeline> randomScopes(unsigned seed) {
    TimelineScript script;
    std::mt19937 random(seed);
    const auto below = [&random](std::uint64_t limit) { return random() % limit; };
    for (std::uint64_t i = 0; i < 6000; ++i) {
        const auto kind = static_cast<ScopeKind>(below(5));
        const std::uint64_t shortlyBefore = i - below(std::min<std::uint64_t>(i % 150, 40) + 1);
        const std::uint64_t parent = i % 150 == 0 ? 0 : shortlyBefore; // never near the bound of depth
        script.addScope(kind, "name " + std::to_string(below(7)), static_cast<double>(i), -1, parent,
                        static_cast<std::int32_t>(below(4)) - 1);
    }
    script.finish(6000);
    return script.timeline();
}

/// By the definition: outwards, the first of each kind that says something.
ScopePlace placeBySearch(const RunTimeline& timeline, std::uint64_t scope) {
    ScopePlace place;
    for (int depth = 0; depth < 64; ++depth) {
        const ScopeRow* row = timeline.scopes().find(scope);
        if (row == nullptr) {
            break;
        }
        if (row->kind == ScopeKind::Op && place.op == 0) {
            place.op = row->name;
        } else if (row->kind == ScopeKind::Layer && place.layer < 0) {
            place.layer = row->index;
        } else if (row->kind == ScopeKind::Step && place.stepScope == 0) {
            place.step = row->index;
            place.stepScope = row->id;
        } else if (row->kind == ScopeKind::Phase && place.phaseScope == 0) {
            place.phase = row->name;
            place.phaseScope = row->id;
        }
        scope = row->parent;
    }
    return place;
}

void expectSame(const ScopePlace& found, const ScopePlace& wanted, std::uint64_t scope) {
    EXPECT_EQ(found.step, wanted.step) << scope;
    EXPECT_EQ(found.layer, wanted.layer) << scope;
    EXPECT_EQ(found.stepScope, wanted.stepScope) << scope;
    EXPECT_EQ(found.phaseScope, wanted.phaseScope) << scope;
    EXPECT_EQ(found.op, wanted.op) << scope;
    EXPECT_EQ(found.phase, wanted.phase) << scope;
}

TEST(ScopePlaces, AreTheInnermostOfEachKindInAnyOrder) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
        const auto timeline = randomScopes(seed);
        ScopePlaces inOrder(*timeline), anyOrder(*timeline);
        for (const ScopeRow row : timeline->scopes().all()) {
            expectSame(inOrder.around(row), placeBySearch(*timeline, row.parent), row.id);
            expectSame(placeInside(inOrder.of(row.parent), row), placeBySearch(*timeline, row.id), row.id);
        }
        std::mt19937 random(seed);
        for (int i = 0; i < 3000; ++i) {
            const std::uint64_t scope = 1 + random() % 6000;
            expectSame(anyOrder.of(scope), placeBySearch(*timeline, scope), scope);
        }
    }
}

TEST(ScopePlaces, OfNothingAndOfDamagedScopesEnd) {
    TimelineScript script;
    script.addScope(ScopeKind::Op, "a", 0, 1, 2);
    script.addScope(ScopeKind::Layer, "b", 0, 1, 1, 3); // a circle
    script.addScope(ScopeKind::Step, "c", 0, 1, 3, 9);  // inside itself
    script.addScope(ScopeKind::Op, "d", 0, 1, 77);      // inside nothing that is there
    script.finish(1);
    const auto built = script.timeline();
    const RunTimeline& timeline = *built;
    ScopePlaces places(timeline);
    EXPECT_EQ(places.of(0).op, 0U);
    EXPECT_EQ(places.of(99).op, 0U);
    EXPECT_EQ(places.of(1).layer, 3);
    EXPECT_EQ(places.of(3).step, 9);
    EXPECT_EQ(timeline.text(places.of(4).op), "d");
    EXPECT_EQ(places.around(timeline.scopes().all()[2]).stepScope, 0U);
}

} // namespace
} // namespace vitrine::profiler
