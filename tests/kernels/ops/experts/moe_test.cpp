// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/moe.h"

#include <algorithm>
#include <numeric>

#include "kernels/formats/weight_formats.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

std::vector<double> softmax(const std::vector<double>& logits) {
    const double maximum = *std::max_element(logits.begin(), logits.end());
    std::vector<double> out;
    double sum = 0;
    for (const double logit : logits) {
        out.push_back(std::exp(logit - maximum));
        sum += out.back();
    }
    for (double& value : out) {
        value /= sum;
    }
    return out;
}

TEST(RouterTopK, BothOrdersAgainstSorting) {
    std::mt19937 random(1);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::BF16}) {
        for (const auto& [experts, k] : {std::pair{4, 2}, {32, 4}, {128, 8}, {5, 5}, {7, 1}}) {
            for (const int form : {0, 1, 2}) {
                TestTensor logits(type, Shape{33, experts});
                logits.fillNormal(random, 2);
                TestTensor ids(DType::I32, Shape{33, k});
                TestTensor weights(DType::F32, Shape{33, k});
                const RouterOrder order = form == 0 ? RouterOrder::TopKThenSoftmax : RouterOrder::SoftmaxThenTopK;
                testing::runOp(context, RouterTopK{logits, ids, weights, order, form == 2});
                const std::vector<double> all = logits.values();
                std::vector<double> expectedIds, expectedWeights;
                for (int row = 0; row < 33; ++row) {
                    const std::vector<double> values(all.begin() + row * experts, all.begin() + (row + 1) * experts);
                    std::vector<int> sorted(static_cast<std::size_t>(experts));
                    std::iota(sorted.begin(), sorted.end(), 0);
                    std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
                        return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
                    });
                    std::vector<double> chosen;
                    const std::vector<double> shares = softmax(values);
                    for (int j = 0; j < k; ++j) {
                        const auto id = static_cast<std::size_t>(sorted[static_cast<std::size_t>(j)]);
                        expectedIds.push_back(static_cast<double>(id));
                        chosen.push_back(form == 0 ? values[id] : shares[id]);
                    }
                    if (form == 0) {
                        chosen = softmax(chosen);
                    }
                    const double sum = form == 2 ? std::accumulate(chosen.begin(), chosen.end(), 0.0) : 1;
                    for (const double weight : chosen) {
                        expectedWeights.push_back(weight / sum);
                    }
                }
                EXPECT_EQ(ids.values(), expectedIds);
                testing::expectNear(weights, expectedWeights, 1e-6);
            }
        }
    }
}

TEST(RouterTopK, TiesGoToTheLowerExpert) {
    CpuContext context(1);
    TestTensor logits(DType::F32, Shape{1, 6});
    logits.fill({1, 3, 3, 0, 3, 1});
    TestTensor ids(DType::I32, Shape{1, 5});
    TestTensor weights(DType::F32, Shape{1, 5});
    testing::runOp(context, RouterTopK{logits, ids, weights, RouterOrder::TopKThenSoftmax, false});
    EXPECT_EQ(ids.values(), (std::vector<double>{1, 2, 4, 0, 5}));
}

TEST(RouterTopK, BrokenLogitsStillChooseDifferentExperts) {
    CpuContext context(1);
    TestTensor logits(DType::F32, Shape{1, 4});
    TestTensor ids(DType::I32, Shape{1, 4});
    TestTensor weights(DType::F32, Shape{1, 4});
    testing::runOp(context, RouterTopK{logits, ids, weights, RouterOrder::TopKThenSoftmax, false}); // all NaN
    std::vector<double> chosen = ids.values();
    std::sort(chosen.begin(), chosen.end());
    EXPECT_EQ(chosen, (std::vector<double>{0, 1, 2, 3}));
}

/// Stacks in every storage form with values as double (experts, out, in).
struct Stack {
    TestTensor dense, blocks, scales;
    WeightView view;
    std::vector<double> values;
};

