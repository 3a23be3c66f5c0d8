// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/grouped_matmul.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/ops/experts/group_pairs.h"
#include "kernels/ops/experts/moe.h"
#include "kernels/ops/experts/router_shares.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/experts/expert_testing.h"

namespace vitrine::kernels {
namespace {

using testing::ExpertStack;
using testing::startsOf;
using testing::TestTensor;

struct GroupedCase {
    std::vector<std::int32_t> rows; ///< of each expert
    std::int64_t in, out;
    DType type, weight; ///< weight U8: MXFP4
    bool transposed = false;
    DType bias = DType::None;
};

std::string nameOf(const GroupedCase& item) {
    return "in " + std::to_string(item.in) + ", out " + std::to_string(item.out) + ", " +
           std::string(dtypeName(item.type)) + " by " + std::string(dtypeName(item.weight)) +
           (item.transposed ? ", transposed" : "");
}

const std::vector<GroupedCase>& cases() {
    static const std::vector<GroupedCase> kAll = {
        {{3, 0, 130, 61}, 128, 192, DType::BF16, DType::BF16, false, DType::BF16},
        {{3, 0, 130, 61}, 128, 192, DType::BF16, DType::BF16, true, DType::BF16},
        {{0, 0, 257}, 2880, 640, DType::BF16, DType::BF16, false, DType::None},
        {{300, 1, 17}, 96, 5760, DType::BF16, DType::BF16, false, DType::F32},
        {{40, 90, 0, 7}, 256, 16, DType::BF16, DType::BF16, false, DType::None},
        {{40, 90, 0, 7}, 16, 256, DType::BF16, DType::BF16, false, DType::None},
        {{40, 90, 0, 7}, 8, 2880, DType::BF16, DType::BF16, false, DType::None},
        {{40, 90, 0, 7}, 200, 72, DType::BF16, DType::BF16, true, DType::None},
        {{5, 0, 140, 64}, 96, 160, DType::BF16, DType::U8, false, DType::BF16},
        {{5, 0, 140, 64}, 96, 160, DType::F32, DType::U8, false, DType::BF16},
        {{5, 0, 140, 64}, 70, 33, DType::F32, DType::F32, false, DType::F32},
        {{5, 0, 140, 64}, 70, 33, DType::F32, DType::BF16, true, DType::None},
        {{5, 9}, 35, 21, DType::BF16, DType::BF16, false, DType::None},
    };
    return kAll;
}

std::int64_t countOf(const GroupedCase& item) {
    return std::accumulate(item.rows.begin(), item.rows.end(), std::int64_t{0});
}

double toleranceOf(const GroupedCase& item) {
    return item.type == DType::F32 ? 2e-5 : 1e-2;
}

/// As the choices of a large batch: 32 experts.
GroupedCase manyRows() {
    std::vector<std::int32_t> rows(32);
    for (std::size_t e = 0; e < rows.size(); ++e) {
        rows[e] = static_cast<std::int32_t>(e * 37 % 200);
    }
    return {rows, 320, 384, DType::BF16, DType::U8, false, DType::BF16};
}

TEST(GroupedMatmulGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(1);
    std::vector<GroupedCase> all = cases();
    all.push_back(manyRows());
    for (const GroupedCase& item : all) {
        for (const bool accumulate : {false, true}) {
            SCOPED_TRACE(::testing::Message() << nameOf(item) << ", accumulate " << accumulate);
            const auto experts = static_cast<std::int64_t>(item.rows.size());
            const ExpertStack stack(random, item.weight, experts, item.out, item.in, item.transposed, item.bias);
            const TestTensor starts = startsOf(item.rows);
            TestTensor x(item.type, Shape{countOf(item), item.in}, item.in + 8);
            TestTensor out(item.type, Shape{countOf(item), item.out}, item.out + 8);
            x.fillNormal(random);
            if (accumulate) {
                out.fillNormal(random);
            }
            const auto make = [&](auto&& at) {
                GroupedMatmul op;
                op.x = at(x);
                op.starts = at(starts);
                op.linear = stack.view(at);
                op.scale = 0.5F;
                op.accumulate = accumulate;
                op.out = at(out);
                return op;
            };
            testing::expectSameOnGpu(*testing::gpu(), make, {&out}, toleranceOf(item));
        }
    }
}

struct AdapterCase {
    DType weight; ///< U8: MXFP4
    std::int64_t in, out, rank;
    bool transposed = false;
    float scale = 1;
    bool accumulate = false;
};

std::string nameOf(const AdapterCase& item) {
    return std::string(dtypeName(item.weight)) + ", in " + std::to_string(item.in) + ", out " +
           std::to_string(item.out) + ", rank " + std::to_string(item.rank) + (item.transposed ? ", transposed" : "") +
           ", scale " + std::to_string(item.scale) + (item.accumulate ? ", accumulate" : "");
}

/// What one launch adds, and what needs launches of its own: other scales, large and odd ranks, odd widths.
std::vector<AdapterCase> adapterCases() {
    std::vector<AdapterCase> all;
    for (const DType weight : {DType::BF16, DType::U8}) {
        for (const std::int64_t rank : {7, 8, 16, 40, 64, 72}) {
            for (const bool accumulate : {false, true}) {
                all.push_back({weight, 192, 320, rank, false, 1, accumulate});
                all.push_back({weight, 96, 768, rank, false, 1, accumulate});
            }
        }
        all.push_back({weight, 192, 320, 16, false, 0.5F});
        all.push_back({weight, 64, 32, 16});
        all.push_back({weight, 256, 512, 16});
    }
    all.push_back({DType::BF16, 16, 72, 16});
    all.push_back({DType::BF16, 192, 320, 16, true});
    return all;
}

TEST(GroupedMatmulGpu, WithAdaptersAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(2);
    for (const AdapterCase& item : adapterCases()) {
        SCOPED_TRACE(nameOf(item));
        const auto& [weight, in, outs, rank, transposed, scale, accumulate] = item;
        const ExpertStack stack(random, weight, 4, outs, in, transposed, DType::BF16);
        const TestTensor starts = startsOf({70, 0, 5, 200});
        TestTensor x(DType::BF16, Shape{275, in});
        TestTensor a(DType::BF16, Shape{4, rank, in});
        TestTensor b(DType::BF16, Shape{4, outs, rank});
        TestTensor out(DType::BF16, Shape{275, outs}, outs + 8);
        x.fillNormal(random);
        a.fillNormal(random, 1 / std::sqrt(static_cast<double>(in)));
        b.fillNormal(random);
        out.fillNormal(random);
        const auto make = [&](auto&& at) {
            GroupedMatmul op;
            op.x = at(x);
            op.starts = at(starts);
            op.linear = stack.view(at);
            op.linear.adapter = {at(a), at(b), 2};
            op.scale = item.scale;
            op.accumulate = item.accumulate;
            op.out = at(out);
            return op;
        };
        testing::expectSameOnGpu(*testing::gpu(), make, {&out}, 2e-2);
    }
}

TEST(GroupedMatmulGpu, InputGradientsWithAdaptersAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(9);
    for (const AdapterCase& item : adapterCases()) {
        SCOPED_TRACE(nameOf(item));
        const auto& [weight, in, outs, rank, transposed, scale, accumulate] = item;
        const ExpertStack stack(random, weight, 4, outs, in, transposed, DType::None);
        const TestTensor starts = startsOf({70, 0, 5, 200});
        TestTensor gradOut(DType::BF16, Shape{275, outs});
        TestTensor low(DType::BF16, Shape{275, rank}, rank + 8);
        TestTensor a(DType::BF16, Shape{4, rank, in});
        TestTensor gradX(DType::BF16, Shape{275, in});
        gradOut.fillNormal(random);
        low.fillNormal(random);
        a.fillNormal(random, 1 / std::sqrt(static_cast<double>(rank)));
        gradX.fillNormal(random);
        const auto make = [&](auto&& at) {
            GroupedInputGradient op;
            op.gradOut = at(gradOut);
            op.starts = at(starts);
            op.weight = stack.view(at).weight;
            op.scale = item.scale;
            op.accumulate = item.accumulate;
            op.gradX = at(gradX);
            op.low = at(low);
            op.adapterA = at(a);
            return op;
        };
        testing::expectSameOnGpu(*testing::gpu(), make, {&gradX}, 2e-2);
    }
}

TEST(GroupedMatmulGpu, InputGradientsAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(3);
    std::vector<GroupedCase> all = cases();
    all.push_back(manyRows());
    for (const GroupedCase& item : all) {
        for (const bool accumulate : {false, true}) {
            SCOPED_TRACE(::testing::Message() << nameOf(item) << ", accumulate " << accumulate);
            const auto experts = static_cast<std::int64_t>(item.rows.size());
            const ExpertStack stack(random, item.weight, experts, item.out, item.in, item.transposed, DType::None);
            const TestTensor starts = startsOf(item.rows);
            TestTensor gradOut(item.type, Shape{countOf(item), item.out});
            TestTensor gradX(item.type, Shape{countOf(item), item.in});
            gradOut.fillNormal(random);
            if (accumulate) {
                gradX.fillNormal(random);
            }
            const auto make = [&](auto&& at) {
                GroupedInputGradient op;
                op.gradOut = at(gradOut);
                op.starts = at(starts);
                op.weight = stack.view(at).weight;
                op.scale = 0.25F;
                op.accumulate = accumulate;
                op.gradX = at(gradX);
                return op;
            };
            testing::expectSameOnGpu(*testing::gpu(), make, {&gradX}, toleranceOf(item));
        }
    }
}

TEST(GroupedMatmulGpu, WeightGradientsAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(4);
    for (const GroupedCase& item : cases()) {
        for (const bool accumulate : {false, true}) {
            SCOPED_TRACE(::testing::Message() << nameOf(item) << ", accumulate " << accumulate);
            const auto experts = static_cast<std::int64_t>(item.rows.size());
            const TestTensor starts = startsOf(item.rows);
            TestTensor x(item.type, Shape{countOf(item), item.in});
            TestTensor gradOut(item.type, Shape{countOf(item), item.out}, item.out + 8);
            TestTensor gradWeight(DType::F32, Shape{experts, item.out, item.in});
            x.fillNormal(random);
            gradOut.fillNormal(random);
            if (accumulate) {
                gradWeight.fillNormal(random);
            }
            const auto make = [&](auto&& at) {
                GroupedWeightGradient op;
                op.x = at(x);
                op.gradOut = at(gradOut);
                op.starts = at(starts);
                op.accumulate = accumulate;
                op.gradWeight = at(gradWeight);
                return op;
            };
            testing::expectSameOnGpu(*testing::gpu(), make, {&gradWeight}, 1e-5);
        }
    }
}

/// Products and gradients of an adapter of rank 16 over a batch that gives every multiprocessor several tiles.
class AdapterShapesGpu : public ::testing::TestWithParam<std::pair<std::int64_t, std::int64_t>> {
protected:
    AdapterShapesGpu() : random_(8), rows_(32), starts_(DType::I32, Shape{33}) {
        for (std::size_t e = 0; e < rows_.size(); ++e) {
            rows_[e] = static_cast<std::int32_t>(200 + e * 41 % 150);
        }
        starts_ = startsOf(rows_);
    }
    std::int64_t count() const { return std::accumulate(rows_.begin(), rows_.end(), std::int64_t{0}); }

