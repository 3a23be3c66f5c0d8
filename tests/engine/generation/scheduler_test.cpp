// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/scheduler.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include "base/philox.h"
#include "tests/repetitions.h"

namespace vitrine::engine {
namespace {

/// Runs a scheduler as an engine would, with a hash of (request, position) as each sampled token, and follows what is
/// in every page, so that a wrong page, a lost swap or a token out of order is seen.
class Rig {
public:
    Rig(const SchedulerOptions& options, std::vector<PageGroup> groups, bool share = false)
        : book_(std::move(groups), share), scheduler_(options, book_) {}

    std::int32_t add(std::vector<std::int32_t> prompt, std::int64_t newTokens) {
        const std::int32_t request = scheduler_.add(prompt, newTokens);
        histories_[request] = prompt;
        prompts_[request] = static_cast<std::int64_t>(prompt.size());
        wanted_[request] = newTokens;
        return request;
    }

    /// The token that a request samples after so many of its own.
    static std::int32_t sampled(std::int32_t request, std::int64_t position) {
        const auto bits = base::philox4x32(base::philoxKey(1, static_cast<std::uint32_t>(request)),
                                           static_cast<std::uint64_t>(position), 0);
        return static_cast<std::int32_t>(bits[0] % 1000);
    }

    /// One step. False when there was nothing to do. `late` is called when the step is scheduled and its moves are
    /// made, and before it runs: what the host learns of the step before it.
    bool step(const std::function<void()>& late = {}) {
        StepSchedule schedule = scheduler_.next();
        if (schedule.empty()) {
            EXPECT_TRUE(schedule.moves.empty() && schedule.preempted.empty()) << "a change that nobody reports";
            return false;
        }
        if (scheduler_.options().preemption == Preemption::Swap) {
            EXPECT_LE(scheduler_.swappedPages(), scheduler_.options().swapPages);
        }
        EXPECT_LE(schedule.tokens(), scheduler_.options().tokenBudget);
        EXPECT_LE(scheduler_.running(), scheduler_.options().slots);
        for (const PageMove& move : schedule.moves) {
            make(move);
        }
        preemptions_ += static_cast<std::int64_t>(schedule.preempted.size());
        for (const SlotChange& change : schedule.admitted) {
            EXPECT_EQ(change.again, !admitted_.insert(change.request).second)
                << "request " << change.request << " came back and had not come";
        }
        if (late) {
            late();
            std::erase_if(schedule.rows, [&](const ScheduledRow& row) { return !book_.live(row.sequence); });
        }
        std::set<std::pair<std::int32_t, std::int32_t>> slots;
        for (const ScheduledRow& row : schedule.rows) {
            EXPECT_TRUE(slots.emplace(row.slot, row.request).second) << "two rows of one request";
            run(row);
        }
        noteWaits(schedule);
        noteOvertakes(schedule);
        ++steps_;
        return true;
    }

