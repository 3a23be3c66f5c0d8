// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/cache/page_book.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "tests/repetitions.h"

namespace vitrine::engine {
namespace {

std::vector<std::int32_t> listOf(const PageBook& book, int sequence, int group = 0) {
    const auto pages = book.pages(sequence, group);
    return {pages.begin(), pages.end()};
}

void append(PageBook& book, int sequence, std::int64_t tokens) {
    ASSERT_TRUE(book.grow(sequence, tokens));
    book.commit(sequence, tokens);
}

std::vector<std::int32_t> tokensFrom(std::int32_t first, std::size_t count) {
    std::vector<std::int32_t> out(count);
    std::generate(out.begin(), out.end(), [&first] { return first++; });
    return out;
}

/// Every page is free, cached, or held by exactly as many sequences as its entry says.
void expectSound(PageBook& book) {
    for (int group = 0; group < static_cast<int>(book.groups().size()); ++group) {
        std::map<std::int32_t, int> holders;
        for (int sequence = 0; sequence < book.sequences(); ++sequence) {
            if (!book.live(sequence)) {
                continue;
            }
            const std::vector<std::int32_t> pages = listOf(book, sequence, group);
            EXPECT_GE(static_cast<std::int64_t>(pages.size()), book.pagesFor(group, book.length(sequence)));
            for (const std::int32_t page : pages) {
                ++holders[page];
                EXPECT_LT(page, book.groups()[static_cast<std::size_t>(group)].pages);
            }
            std::vector<std::int32_t> sorted = pages;
            std::sort(sorted.begin(), sorted.end());
            EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end()) << "a sequence holds a page twice";
        }
        const auto shared =
            std::count_if(holders.begin(), holders.end(), [](const auto& item) { return item.second > 1; });
        const PageCounts counts = book.counts(group);
        EXPECT_EQ(counts.used, static_cast<std::int64_t>(holders.size()));
        EXPECT_EQ(counts.shared, shared);
        EXPECT_EQ(counts.used + counts.cached + counts.free, book.groups()[static_cast<std::size_t>(group)].pages);
        EXPECT_EQ(counts.cached + counts.free, book.available(group));
    }
}

TEST(PageBook, GrowsPageByPageAndRingsStop) {
    PageBook book({{4, 0, 10}, {4, 2, 6}});
    const int a = book.addSequence();
    append(book, a, 5);
    EXPECT_EQ(listOf(book, a, 0).size(), 2U);
    EXPECT_EQ(listOf(book, a, 1).size(), 2U);
    append(book, a, 30);
    EXPECT_EQ(listOf(book, a, 0).size(), 9U);
    EXPECT_EQ(listOf(book, a, 1).size(), 2U);
    const int b = book.addSequence();
    EXPECT_FALSE(book.canGrow(b, 5));
    EXPECT_FALSE(book.grow(b, 5));
    EXPECT_TRUE(listOf(book, b, 1).empty()) << "nothing is taken when one group is short";
    append(book, b, 4);
    EXPECT_TRUE(book.couldHold(40));
    EXPECT_FALSE(book.couldHold(41));
    expectSound(book);
    book.removeSequence(a);
    append(book, b, 36);
    expectSound(book);
}

TEST(PageBook, ForksShareUntilSomeoneWrites) {
    PageBook book({{4, 0, 10}});
    const int a = book.addSequence();
    append(book, a, 6);
    const int b = book.fork(a);
    EXPECT_EQ(listOf(book, a), listOf(book, b));
    EXPECT_EQ(book.counts().shared, 2);
    append(book, b, 1);
    const std::vector<PageCopy> copies = book.takeCopies();
    ASSERT_EQ(copies.size(), 1U) << "the half full page is written by b";
    EXPECT_EQ(copies[0].from, listOf(book, a)[1]);
    EXPECT_EQ(copies[0].to, listOf(book, b)[1]);
    EXPECT_EQ(listOf(book, a)[0], listOf(book, b)[0]);
    append(book, a, 1);
    EXPECT_TRUE(book.takeCopies().empty()) << "a is alone in its page";
    expectSound(book);
    book.removeSequence(a);
    expectSound(book);
    book.removeSequence(b);
    EXPECT_EQ(book.counts().free, 10);
}

TEST(PageBook, AForkedRingIsCopiedWhereItIsWritten) {
    PageBook book({{4, 3, 9}});
    const int a = book.addSequence();
    append(book, a, 14); // two tokens into the first page again
    const int b = book.fork(a);
    append(book, b, 3);
    EXPECT_EQ(book.takeCopies().size(), 2U) << "positions 14 to 16 lie in the first and the second page";
    EXPECT_EQ(book.counts().shared, 1);
    expectSound(book);
}

TEST(PageBook, PromptsThatBeginAlikeSharePages) {
    PageBook book({{4, 0, 12}}, true);
    const auto prompt = tokensFrom(100, 10);
    const int a = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(a, prompt), 0);
    append(book, a, 10);
    book.publish(a, prompt);

