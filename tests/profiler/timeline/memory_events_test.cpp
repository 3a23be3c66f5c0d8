// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/memory_events.h"

#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <random>

namespace vitrine::profiler {
namespace {

MemoryChange change(std::uint64_t bytes, bool death) {
    return {bytes, base::MemorySpace::Device, base::MemoryCategory::Activations, death};
}

/// A birth, a birth that stays, the first one's death, and a pair.
std::shared_ptr<const TemplateInfo> step() {
    auto info = std::make_shared<TemplateInfo>();
    info->duration = 100;
    info->events =
        templateEvents({{0, false, 0, 1}, {10, false, 1, 2}, {20, true, 0, 1}, {30, false, 2, 3}, {100, true, 0, 3}},
                       [](std::uint32_t def) { return change(10 + def, false); });
    info->births = {0, 1, 3};
    return info;
}

/// What was added, one by one.
struct Plain {
    std::vector<MemoryEvent> events;
    std::vector<AllocationLife> lives;
    std::vector<base::TimeNs> freed;
};

void expectEqual(const MemoryEvents& events, const Plain& plain) {
    ASSERT_EQ(events.size(), plain.events.size());
    ASSERT_EQ(events.rows(), plain.lives.size());
    std::size_t next = 0;
    events.each(0, events.size(), [&](const MemoryEvent& event) {
        const MemoryEvent& expected = plain.events[next];
        EXPECT_EQ(event.time, expected.time);
        EXPECT_EQ(event.row, expected.row);
        EXPECT_EQ(event.order, expected.order);
        EXPECT_EQ(event.change.bytes(), expected.change.bytes());
        EXPECT_EQ(events.time(next), expected.time);
        EXPECT_EQ(events.row(next), expected.row);
        EXPECT_EQ(events.change(next).death(), expected.change.death());
        ++next;
    });
    EXPECT_EQ(next, plain.events.size());
    for (std::uint32_t row = 0; row < events.rows(); ++row) {
        EXPECT_EQ(events.life(row).born, plain.lives[row].born);
        EXPECT_EQ(events.life(row).def, plain.lives[row].def);
        EXPECT_EQ(events.life(row).replay, plain.lives[row].replay);
        EXPECT_EQ(events.freed(row), plain.freed[row]);
    }
}

class EventScript {
public:
    EventScript() { builder_.addTemplate(step()); }

    void beginReplay() {
        builder_.addReplay({now_, now_ + 200, 1000, 0, 0, order_++, 0});
        ++replays_;
        at_ = 0;
        rows_.clear();
    }
    bool inReplay() const { return replays_ > 0 && at_ < 5; }
    void nextOfReplay() {
        const TemplateEvent& event = builder_.templates()[0]->events[at_];
        const MemoryEvent added = builder_.addTemplateEvent(replays_ - 1, at_++);
        now_ = added.time;
        plain_.events.push_back(added);
        if (event.change.death()) {
            EXPECT_EQ(added.row, rows_.at(event.id));
            plain_.freed[added.row] = added.time;
        } else {
            rows_[event.id] = added.row;
            plain_.lives.push_back({added.time, event.def, replays_ - 1});
            plain_.freed.push_back(-1);
            if (event.outlives()) {
                living_.push_back(added.row);
            }
        }
    }
    void birth() {
        const AllocationLife life{now_, 7, kNoReplay};
        const std::uint32_t row = builder_.addBirth(order_, life, change(5, false));
        plain_.events.push_back({now_, change(5, false), row, order_++});
        plain_.lives.push_back(life);
        plain_.freed.push_back(-1);
        living_.push_back(row);
    }
    void death(std::size_t which) {
        if (living_.empty()) {
            return;
        }
        const auto living = living_.begin() + static_cast<std::ptrdiff_t>(which % living_.size());
        builder_.addDeath(order_, now_, *living, change(5, true));
        plain_.events.push_back({now_, change(5, true), *living, order_++});
        plain_.freed[*living] = now_;
        living_.erase(living);
    }

    MemoryEventsBuilder& builder() { return builder_; }
    const Plain& plain() const { return plain_; }

private:
    MemoryEventsBuilder builder_;
    Plain plain_;
    std::map<std::uint64_t, std::uint32_t> rows_;
    std::vector<std::uint32_t> living_;
    std::uint32_t replays_ = 0, at_ = 0, order_ = 0;
    base::TimeNs now_ = 0;
};

void play(EventScript& script, int steps, std::mt19937& random) {
    for (int i = 0; i < steps; ++i) {
        const auto what = random() % 16;
        if (script.inReplay() && what < 12) {
            script.nextOfReplay();
        } else if (!script.inReplay() && what < 10) {
            script.beginReplay();
        } else if (what % 2 == 0) {
            script.birth();
        } else {
            script.death(random());
        }
    }
    while (script.inReplay()) {
        script.nextOfReplay(); // readers see no replay in part
    }
}

TEST(MemoryEvents, ReadAsThoughEachWereKept) {
    for (unsigned seed = 0; seed < 12; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        EventScript script;
        play(script, seed < 10 ? 300 : 12'000, random);
        expectEqual(script.builder().view(), script.plain());
    }
}

TEST(MemoryEvents, AreTakenBackOneByOne) {
    std::mt19937 random(5);
    EventScript script;
    play(script, 4'000, random);
    MemoryEventsBuilder& builder = script.builder();
    const MemoryEvents before = builder.view();
    for (std::size_t left = script.plain().events.size(); left-- > 0;) {
        const MemoryEventsBuilder::Last last = builder.last();
        EXPECT_EQ(last.event.time, script.plain().events[left].time);
        EXPECT_EQ(last.event.row, script.plain().events[left].row);
        builder.takeBack();
        EXPECT_EQ(builder.size(), left);
    }
    EXPECT_EQ(builder.rows(), 0u);
    expectEqual(before, script.plain());
}

} // namespace
} // namespace vitrine::profiler