    std::mt19937 random_;
    std::vector<std::int32_t> rows_;
    TestTensor starts_;
};

TEST_P(AdapterShapesGpu, Products) {
    VITRINE_NEEDS_GPU();
    const auto [in, out] = GetParam();
    const ExpertStack stack(random_, DType::BF16, 32, out, in, false, DType::None);
    TestTensor x(DType::BF16, Shape{count(), in});
    TestTensor result(DType::BF16, Shape{count(), out});
    x.fillNormal(random_);
    const auto make = [&](auto&& at) {
        GroupedMatmul op;
        op.x = at(x);
        op.starts = at(starts_);
        op.linear = stack.view(at);
        op.out = at(result);
        return op;
    };
    testing::expectSameOnGpu(*testing::gpu(), make, {&result}, 1e-2);
}

TEST_P(AdapterShapesGpu, InputGradients) {
    VITRINE_NEEDS_GPU();
    const auto [in, out] = GetParam();
    const ExpertStack stack(random_, DType::BF16, 32, out, in, false, DType::None);
    TestTensor gradOut(DType::BF16, Shape{count(), out});
    TestTensor gradX(DType::BF16, Shape{count(), in});
    gradOut.fillNormal(random_);
    const auto make = [&](auto&& at) {
        GroupedInputGradient op;
        op.gradOut = at(gradOut);
        op.starts = at(starts_);
        op.weight = stack.view(at).weight;
        op.gradX = at(gradX);
        return op;
    };
    testing::expectSameOnGpu(*testing::gpu(), make, {&gradX}, 1e-2);
}

TEST_P(AdapterShapesGpu, WeightGradients) {
    VITRINE_NEEDS_GPU();
    const auto [in, out] = GetParam();
    TestTensor x(DType::BF16, Shape{count(), in});
    TestTensor gradOut(DType::BF16, Shape{count(), out});
    TestTensor gradWeight(DType::F32, Shape{32, out, in});
    x.fillNormal(random_);
    gradOut.fillNormal(random_);
    const auto make = [&](auto&& at) {
        return GroupedWeightGradient{at(x), at(gradOut), at(starts_), false, at(gradWeight)};
    };
    testing::expectSameOnGpu(*testing::gpu(), make, {&gradWeight}, 1e-5);
}

/// The last stage of an expert's rows brings rows of the next one: what is no number there stays there.
TEST(GroupedMatmulGpu, WeightGradientsKeepInfinitiesOfOtherExpertsOut) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(10);
    for (const bool inX : {false, true}) {
        const TestTensor starts = startsOf({70, 60});
        TestTensor x(DType::BF16, Shape{130, 192});
        TestTensor gradOut(DType::BF16, Shape{130, 320});
        TestTensor gradWeight(DType::F32, Shape{2, 320, 192});
        x.fillNormal(random);
        gradOut.fillNormal(random);
        TestTensor& spoiled = inX ? x : gradOut;
        std::vector<double> values = spoiled.values();
        const auto width = static_cast<std::ptrdiff_t>(spoiled.view().shape[1]);
        std::fill(values.begin() + 70 * width, values.end(), std::numeric_limits<double>::infinity());
        spoiled.fill(values);
        TestTensor& other = inX ? gradOut : x;
        std::vector<double> ones = other.values();
        const auto otherWidth = static_cast<std::ptrdiff_t>(other.view().shape[1]);
        std::fill(ones.begin() + 70 * otherWidth, ones.end(), 1.0); // so that the second expert's sums are infinities
        other.fill(ones);
        testing::expectSameOnGpu(
            *testing::gpu(),
            [&](auto&& at) { return GroupedWeightGradient{at(x), at(gradOut), at(starts), false, at(gradWeight)}; },
            {&gradWeight}, 1e-5);
    }
}

INSTANTIATE_TEST_SUITE_P(Rank16, AdapterShapesGpu,
                         ::testing::Values(std::pair<std::int64_t, std::int64_t>{2880, 16}, std::pair{16, 5760}));

TEST(GroupedMatmulGpu, BiasGradientsAndDotsAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(5);
    for (const DType type : {DType::BF16, DType::F32}) {
        const std::vector<std::int32_t> rows = {70, 0, 5, 200};
        const TestTensor starts = startsOf(rows);
        TestTensor x(type, Shape{275, 100});
        TestTensor weights(DType::F32, Shape{275});
        TestTensor vectors(DType::BF16, Shape{4, 100});
        TestTensor sums(DType::F32, Shape{4, 100});
        TestTensor dots(DType::F32, Shape{275});
        for (TestTensor* each : {&x, &weights, &vectors, &sums, &dots}) {
            each->fillNormal(random);
        }
        testing::expectSameOnGpu(
            *testing::gpu(), [&](auto&& at) { return GroupedBiasGradient{at(x), at(weights), at(starts), at(sums)}; },
            {&sums}, 1e-5);
        testing::expectSameOnGpu(
            *testing::gpu(), [&](auto&& at) { return GroupedDots{at(x), at(starts), at(vectors), at(dots)}; }, {&dots},
            1e-5);
    }
}

TEST(GroupPairsGpu, SortsAndGathersAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(6);
    for (const auto& [tokens, k, experts] :
         {std::array<int, 3>{1, 4, 32}, {700, 4, 32}, {20000, 4, 32}, {333, 8, 128}, {50, 2, 1000}}) {
        SCOPED_TRACE(tokens);
        const TestTensor ids = testing::chooseExperts(random, tokens, k, experts);
        TestTensor starts(DType::I32, Shape{experts + 1});
        TestTensor pairs(DType::I32, Shape{tokens * k});
        TestTensor places(DType::I32, Shape{tokens * k});
        testing::expectSameOnGpu(
            *testing::gpu(), [&](auto&& at) { return GroupPairs{at(ids), at(starts), at(pairs), at(places), {}}; },
            {&starts, &pairs, &places}, 0);
        for (const auto& [type, width] : {std::pair{DType::BF16, 96}, {DType::BF16, 35}, {DType::F32, 33}}) {
            TestTensor x(type, Shape{tokens, width});
            TestTensor out(type, Shape{tokens * k, width});
            x.fillNormal(random);
            testing::expectSameOnGpu(
                *testing::gpu(), [&](auto&& at) { return GatherPairs{at(x), at(pairs), at(out)}; }, {&out}, 0);
        }
    }
}

TEST(RouterTopKBackwardGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(7);
    for (const RouterOrder order : {RouterOrder::TopKThenSoftmax, RouterOrder::SoftmaxThenTopK}) {
        for (const bool normalize : {false, true}) {
            for (const bool balance : {false, true}) {
                const TestTensor ids = testing::chooseExperts(random, 77, 4, 40);
                TestTensor logits(DType::F32, Shape{77, 40});
                TestTensor weights(DType::F32, Shape{77, 4});
                TestTensor gradWeights(DType::F32, Shape{77, 4});
                TestTensor gradProbabilities(DType::F32, Shape{40});
                TestTensor gradLogits(DType::F32, Shape{77, 40});
                for (TestTensor* each : {&logits, &weights, &gradWeights, &gradProbabilities}) {
                    each->fillNormal(random);
                }
                const auto make = [&](auto&& at) {
                    RouterTopKBackward op;
                    op.forward = {at(logits), at(ids), at(weights), order, normalize};
                    op.gradWeights = at(gradWeights);
                    if (balance) {
                        op.gradProbabilities = at(gradProbabilities);
                    }
                    op.gradLogits = at(gradLogits);
                    return op;
                };
                testing::expectSameOnGpu(*testing::gpu(), make, {&gradLogits}, 1e-5);
            }
        }
    }
}

TEST(RouterSharesGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(8);
    for (const auto& [experts, k] : {std::pair{40, 4}, {32, 1}, {128, 8}}) {
        const TestTensor ids = testing::chooseExperts(random, 77, k, experts);
        TestTensor logits(DType::F32, Shape{77, experts});
        TestTensor weights(DType::F32, Shape{77, k});
        TestTensor out(DType::F32, Shape{77, 2 * experts});
        logits.fillNormal(random, 3);
        const auto make = [&](auto&& at) {
            return RouterShares{{at(logits), at(ids), at(weights), RouterOrder::TopKThenSoftmax, false}, at(out)};
        };
        testing::expectSameOnGpu(*testing::gpu(), make, {&out}, 1e-5);
    }
}

} // namespace
} // namespace vitrine::kernels