    auto longer = prompt;
    longer.insert(longer.end(), {7, 8, 9});
    const int b = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(b, longer), 8) << "two whole pages";
    EXPECT_EQ(book.counts().shared, 2);
    append(book, b, 5);
    EXPECT_TRUE(book.takeCopies().empty());

    auto other = prompt;
    other[5] = 0;
    const int c = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(c, other), 4) << "the second page differs";
    auto first = prompt;
    first[0] = 0;
    const int d = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(d, first), 0) << "equal tokens after another beginning are other tokens";
    expectSound(book);
}

TEST(PageBook, RingsAreSharedWhereTheyWereKept) {
    // The ring's group comes first, as in models whose first layer slides.
    PageBook book({{4, 2, 8}, {4, 0, 20}}, true);
    EXPECT_TRUE(book.sharesRings());
    const auto prompt = tokensFrom(100, 18);
    const int a = book.addSequence();
    append(book, a, 12);
    book.publish(a, prompt);
    book.keepRings(a);
    EXPECT_EQ(book.keptRings(), 1);
    const std::vector<std::int32_t> kept = listOf(book, a, 0);
    append(book, a, 6);
    EXPECT_EQ(book.takeCopies().size(), 2U) << "positions 12 to 17 lie in both pages of the ring";
    book.publish(a, prompt);
    book.keepRings(a);
    EXPECT_EQ(book.keptRings(), 1) << "18 tokens end inside a page";
    EXPECT_EQ(book.knownPrefix(prompt), 16);
    expectSound(book);

    const int b = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(b, prompt), 12) << "16 tokens are known, but rings were kept for 12";
    EXPECT_EQ(listOf(book, b, 0), kept);
    EXPECT_EQ(listOf(book, b, 1).size(), 3U);
    expectSound(book);
    append(book, b, 1);
    const std::vector<PageCopy> copies = book.takeCopies();
    ASSERT_EQ(copies.size(), 1U);
    EXPECT_EQ(copies[0].group, 0);
    EXPECT_EQ(copies[0].from, kept[1]) << "position 12 lies in the second page of the ring again" << kept[0];
    book.removeSequence(a);
    book.removeSequence(b);
    EXPECT_EQ(book.counts(0).used, 0);
    EXPECT_EQ(book.counts(0).cached, 2);
    expectSound(book);

    const auto exact = std::span(prompt).first(12);
    const int c = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(c, exact), 0) << "no token would be left to compute";
    append(book, c, 12);
    EXPECT_TRUE(book.takeCopies().empty());
    expectSound(book);
}

TEST(PageBook, SavedRingsGiveWay) {
    PageBook book({{4, 0, 20}, {4, 2, 2}}, true);
    const auto prompt = tokensFrom(1, 30);
    const int a = book.addSequence();
    append(book, a, 8);
    book.publish(a, prompt);
    book.keepRings(a);
    append(book, a, 1);
    EXPECT_EQ(book.keptRings(), 0) << "the pool has no page for a copy";
    EXPECT_TRUE(book.takeCopies().empty());
    append(book, a, 7);
    book.publish(a, prompt);
    book.keepRings(a);
    book.removeSequence(a);
    EXPECT_EQ(book.available(1), 2);
    const int b = book.addSequence();
    append(book, b, 3);
    EXPECT_EQ(book.keptRings(), 0);
    expectSound(book);
    // Rings go with the page before them.
    book.removeSequence(b);
    const int c = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(c, prompt), 0);
    append(book, c, 4);
    book.publish(c, prompt);
    book.keepRings(c);
    EXPECT_EQ(book.keptRings(), 1);
    book.removeSequence(c);
    const int d = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(d, prompt), 4);
    book.removeSequence(d);
    const int e = book.addSequence();
    append(book, e, 80);
    EXPECT_EQ(book.keptRings(), 0);
    expectSound(book);
}

TEST(PageBook, AWholePromptKeepsItsLastTokenToCompute) {
    PageBook book({{4, 0, 12}}, true);
    const auto prompt = tokensFrom(1, 8);
    const int a = book.addSequence();
    append(book, a, 8);
    book.publish(a, prompt);
    const int b = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(b, prompt), 7);
    append(book, b, 1);
    EXPECT_EQ(book.takeCopies().size(), 1U) << "the last page is written again, in a copy";
    expectSound(book);
}

