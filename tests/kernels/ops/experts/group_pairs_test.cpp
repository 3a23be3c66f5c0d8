// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/group_pairs.h"

#include "tests/kernels/ops/experts/expert_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestGroups;
using testing::TestTensor;

TEST(GroupPairs, StableAndPlacesAreTheInverse) {
    std::mt19937 random(1);
    for (const auto& [tokens, k, experts, used] :
         {std::tuple{1, 1, 1, 1}, {1, 4, 32, 32}, {50, 2, 8, 3}, {300, 4, 32, 32}, {40, 1, 700, 700}, {70, 1, 4, 1}}) {
        SCOPED_TRACE(::testing::Message() << tokens << " tokens, " << experts << " experts");
        const TestGroups groups(random, tokens, k, experts, used);
        const std::vector<double> ids = groups.ids.values();
        std::vector<double> pairs(ids.size());
        std::iota(pairs.begin(), pairs.end(), 0);
        std::stable_sort(pairs.begin(), pairs.end(), [&](double a, double b) {
            return ids[static_cast<std::size_t>(a)] < ids[static_cast<std::size_t>(b)];
        });
        EXPECT_EQ(groups.pairs.values(), pairs);
        std::vector<double> places(ids.size()), starts(static_cast<std::size_t>(experts) + 1, 0);
        for (std::size_t row = 0; row < pairs.size(); ++row) {
            places[static_cast<std::size_t>(pairs[row])] = static_cast<double>(row);
            starts[static_cast<std::size_t>(ids[row]) + 1] += 1;
        }
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        EXPECT_EQ(groups.places.values(), places);
        EXPECT_EQ(groups.starts.values(), starts);
        EXPECT_TRUE(groups.pairs.guardsIntact() && groups.places.guardsIntact() && groups.starts.guardsIntact());
    }
}

TEST(GroupPairs, NoTokens) {
    CpuContext context(1);
    TestTensor starts(DType::I32, Shape{4});
    const TensorView none{nullptr, DType::I32, Shape{0}, {}};
    testing::runOp(context, GroupPairs{{nullptr, DType::I32, Shape{0, 2}, {}}, starts, none, none});
    EXPECT_EQ(starts.values(), std::vector<double>(4, 0.0));
}

TEST(GroupPairs, CheckNamesTheField) {
    TestTensor ids(DType::I32, Shape{5, 2}), starts(DType::I32, Shape{4}), pairs(DType::I32, Shape{10});
    TestTensor places(DType::I32, Shape{10});
    const GroupPairs good{ids, starts, pairs, places};
    check(good);
    GroupPairs op = good;
    op.ids.dtype = DType::F32;
    testing::expectCheckNames(op, "ids");
    op = good;
    op.starts.shape = Shape{1};
    testing::expectCheckNames(op, "starts");
    op = good;
    op.pairs.shape = Shape{9};
    testing::expectCheckNames(op, "pairs");
    op = good;
    op.places.shape = Shape{11};
    testing::expectCheckNames(op, "places");
}

TEST(GatherPairs, EachRowIsItsTokensRow) {
    std::mt19937 random(2);
    CpuContext context(2);
    const TestGroups groups(random, 37, 3, 6, 5);
    const std::vector<double> pairs = groups.pairs.values();
    for (const DType type : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
        TestTensor x(type, Shape{37, 21}, 24), out(type, Shape{111, 21}, 22);
        x.fillNormal(random);
        testing::runOp(context, GatherPairs{x, groups.pairs, out});
        const std::vector<double> values = x.values();
        std::vector<double> expected;
        for (const double pair : pairs) {
            const auto first = values.begin() + static_cast<std::ptrdiff_t>(pair) / 3 * 21;
            expected.insert(expected.end(), first, first + 21);
        }
        EXPECT_EQ(out.values(), expected);
        EXPECT_TRUE(out.guardsIntact());
    }
}

TEST(GatherPairs, CheckNamesTheField) {
    TestTensor x(DType::F32, Shape{5, 8}), pairs(DType::I32, Shape{10}), out(DType::F32, Shape{10, 8});
    const GatherPairs good{x, pairs, out};
    check(good);
    GatherPairs op = good;
    op.pairs.shape = Shape{9};
    testing::expectCheckNames(op, "pairs");
    op = good;
    op.out.dtype = DType::BF16;
    testing::expectCheckNames(op, "out");
    op = good;
    op.out.shape = Shape{10, 7};
    testing::expectCheckNames(op, "out");
    op = good;
    op.x.dtype = DType::I32;
    testing::expectCheckNames(op, "x");
}

} // namespace
} // namespace vitrine::kernels