Stack denseStack(std::mt19937& random, DType type, std::int64_t experts, std::int64_t out, std::int64_t in,
                 bool transposed) {
    Stack stack;
    stack.dense = transposed ? TestTensor(type, Shape{experts, in, out}) : TestTensor(type, Shape{experts, out, in});
    stack.dense.fillNormal(random);
    stack.view = denseWeight(stack.dense, transposed);
    const std::vector<double> stored = stack.dense.values();
    for (std::int64_t e = 0; e < experts; ++e) {
        for (std::int64_t o = 0; o < out; ++o) {
            for (std::int64_t i = 0; i < in; ++i) {
                stack.values.push_back(
                    stored[static_cast<std::size_t>(e * out * in + (transposed ? i * out + o : o * in + i))]);
            }
        }
    }
    return stack;
}

Stack mxfp4Stack(std::mt19937& random, std::int64_t experts, std::int64_t out, std::int64_t in) {
    const double table[8] = {0, .5, 1, 1.5, 2, 3, 4, 6};
    Stack stack;
    stack.blocks = TestTensor(DType::U8, Shape{experts, out, in / 32, 16});
    stack.scales = TestTensor(DType::U8, Shape{experts, out, in / 32});
    stack.blocks.fillBytes(random, 0, 255);
    stack.scales.fillBytes(random, 122, 128);
    stack.view = packedWeight(WeightFormat::Mxfp4, stack.blocks, stack.scales);
    const std::vector<double> bytes = stack.blocks.values();
    const std::vector<double> scales = stack.scales.values();
    for (std::size_t i = 0; i < static_cast<std::size_t>(experts * out * in); ++i) {
        const auto byte = static_cast<unsigned>(bytes[i / 2]);
        const unsigned nibble = i % 2 == 0 ? byte & 15U : byte >> 4;
        const double sign = (nibble & 8U) != 0 ? -1 : 1;
        stack.values.push_back(sign * table[nibble & 7U] * std::ldexp(1.0, static_cast<int>(scales[i / 32]) - 127));
    }
    return stack;
}

void expectExperts(CpuContext& context, std::mt19937& random, const Stack& stack, std::int64_t tokens, std::int64_t k,
                   std::int64_t experts, std::int64_t out, std::int64_t in, bool xPerToken, DType type) {
    TestTensor x(type, Shape{xPerToken ? tokens : tokens * k, in});
    TestTensor ids(DType::I32, Shape{tokens, k});
    TestTensor bias(DType::BF16, Shape{experts, out});
    TestTensor result(type, Shape{tokens * k, out}, out + 3);
    x.fillNormal(random);
    bias.fillNormal(random);
    std::vector<std::int32_t> numbers;
    for (std::int64_t t = 0; t < tokens; ++t) {
        std::vector<std::int32_t> all(static_cast<std::size_t>(experts));
        std::iota(all.begin(), all.end(), 0);
        std::shuffle(all.begin(), all.end(), random);
        numbers.insert(numbers.end(), all.begin(), all.begin() + k);
    }
    ids.fillInts(numbers);
    ExpertMatmul op{x, xPerToken, ids, stack.view, bias, result, {}};
    testing::runOp(context, op);
    const std::vector<double> xs = x.values();
    const std::vector<double> biases = bias.values();
    std::vector<double> expected;
    double largest = 1;
    for (std::int64_t pair = 0; pair < tokens * k; ++pair) {
        const std::int64_t expert = numbers[static_cast<std::size_t>(pair)];
        const std::int64_t row = xPerToken ? pair / k : pair;
        for (std::int64_t o = 0; o < out; ++o) {
            double sum = biases[static_cast<std::size_t>(expert * out + o)];
            double magnitude = 0;
            for (std::int64_t i = 0; i < in; ++i) {
                const double term = xs[static_cast<std::size_t>(row * in + i)] *
                                    stack.values[static_cast<std::size_t>((expert * out + o) * in + i)];
                sum += term;
                magnitude += std::fabs(term);
            }
            largest = std::max(largest, magnitude);
            expected.push_back(sum);
        }
    }
    testing::expectNear(result, expected, largest * 4e-7);
}

TEST(ExpertMatmul, AgainstDouble) {
    std::mt19937 random(2);
    testing::forEachSimd([&](CpuContext& context) {
        for (const std::int64_t tokens : {1, 3, 17, 70}) {
            for (const DType type : {DType::F32, DType::BF16}) {
                const Stack quantized = mxfp4Stack(random, 6, 37, 96);
                expectExperts(context, random, quantized, tokens, 4, 6, 37, 96, true, type);
                expectExperts(context, random, quantized, tokens, 2, 6, 37, 96, false, type);
                const Stack dense = denseStack(random, DType::BF16, 5, 70, 41, false);
                expectExperts(context, random, dense, tokens, 3, 5, 70, 41, true, type);
                const Stack transposed = denseStack(random, DType::BF16, 5, 70, 41, true);
                expectExperts(context, random, transposed, tokens, 3, 5, 70, 41, tokens % 2 == 1, type);
            }
        }
    });
}