    void finish(const std::function<void()>& late = {}) {
        scheduler_.close();
        // Nothing may hang: so many steps are enough for all tokens one by one, over and over.
        for (std::int64_t i = 0; step(late); ++i) {
            ASSERT_LT(i, 200'000);
        }
    }

    void expectEverythingEnded() {
        for (std::int32_t request = 0; request < scheduler_.requests(); ++request) {
            ASSERT_TRUE(scheduler_.ended(request)) << "request " << request << " waits for ever";
            if (scheduler_.state(request) == RequestState::Refused) {
                EXPECT_FALSE(scheduler_.reason(request).empty());
                continue;
            }
            const auto& history = histories_[request];
            const auto made = static_cast<std::int64_t>(history.size()) - prompts_[request];
            if (scheduler_.state(request) == RequestState::Finished && !stopped_.contains(request)) {
                EXPECT_EQ(made, wanted_[request]) << "request " << request;
            }
            for (std::int64_t i = prompts_[request]; i < static_cast<std::int64_t>(history.size()); ++i) {
                EXPECT_EQ(history[static_cast<std::size_t>(i)], sampled(request, i));
            }
        }
        EXPECT_EQ(book_.counts().used, 0) << "pages leaked";
        EXPECT_EQ(scheduler_.swappedPages(), 0);
        EXPECT_EQ(scheduler_.queued(), 0);
        EXPECT_EQ(scheduler_.running(), 0);
    }

    void stop(std::int32_t request) {
        stopped_.insert(request);
        scheduler_.stop(request);
    }

    PageBook& book() { return book_; }
    Scheduler& scheduler() { return scheduler_; }
    const std::vector<std::int32_t>& history(std::int32_t request) { return histories_[request]; }
    std::int64_t preemptions() const { return preemptions_; }
    std::int64_t steps() const { return steps_; }
    std::int32_t longestWait() const { return longestWait_; }
    std::int32_t mostOvertaken() const { return mostOvertaken_; }

private:
    using Slots = std::vector<std::vector<std::int32_t>>; ///< what stands in each slot of some pages

    std::int32_t& cell(int group, std::int32_t page, std::int64_t slot) { return memory_[{group, page, slot}]; }

    Slots contents(const std::vector<std::vector<std::int32_t>>& pages) {
        Slots out;
        for (std::size_t group = 0; group < pages.size(); ++group) {
            for (const std::int32_t page : pages[group]) {
                auto& slots = out.emplace_back();
                for (std::int64_t slot = 0; slot < book_.groups()[group].pageTokens; ++slot) {
                    slots.push_back(cell(static_cast<int>(group), page, slot));
                }
            }
        }
        return out;
    }

    void restore(const std::vector<std::vector<std::int32_t>>& pages, const Slots& saved) {
        std::size_t next = 0;
        for (std::size_t group = 0; group < pages.size(); ++group) {
            for (const std::int32_t page : pages[group]) {
                ASSERT_LT(next, saved.size());
                for (std::size_t slot = 0; slot < saved[next].size(); ++slot) {
                    cell(static_cast<int>(group), page, static_cast<std::int64_t>(slot)) = saved[next][slot];
                }
                ++next;
            }
        }
        EXPECT_EQ(next, saved.size());
    }

    void make(const PageMove& move) {
        if (move.kind == PageMove::Kind::SwapOut) {
            host_[move.request] = contents(move.pages);
        } else if (move.kind == PageMove::Kind::SwapIn) {
            EXPECT_TRUE(host_.contains(move.request));
            restore(move.pages, host_[move.request]);
            host_.erase(move.request);
        } else {
            const int group = move.copy.group;
            for (std::int64_t slot = 0; slot < book_.groups()[static_cast<std::size_t>(group)].pageTokens; ++slot) {
                cell(group, move.copy.to, slot) = cell(group, move.copy.from, slot);
            }
        }
    }

    std::int32_t& placeOf(int sequence, int group, std::int64_t position) {
        const PageGroup& kind = book_.groups()[static_cast<std::size_t>(group)];
        const auto pages = book_.pages(sequence, group);
        const std::int64_t page = position / kind.pageTokens;
        const auto index = static_cast<std::size_t>(kind.ringPages > 0 ? page % kind.ringPages : page);
        return cell(group, pages[index], position % kind.pageTokens);
    }

    void run(const ScheduledRow& row) {
        EXPECT_EQ(book_.length(row.sequence), row.begin);
        if (row.request >= 0 && row.kind != RowKind::Padding) {
            auto& history = histories_[row.request];
            ASSERT_LE(row.begin + row.tokens, static_cast<std::int64_t>(history.size()));
            for (int group = 0; group < static_cast<int>(book_.groups().size()); ++group) {
                const PageGroup& kind = book_.groups()[static_cast<std::size_t>(group)];
                const std::int64_t kept = kind.ringPages * kind.pageTokens;
                for (std::int64_t p = kind.ringPages > 0 ? std::max<std::int64_t>(0, row.begin - kept) : 0;
                     p < row.begin; ++p) {
                    ASSERT_EQ(placeOf(row.sequence, group, p), history[static_cast<std::size_t>(p)])
                        << "request " << row.request << " reads another's tokens at " << p;
                }
                for (std::int64_t p = row.begin; p < row.begin + row.tokens; ++p) {
                    placeOf(row.sequence, group, p) = history[static_cast<std::size_t>(p)];
                }
            }
            if (row.samples) {
                const auto position = static_cast<std::int64_t>(history.size());
                EXPECT_EQ(row.begin + row.tokens, position);
                history.push_back(sampled(row.request, position));
            }
        }
        book_.commit(row.sequence, row.tokens);
        if (row.request >= 0 && row.kind != RowKind::Padding) {
            book_.publish(row.sequence, histories_[row.request]);
            if (row.keepsRings) {
                book_.keepRings(row.sequence);
            }
        }
    }

    void noteWaits(const StepSchedule& schedule) {
        for (std::int32_t request = 0; request < scheduler_.requests(); ++request) {
            const bool runs = scheduler_.state(request) == RequestState::Running;
            const bool served = std::any_of(schedule.rows.begin(), schedule.rows.end(),
                                            [&](const ScheduledRow& row) { return row.request == request; });
            waits_[request] = runs && !served ? waits_[request] + 1 : 0;
            longestWait_ = std::max(longestWait_, waits_[request]);
        }
    }

    /// For each request that waits, those that arrived later and came in for the first time before it.
    void noteOvertakes(const StepSchedule& schedule) {
        for (std::size_t i = 0; i < schedule.admitted.size(); ++i) {
            const std::int32_t request = schedule.admitted[i].request;
            const auto comesLater = [&](std::int32_t other) {
                return std::any_of(schedule.admitted.begin() + static_cast<std::ptrdiff_t>(i), schedule.admitted.end(),
                                   [&](const SlotChange& change) { return change.request == other; });
            };
            for (std::int32_t other = 0; other < request && !schedule.admitted[i].again; ++other) {
                if (scheduler_.state(other) == RequestState::Waiting || comesLater(other)) {
                    mostOvertaken_ = std::max(mostOvertaken_, ++overtaken_[other]);
                }
            }
        }
    }

    PageBook book_;
    Scheduler scheduler_;
    std::map<std::int32_t, std::vector<std::int32_t>> histories_;
    std::map<std::int32_t, std::int64_t> prompts_, wanted_;
    std::map<std::tuple<int, std::int32_t, std::int64_t>, std::int32_t> memory_;
    std::map<std::int32_t, Slots> host_;
    std::map<std::int32_t, std::int32_t> waits_;
    std::set<std::int32_t> stopped_, admitted_;
    std::int64_t preemptions_ = 0, steps_ = 0;
    std::int32_t longestWait_ = 0;
    std::map<std::int32_t, std::int32_t> overtaken_;
    std::int32_t mostOvertaken_ = 0;
};

std::vector<std::int32_t> promptOf(std::int64_t length, std::int32_t salt) {
    std::vector<std::int32_t> out;
    for (std::int64_t i = 0; i < length; ++i) {
        out.push_back(static_cast<std::int32_t>((i * 7 + salt) % 997));
    }
    return out;
}

SchedulerOptions optionsOf(std::int32_t slots, std::int64_t budget) {
    SchedulerOptions options;
    options.slots = slots;
    options.tokenBudget = budget;
    return options;
}

TEST(Scheduler, ReadsPromptsInPiecesBesideDecodes) {
    Rig rig(optionsOf(2, 10), {{4, 0, 100}});
    rig.add(promptOf(4, 0), 5);
    ASSERT_TRUE(rig.step());
    rig.add(promptOf(25, 1), 2);
    const StepSchedule schedule = rig.scheduler().next();
    ASSERT_EQ(schedule.rows.size(), 2U);
    EXPECT_EQ(schedule.rows[0].kind, RowKind::Decode);
    EXPECT_EQ(schedule.rows[1].kind, RowKind::Prefill);
    EXPECT_EQ(schedule.rows[1].tokens, 9);
    EXPECT_FALSE(schedule.rows[1].samples);
}

TEST(Scheduler, PrefillFirstLetsDecodesWait) {
    SchedulerOptions options = optionsOf(2, 10);
    options.order = BatchOrder::PrefillFirst;
    Rig rig(options, {{4, 0, 100}});
    rig.add(promptOf(4, 0), 5);
    ASSERT_TRUE(rig.step());
    rig.add(promptOf(25, 1), 2);
    const StepSchedule schedule = rig.scheduler().next();
    ASSERT_EQ(schedule.rows.size(), 1U);
    EXPECT_EQ(schedule.rows[0].kind, RowKind::Prefill);
    EXPECT_EQ(schedule.rows[0].tokens, 10);
}

/// Steps that two slots need for answers of these lengths.
std::int64_t stepsOf(BatchMode mode, BatchOrder order, const std::vector<std::int64_t>& answers) {
    SchedulerOptions options = optionsOf(2, 100);
    options.mode = mode;
    options.order = order;
    Rig rig(options, {{4, 0, 100}});
    for (const std::int64_t tokens : answers) {
        rig.add(promptOf(4, 0), tokens);
    }
    rig.finish();
    rig.expectEverythingEnded();
    return rig.steps();
}

TEST(Scheduler, LongestFirstLetsTheLongestAnswersBegin) {
    const std::vector<std::int64_t> answers{2, 8, 3, 8};
    EXPECT_EQ(stepsOf(BatchMode::Continuous, BatchOrder::Fifo, answers), 13);
    EXPECT_EQ(stepsOf(BatchMode::Continuous, BatchOrder::LongestFirst, answers), 11);
    SchedulerOptions options = optionsOf(2, 100);
    options.order = BatchOrder::LongestFirst;
    Rig rig(options, {{4, 0, 100}});
    for (const std::int64_t tokens : answers) {
        rig.add(promptOf(4, 0), tokens);
    }
    ASSERT_TRUE(rig.step());
    EXPECT_EQ(rig.scheduler().state(1), RequestState::Running);
    EXPECT_EQ(rig.scheduler().state(3), RequestState::Running);
}

TEST(Scheduler, LongestFirstOvertakesAShortAnswerSoOftenAndNoMore) {
    SchedulerOptions options = optionsOf(1, 100);
    options.order = BatchOrder::LongestFirst;
    options.overtakes = 3;
    Rig rig(options, {{4, 0, 100}});
    const std::int32_t first = rig.add(promptOf(4, 0), 1);
    for (int later = 0; later < 10; ++later) {
        rig.add(promptOf(4, 0), 2);
    }
    while (rig.scheduler().state(first) == RequestState::Waiting && rig.step()) {
        EXPECT_EQ(rig.scheduler().state(10), RequestState::Waiting) << "of equal ones the first to arrive";
    }
    EXPECT_EQ(rig.mostOvertaken(), 3);
    rig.finish();
    rig.expectEverythingEnded();
}

TEST(Scheduler, StaticBatchesAreOfLikeAnswersWhenTheLongestComeFirst) {
    const std::vector<std::int64_t> answers{9, 1, 9, 1};
    EXPECT_EQ(stepsOf(BatchMode::Static, BatchOrder::Fifo, answers), 18);
    EXPECT_EQ(stepsOf(BatchMode::Static, BatchOrder::LongestFirst, answers), 10);
}

TEST(Scheduler, StaticWaitsForAFullBatchPadsAndStepsOn) {
    SchedulerOptions options = optionsOf(2, 100);
    options.mode = BatchMode::Static;
    Rig rig(options, {{4, 0, 100}});
    rig.add(promptOf(3, 0), 1);
    EXPECT_FALSE(rig.step()) << "one of two waits";
    rig.add(promptOf(8, 1), 4);
    StepSchedule schedule = rig.scheduler().next();
    ASSERT_EQ(schedule.rows.size(), 3U);
    EXPECT_EQ(schedule.tokens(), 16) << "2 x the longest prompt";
    EXPECT_TRUE(std::any_of(schedule.rows.begin(), schedule.rows.end(), [](const ScheduledRow& row) {
        return row.kind == RowKind::Padding && row.request == -1 && row.tokens == 5 && row.slot == 0;
    }));
    for (const ScheduledRow& row : schedule.rows) {
        rig.book().commit(row.sequence, row.tokens);
    }
    rig.add(promptOf(2, 2), 1);
    for (int step = 0; step < 3; ++step) {
        schedule = rig.scheduler().next();
        ASSERT_EQ(schedule.rows.size(), 2U) << "the one that has ended steps on, nobody else is let in";
        EXPECT_EQ(schedule.rows[0].kind, RowKind::Decode);
        EXPECT_EQ(schedule.rows[1].kind, RowKind::Padding);
        for (const ScheduledRow& row : schedule.rows) {
            rig.book().commit(row.sequence, row.tokens);
        }
    }
    EXPECT_TRUE(rig.scheduler().next().empty());
    EXPECT_EQ(rig.scheduler().state(1), RequestState::Finished);
    rig.scheduler().close();
    EXPECT_EQ(rig.scheduler().next().rows.size(), 1U) << "the last ones need not be as many as slots";
}

TEST(Scheduler, WhatCanNeverFitIsRefusedWithAReason) {
    SchedulerOptions options = optionsOf(2, 10);
    options.maxQueue = 2;
    Rig rig(options, {{4, 0, 5}});
    EXPECT_EQ(rig.scheduler().state(rig.add({}, 3)), RequestState::Refused);
    EXPECT_EQ(rig.scheduler().state(rig.add(promptOf(3, 0), 0)), RequestState::Refused);
    const std::int32_t large = rig.add(promptOf(10, 0), 12);
    EXPECT_EQ(rig.scheduler().state(large), RequestState::Refused);
    EXPECT_NE(rig.scheduler().reason(large).find("21 tokens"), std::string::npos);
    const std::int32_t fits = rig.add(promptOf(10, 0), 11);
    EXPECT_EQ(rig.scheduler().state(fits), RequestState::Waiting);
    rig.add(promptOf(1, 0), 1);
    EXPECT_EQ(rig.scheduler().state(rig.add(promptOf(1, 0), 1)), RequestState::Refused) << "the queue is full";
    rig.finish();
    rig.expectEverythingEnded();
}

TEST(Scheduler, TheYoungestLosesItsPlaceAndTheOldestGetsOn) {
    for (const Preemption kind : {Preemption::Recompute, Preemption::Swap}) {
        SchedulerOptions options = optionsOf(4, 64);
        options.preemption = kind;
        options.swapPages = 100;
        Rig rig(options, {{2, 0, 16}});
        for (std::int32_t i = 0; i < 4; ++i) {
            rig.add(promptOf(4, i), 20);
        }
        rig.finish();
        rig.expectEverythingEnded();
        EXPECT_GT(rig.preemptions(), 0);
    }
}

TEST(Scheduler, APoolForAllSlotsKeepsAllSlotsBusy) {
    for (const Preemption kind : {Preemption::Off, Preemption::Recompute}) {
        SchedulerOptions options = optionsOf(4, 64);
        options.preemption = kind;
        Rig rig(options, {{8, 0, 4}});
        for (std::int32_t i = 0; i < 12; ++i) {
            rig.add(promptOf(4, i), 5);
        }
        for (int step = 0; step < 11; ++step) {
            ASSERT_TRUE(rig.step());
            EXPECT_EQ(rig.scheduler().running(), 4);
        }
        rig.finish();
        rig.expectEverythingEnded();
        EXPECT_EQ(rig.steps(), 15);
    }
}

TEST(Scheduler, WithoutPreemptionNobodyLosesItsPlace) {
    SchedulerOptions options = optionsOf(4, 64);
    options.preemption = Preemption::Off;
    Rig rig(options, {{2, 0, 16}});
    for (std::int32_t i = 0; i < 6; ++i) {
        rig.add(promptOf(4, i), 10);
    }
    rig.finish();
    rig.expectEverythingEnded();
    EXPECT_EQ(rig.preemptions(), 0);
}

TEST(Scheduler, ACancelledRequestGivesItsPagesBackAtOnce) {
    Rig rig(optionsOf(2, 64), {{2, 0, 40}});
    const std::int32_t a = rig.add(promptOf(10, 0), 20);
    const std::int32_t b = rig.add(promptOf(10, 1), 20);
    const std::int32_t c = rig.add(promptOf(10, 2), 20);
    ASSERT_TRUE(rig.step());
    const std::int64_t before = rig.book().available(0);
    rig.scheduler().cancel(a);
    EXPECT_EQ(rig.book().available(0), before + 5);
    rig.scheduler().cancel(c);
    rig.scheduler().cancel(c);
    EXPECT_EQ(rig.scheduler().state(c), RequestState::Cancelled);
    rig.stop(b);
    EXPECT_EQ(rig.book().counts().used, 0);
    rig.finish();
    rig.expectEverythingEnded();
}

TEST(Scheduler, WhatIsForgottenTakesNoMemory) {
    PageBook book({PageGroup{4, 0, 8}}, false);
    SchedulerOptions options;
    options.slots = 2;
    Scheduler scheduler(options, book);
    const std::vector<std::int32_t> prompt{1, 2, 3};
    for (std::int32_t i = 0; i < 100; ++i) {
        ASSERT_EQ(scheduler.add(prompt, 1), 2 * i);
        ASSERT_EQ(scheduler.refuse("no"), 2 * i + 1);
        scheduler.forget(2 * i + 1);
        EXPECT_FALSE(scheduler.ended(2 * i));
        scheduler.forget(2 * i); // while it runs: it gets on all the same
        const StepSchedule schedule = scheduler.next();
        ASSERT_EQ(schedule.rows.size(), 1U);
        book.commit(schedule.rows[0].sequence, 3);
        EXPECT_TRUE(scheduler.next().empty());
        EXPECT_TRUE(scheduler.ended(2 * i));
        EXPECT_EQ(scheduler.remembered(), 0U);
    }
    EXPECT_EQ(scheduler.requests(), 200);
    EXPECT_EQ(book.counts().used, 0);
}

/// Runs the next step of a scheduler, and gives its only row.
ScheduledRow onlyRow(Scheduler& scheduler, PageBook& book) {
    const StepSchedule schedule = scheduler.next();
    EXPECT_EQ(schedule.rows.size(), 1U);
    EXPECT_TRUE(schedule.preempted.empty());
    for (const ScheduledRow& row : schedule.rows) {
        book.commit(row.sequence, row.tokens);
    }
    return schedule.rows.empty() ? ScheduledRow{} : schedule.rows.front();
}

TEST(Scheduler, DraftsTakeWhatIsLeftAndWrongOnesComeBack) {
    SchedulerOptions options;
    options.slots = 2;
    options.tokenBudget = 8;
    PageBook book({{4, 0, 4}});
    Scheduler scheduler(options, book);
    const std::int32_t request = scheduler.add(std::vector<std::int32_t>{1, 2, 3}, 12);
    EXPECT_EQ(onlyRow(scheduler, book).kind, RowKind::Prefill);
    EXPECT_EQ(scheduler.decoding(), std::vector<std::int32_t>{request});
    scheduler.offerDraft(request, 4);
    const ScheduledRow checked = onlyRow(scheduler, book);
    EXPECT_EQ(std::tuple(checked.begin, checked.tokens, checked.drafts, checked.samples), std::tuple(3, 5, 4, true));
    EXPECT_EQ(scheduler.generated(request), 6) << "as if all were right";
    scheduler.reject(request, 3);
    book.trim(checked.sequence, 5);
    EXPECT_EQ(scheduler.generated(request), 3);
    const ScheduledRow single = onlyRow(scheduler, book);
    EXPECT_EQ(std::tuple(single.begin, single.tokens, single.drafts), std::tuple(5, 1, 0)) << "an offer holds once";
    scheduler.limitTokens(2);
    scheduler.offerDraft(request, 4);
    EXPECT_EQ(onlyRow(scheduler, book).drafts, 1) << "the budget has no more";
    scheduler.limitTokens(8);
    const StepSchedule undone = [&] {
        scheduler.offerDraft(request, 2);
        return scheduler.next();
    }();
    EXPECT_EQ(scheduler.generated(request), 9);
    scheduler.undo(undone);
    EXPECT_EQ(scheduler.generated(request), 6);
    EXPECT_EQ(onlyRow(scheduler, book).begin, 8);
    scheduler.offerDraft(request, 4); // all that the answer may still have
    EXPECT_EQ(onlyRow(scheduler, book).tokens, 5);
    EXPECT_TRUE(scheduler.decoding().empty()) << "it ends if the draft is right";
    scheduler.reject(request, 1);
    book.trim(0, book.length(0) - 1);
    EXPECT_EQ(onlyRow(scheduler, book).begin, 13) << "it was not";
    EXPECT_TRUE(scheduler.next().empty());
    EXPECT_EQ(scheduler.state(request), RequestState::Finished);
}

TEST(Scheduler, NobodyLosesPagesForADraft) {
    SchedulerOptions options;
    options.slots = 2;
    options.tokenBudget = 32;
    PageBook book({{4, 0, 4}});
    Scheduler scheduler(options, book);
    const std::int32_t first = scheduler.add(std::vector<std::int32_t>(7, 1), 6);
    const std::int32_t second = scheduler.add(std::vector<std::int32_t>(4, 2), 5);
    const StepSchedule prompts = scheduler.next();
    ASSERT_EQ(prompts.rows.size(), 2U);
    for (const ScheduledRow& row : prompts.rows) {
        book.commit(row.sequence, row.tokens);
    }
    scheduler.offerDraft(first, 4);  // needs a page more
    scheduler.offerDraft(second, 2); // begins a page
    const StepSchedule step = scheduler.next();
    ASSERT_EQ(step.rows.size(), 2U);
    EXPECT_TRUE(step.preempted.empty());
    EXPECT_EQ(std::pair(step.rows[0].request, step.rows[0].tokens), std::pair(first, std::int64_t{1}))
        << "the last page is for the token of the other request";
    EXPECT_EQ(std::pair(step.rows[1].request, step.rows[1].tokens), std::pair(second, std::int64_t{3}));
}

TEST(Scheduler, FreeSlotsGatherWhileMoreRequestsWait) {
    const auto prefills = [](std::int32_t gather) {
        SchedulerOptions options = optionsOf(8, 512);
        options.gatherSteps = gather;
        Rig rig(options, {{4, 0, 1000}});
        for (std::int32_t i = 0; i < 60; ++i) {
            rig.add(promptOf(5, i), 3 + i * 7 % 23);
        }
        rig.scheduler().close();
        std::int64_t count = 0;
        for (std::int64_t before = -1; before != rig.steps();) {
            before = rig.steps();
            const std::int32_t waiting = rig.scheduler().queued();
            rig.step();
            count += rig.scheduler().queued() < waiting ? 1 : 0;
        }
        rig.expectEverythingEnded();
        return count;
    };
    EXPECT_LT(prefills(4), prefills(0));
}

/// Thousands of traces over random pools, slots, budgets and policies, with stops and cancellations.
TEST(Scheduler, RandomTracesEndWithoutLeaksOrStarvation) {
    std::int64_t preemptions = 0;
    std::int64_t longestFirstOvertakes = 0;
    std::uint64_t sharedBesideRings = 0;
    std::map<RequestState, int> cancelledWhile;
    for (std::uint32_t seed = 0; seed < vitrine::test::repetitions(12000U); ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
        SchedulerOptions options;
        options.mode = below(5) == 0 ? BatchMode::Static : BatchMode::Continuous;
        options.slots = 1 + below(8);
        options.order = static_cast<BatchOrder>(below(3));
        options.overtakes = 1 + below(3);
        options.preemption = static_cast<Preemption>(below(3));
        options.tokenBudget = 1 + below(30);
        options.swapPages = below(4) * 20;
        options.fairSteps = 1 + below(10);
        options.gatherSteps = below(3);
        std::vector<PageGroup> groups{{1 + below(5), 0, 5 + below(20)}};
        if (below(2) == 0) {
            // Layers that slide may come first or last.
            groups.insert(below(2) == 0 ? groups.begin() : groups.end(), {1 + below(4), 1 + below(3), 4 + below(12)});
        }
        const bool share = below(2) == 0;
        Rig rig(options, groups, share);
        const std::int32_t requests = 1 + below(25);
        const std::uint32_t calm = 12 + static_cast<std::uint32_t>(below(60));
        std::int32_t added = 0;
        // Whenever a step is scheduled or over, whoever it hits.
        const auto disturb = [&] {
            const std::int32_t request = added > 0 ? below(static_cast<std::uint32_t>(added)) : 0;
            if (added > 0 && below(calm) == 0) {
                ++cancelledWhile[rig.scheduler().state(request)];
                rig.scheduler().cancel(request);
            }
            if (added > 0 && below(calm) == 0 && rig.scheduler().state(request) == RequestState::Running) {
                rig.stop(request);
            }
        };
        while (added < requests) {
            if (below(3) > 0) {
                rig.add(promptOf(below(20), below(3)), below(12));
                ++added;
            }
            rig.step(disturb);
            disturb();
        }
        rig.finish(disturb);
        rig.expectEverythingEnded();
        sharedBesideRings += groups.size() > 1 ? rig.book().sharedTokens() : 0;
        if (options.mode == BatchMode::Continuous) {
            EXPECT_LE(rig.longestWait(), rig.scheduler().fairnessBound()) << "starved";
        }
        EXPECT_LE(rig.mostOvertaken(), options.order == BatchOrder::LongestFirst ? rig.scheduler().overtakeBound() : 0);
        longestFirstOvertakes += rig.mostOvertaken();
        EXPECT_TRUE(options.preemption != Preemption::Off || rig.preemptions() == 0);
        preemptions += rig.preemptions();
        if (::testing::Test::HasFailure()) {
            FAIL() << fmt::format("seed {}: mode {}, slots {}, order {}, preemption {}, budget {}", seed,
                                  static_cast<int>(options.mode), options.slots, static_cast<int>(options.order),
                                  static_cast<int>(options.preemption), options.tokenBudget);
        }
    }
    EXPECT_GT(preemptions, vitrine::test::moreThan(1000)) << "the traces are too easy";
    EXPECT_GT(longestFirstOvertakes, vitrine::test::moreThan(1000));
    EXPECT_GT(sharedBesideRings, vitrine::test::moreThan(1000U));
    for (const RequestState state : {RequestState::Waiting, RequestState::Running, RequestState::Preempted,
                                     RequestState::Swapped, RequestState::Finished}) {
        EXPECT_GT(cancelledWhile[state], vitrine::test::moreThan(20)) << static_cast<int>(state);
    }
}

} // namespace
} // namespace vitrine::engine
