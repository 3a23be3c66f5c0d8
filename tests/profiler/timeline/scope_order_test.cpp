// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/scope_order.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace vitrine::profiler {
namespace {

struct Expected {
    base::TimeNs begin = 0;
    ScopeRef ref;
};

TEST(ScopeOrder, IsByBeginThenByComing) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        std::vector<base::TimeNs> singles;
        std::vector<std::vector<base::TimeNs>> replays;
        const auto beginOf = [&](const ScopeRef& ref) {
            return ref.replay == kNoReplay ? singles[ref.item] : replays[ref.replay][ref.item];
        };
        ScopeOrder order;
        std::vector<Expected> expected;
        for (int round = 0; round < 12; ++round) {
            for (int i = 0; i < 30; ++i) {
                const auto at = static_cast<base::TimeNs>(round * 20 + random() % 60);
                if (random() % 3 == 0) {
                    singles.push_back(at);
                    order.add({static_cast<std::uint32_t>(singles.size() - 1), kNoReplay});
                    expected.push_back({at, {static_cast<std::uint32_t>(singles.size() - 1), kNoReplay}});
                    continue;
                }
                std::vector<base::TimeNs> begins(1 + random() % 9);
                base::TimeNs next = at;
                const auto replay = static_cast<std::uint32_t>(replays.size());
                for (std::uint32_t item = 0; item < begins.size(); ++item) {
                    begins[item] = next;
                    expected.push_back({next, {item, replay}});
                    next += static_cast<base::TimeNs>(random() % 4);
                }
                replays.push_back(begins);
                order.addReplay(replay, begins.size());
            }
            std::ranges::stable_sort(expected, {}, &Expected::begin);
            const ScopeRefs refs = order.view(beginOf);
            ASSERT_EQ(refs.size(), expected.size());
            for (std::size_t i = 0; i < refs.size(); ++i) {
                ASSERT_EQ(refs[i].item, expected[i].ref.item) << i;
                ASSERT_EQ(refs[i].replay, expected[i].ref.replay) << i;
            }
        }
    }
}

} // namespace
} // namespace vitrine::profiler