TEST(PageBook, PagesOfTheGoneStayUntilPagesAreShort) {
    PageBook book({{4, 0, 4}}, true);
    const auto prompt = tokensFrom(1, 12);
    const int a = book.addSequence();
    append(book, a, 12);
    book.publish(a, prompt);
    book.removeSequence(a);
    EXPECT_EQ(book.counts().cached, 3);
    const int b = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(b, prompt), 11);
    book.removeSequence(b);
    const int c = book.addSequence();
    append(book, c, 8); // the free page and one cached
    EXPECT_EQ(book.evictions(), 1U);
    const int d = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(d, prompt), 8) << "the end of the chain went first";
    expectSound(book);
    book.removeSequence(c);
    book.removeSequence(d);
    const int e = book.addSequence();
    append(book, e, 16);
    EXPECT_EQ(book.counts().used, 4);
    expectSound(book);
}

TEST(PageBook, WhatIsWrittenAfterATrimIsNotWhatWasKnown) {
    PageBook book({{4, 0, 8}}, true);
    const auto prompt = tokensFrom(1, 8);
    const int a = book.addSequence();
    append(book, a, 8);
    book.publish(a, prompt);
    book.trim(a, 6);
    append(book, a, 2);
    const int b = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(b, prompt), 4) << "the second page holds other tokens";
    expectSound(book);
}

TEST(PageBook, ChangesAreReportedOnce) {
    PageBook book({{4, 0, 4}});
    EXPECT_TRUE(book.takeChanges().empty());
    const int a = book.addSequence();
    append(book, a, 5);
    std::vector<base::KvPageEvent> changes = book.takeChanges();
    ASSERT_EQ(changes.size(), 2U);
    EXPECT_EQ(changes[0].state, base::PageState::Used);
    EXPECT_EQ(changes[0].owner, a);
    book.removeSequence(a);
    changes = book.takeChanges();
    ASSERT_EQ(changes.size(), 2U);
    EXPECT_EQ(changes[1].state, base::PageState::Free);
    EXPECT_TRUE(book.takeChanges().empty());
}

TEST(PageBook, ForgottenPrefixesAreTakenOverByNobody) {
    PageBook book({{4, 2, 8}, {4, 0, 20}}, true);
    const auto prompt = tokensFrom(1, 14);
    const int gone = book.addSequence();
    append(book, gone, 12);
    book.publish(gone, prompt);
    book.keepRings(gone);
    book.removeSequence(gone);
    const int live = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(live, prompt), 12);
    book.forgetPrefixes();
    expectSound(book);
    EXPECT_EQ(book.knownPrefix(prompt), 0);
    EXPECT_EQ(book.keptRings(), 0);
    EXPECT_EQ(book.counts().cached, 0);
    // A sequence that goes on is not known by tokens from before, not even by its new ones.
    append(book, live, 8);
    auto longer = prompt;
    longer.resize(20);
    book.publish(live, longer);
    book.keepRings(live);
    EXPECT_EQ(book.knownPrefix(longer), 0);
    book.removeSequence(live);
    EXPECT_EQ(book.counts().used, 0);
    EXPECT_EQ(book.counts().cached, 0);
    // Later sequences are known again.
    const int fresh = book.addSequence();
    EXPECT_EQ(book.adoptPrefix(fresh, prompt), 0);
    append(book, fresh, 12);
    book.publish(fresh, prompt);
    EXPECT_EQ(book.knownPrefix(prompt), 12);
    expectSound(book);
}

TEST(PageBook, FragmentationIsWhatLastPagesWaste) {
    PageBook book({{10, 0, 10}});
    EXPECT_EQ(book.fragmentation(), 0);
    append(book, book.addSequence(), 10);
    EXPECT_EQ(book.fragmentation(), 0);
    append(book, book.addSequence(), 5);
    EXPECT_DOUBLE_EQ(book.fragmentation(), 0.25);
}