TEST(ExpertMatmul, ATokenIsTheSameAloneAndTogether) {
    std::mt19937 random(3);
    testing::forEachSimd([&](CpuContext& context) {
        const Stack stack = mxfp4Stack(random, 4, 33, 64);
        for (const std::int64_t tokens : {24, 80}) { // by dot products, and in tiles
            TestTensor x(DType::F32, Shape{tokens, 64});
            TestTensor ids(DType::I32, Shape{tokens, 2});
            TestTensor all(DType::F32, Shape{2 * tokens, 33});
            x.fillNormal(random);
            std::vector<std::int32_t> numbers;
            for (std::int32_t i = 0; i < tokens; ++i) {
                numbers.push_back(i % 4);
                numbers.push_back((i + 1 + i / 7) % 4);
            }
            ids.fillInts(numbers);
            testing::runOp(context, ExpertMatmul{x, true, ids, stack.view, {}, all, {}});
            const std::vector<double> together = all.values();
            for (std::int64_t t = 0; t < tokens; ++t) {
                TestTensor one(DType::F32, Shape{2, 33});
                testing::runOp(
                    context,
                    ExpertMatmul{sliceRows(x, t, t + 1), true, sliceRows(ids, t, t + 1), stack.view, {}, one, {}});
                const std::vector<double> alone = one.values();
                ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + t * 66)) << t;
            }
        }
    });
}

TEST(ExpertMatmul, CostCountsOnlyTheExpertsTouched) {
    std::mt19937 random(4);
    const Stack stack = mxfp4Stack(random, 16, 8, 64);
    TestTensor x(DType::F32, Shape{2, 64});
    TestTensor ids(DType::I32, Shape{2, 4});
    TestTensor out(DType::F32, Shape{8, 8});
    const ExpertMatmul op{x, true, ids, stack.view, {}, out, {}};
    const std::uint64_t perExpert = 8 * (32 + 2);
    EXPECT_EQ(cost(op, DeviceTraits{}).bytesRead, 2U * 64 * 4 + 8 * 4 + 8 * perExpert);
}

TEST(ExpertMatmul, WrongExpertNumbersThrow) {
    std::mt19937 random(5);
    CpuContext context(1);
    const Stack stack = mxfp4Stack(random, 2, 8, 32);
    TestTensor x(DType::F32, Shape{1, 32});
    x.fillNormal(random);
    TestTensor ids(DType::I32, Shape{1, 1});
    TestTensor out(DType::F32, Shape{1, 8});
    for (const int id : {2, -1}) {
        ids.fillInts({id});
        EXPECT_THROW(testing::runOp(context, ExpertMatmul{x, true, ids, stack.view, {}, out, {}}), base::Internal);
    }
}

TEST(MoeCombine, WeightedSumInOrder) {
    std::mt19937 random(6);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::BF16, DType::F64}) {
        for (const bool residual : {false, true}) {
            TestTensor x(type, Shape{9 * 4, 700});
            TestTensor weights(DType::F32, Shape{9, 4});
            TestTensor out(type, Shape{9, 700}, 720);
            x.fillNormal(random);
            weights.fillNormal(random);
            std::vector<double> expected(9 * 700, 0.0);
            if (residual) {
                out.fillNormal(random);
                expected = out.values();
            }
            const std::vector<double> xs = x.values();
            const std::vector<double> ws = weights.values();
            for (std::size_t t = 0; t < 9; ++t) {
                for (std::size_t i = 0; i < 700; ++i) {
                    for (std::size_t j = 0; j < 4; ++j) {
                        expected[t * 700 + i] += ws[t * 4 + j] * xs[(t * 4 + j) * 700 + i];
                    }
                }
            }
            testing::runOp(context, MoeCombine{x, weights, residual ? out.view() : TensorView{}, out});
            testing::expectNear(out, expected, type == DType::F64 ? 1e-13 : 3e-6);
        }
    }
}

} // namespace
} // namespace vitrine::kernels
