// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/history.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <memory>

namespace vitrine::profiler {
namespace {

constexpr std::uint64_t kBlocksOfStep = 500;
constexpr std::uint64_t kReplays = 1000;

std::shared_ptr<const base::StepTemplate> repeatedStep() {
    auto made = std::make_shared<base::StepTemplate>();
    made->id = 1;
    made->duration = 10 * kBlocksOfStep;
    made->idCount = kBlocksOfStep + 1;
    for (std::uint64_t block = 0; block < kBlocksOfStep; ++block) {
        const auto at = static_cast<base::TimeNs>(10 * block);
        base::AllocationEvent birth;
        birth.time = at;
        birth.id = block + 1;
        birth.address = 4096 * (block % 16);
        birth.bytes = 1024;
        made->events.emplace_back(birth);
        made->events.emplace_back(base::FreeEvent{at + 5, block + 1});
    }
    return made;
}

std::vector<Ordered<base::StepReplayedEvent>> replays() {
    std::vector<Ordered<base::StepReplayedEvent>> events;
    for (std::uint64_t i = 0; i < kReplays; ++i) {
        const auto begin = static_cast<base::TimeNs>(i * 10 * kBlocksOfStep);
        base::StepReplayedEvent event;
        event.begin = begin;
        event.end = begin + static_cast<base::TimeNs>(9 * kBlocksOfStep + i % 7); // no two are equally long
        event.stepTemplate = 1;
        event.firstId = 1 + i * (kBlocksOfStep + 1);
        events.push_back({i, event});
    }
    return events;
}

TEST(MemoryHistory, StepsThatRepeatTakeLittleMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer's allocator does not count";
#endif
    const auto held = [] {
        const auto info = mallinfo2();
        return info.uordblks + info.hblkhd;
    };
    const auto events = replays();
    const std::size_t before = held();
    MemoryHistory history(0);
    history.addTemplates({repeatedStep()});
    history.addReplays(events);
    history.takeNewReplays();
    history.settle(false);
    const HistoryViews views = history.views();
    ASSERT_EQ(history.events(), 2 * kBlocksOfStep * kReplays);
    // Of these, 4.5 bytes are nodes of the two pyramids and 5 those of the shapes.
    EXPECT_LT(held() - before, history.events() * 12);
    EXPECT_EQ(views.events.row(history.events() - 1), kBlocksOfStep * kReplays - 1);
}

} // namespace
} // namespace vitrine::profiler