TEST(PageBook, PagesAreOpenedOneByOneAndClosedFromTheEnd) {
    PageBook book({{4, 0, 1'000'000'000}});
    EXPECT_EQ(book.opened(0), 0) << "a book is no larger than what was used";
    book.setBacked(0, 3);
    EXPECT_EQ(book.counts().free, 3);
    EXPECT_EQ(book.counts().unbacked, 1'000'000'000 - 3);
    const int a = book.addSequence();
    const int b = book.addSequence();
    append(book, a, 8);
    append(book, b, 12);
    EXPECT_EQ(book.opened(0), 5);
    EXPECT_EQ(book.counts().free, 0) << "pages in use have memory, or get it now";
    book.removeSequence(a);
    EXPECT_EQ(book.openedFree(0), 2);
    EXPECT_EQ(book.closeFree(0), 5) << "the last page is in use";
    EXPECT_EQ(book.available(0), 1'000'000'000 - 3);
    append(book, b, 4);
    EXPECT_EQ(listOf(book, b), (std::vector<std::int32_t>{2, 3, 4, 0}));
    book.limit(0, 2);
    EXPECT_EQ(book.groups()[0].pages, 5) << "no page is taken away";
    EXPECT_EQ(book.available(0), 1);
    EXPECT_FALSE(book.canGrow(b, 8));
    book.removeSequence(b);
    EXPECT_EQ(book.closeFree(0), 0);
    EXPECT_EQ(book.available(0), 5);
}

/// What stands in each page, followed through copies: every sequence must always read its own tokens.
TEST(PageBook, RandomHistoriesKeepEverySequencesTokens) {
    for (std::uint32_t seed = 0; seed < vitrine::test::repetitions(300U); ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
        const std::int64_t pageTokens = 1 + below(4);
        PageBook book({{pageTokens, 0, 6 + below(20)}}, seed % 2 == 0);
        std::map<int, std::vector<std::int32_t>> histories;
        std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> memory;
        const auto write = [&](int sequence, std::int64_t tokens) {
            auto& history = histories[sequence];
            if (!book.grow(sequence, tokens)) {
                return;
            }
            for (const PageCopy& copy : book.takeCopies()) {
                for (std::int64_t slot = 0; slot < pageTokens; ++slot) {
                    memory[{copy.to, slot}] = memory[{copy.from, slot}];
                }
            }
            for (std::int64_t i = 0; i < tokens; ++i) {
                const std::int64_t position = book.length(sequence) + i;
                if (position >= static_cast<std::int64_t>(history.size())) {
                    history.push_back(static_cast<std::int32_t>(below(3)));
                }
                const std::int32_t page = book.pages(sequence, 0)[static_cast<std::size_t>(position / pageTokens)];
                memory[{page, position % pageTokens}] = history[static_cast<std::size_t>(position)];
            }
            book.commit(sequence, tokens);
            book.publish(sequence, history);
        };
        for (int step = 0; step < 120; ++step) {
            const std::int64_t action = below(10);
            if (action < 3 || histories.empty()) {
                const int sequence = book.addSequence();
                auto& history = histories[sequence];
                for (std::int64_t i = 1 + below(12); i > 0; --i) {
                    history.push_back(static_cast<std::int32_t>(below(3)));
                }
                book.adoptPrefix(sequence, history);
                write(sequence, static_cast<std::int64_t>(history.size()) - book.length(sequence));
                if (book.length(sequence) < static_cast<std::int64_t>(history.size())) {
                    histories.erase(sequence); // the pool is full
                    book.removeSequence(sequence);
                }
            } else {
                auto it = histories.begin();
                std::advance(it, below(static_cast<std::uint32_t>(histories.size())));
                const int sequence = it->first;
                if (action < 7) {
                    write(sequence, 1 + below(3));
                } else if (action == 7) {
                    const std::int64_t length = below(static_cast<std::uint32_t>(book.length(sequence)) + 1);
                    book.trim(sequence, length);
                    it->second.resize(static_cast<std::size_t>(length));
                } else if (action == 8) {
                    const std::vector<std::int32_t> same = it->second;
                    histories[book.fork(sequence)] = same;
                } else {
                    book.removeSequence(sequence);
                    histories.erase(it);
                }
            }
            expectSound(book);
            for (const auto& [sequence, history] : histories) {
                ASSERT_EQ(book.length(sequence), static_cast<std::int64_t>(history.size()));
                for (std::int64_t position = 0; position < book.length(sequence); ++position) {
                    const std::int32_t page = book.pages(sequence, 0)[static_cast<std::size_t>(position / pageTokens)];
                    ASSERT_EQ((memory[{page, position % pageTokens}]), history[static_cast<std::size_t>(position)])
                        << "seed " << seed << ", step " << step;
                }
            }
        }
        for (const auto& [sequence, history] : histories) {
            book.removeSequence(sequence);
        }
        EXPECT_EQ(book.counts().used, 0) << "pages leaked, seed " << seed;
        EXPECT_EQ(book.available(0), book.groups()[0].pages);
        if (::testing::Test::HasFailure()) {
            return;
        }
    }
}

} // namespace
} // namespace vitrine::engine
