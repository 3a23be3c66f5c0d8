// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Blocks with packed weights, whose products share launches: gate, up and activation, the experts of few tokens with
// their sum, and q, k and v.

#include <cmath>

#include "kernels/ops/fused/blocks.h"
#include "tests/gpu/packed_testing.h"
#include "tests/kernels/ops/experts/expert_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;
using testing::TestWeight;

constexpr double kTolerance = 1.5e-2;

TestTensor normal(std::mt19937& random, const Shape& shape, DType type = DType::BF16) {
    TestTensor tensor(type, shape);
    tensor.fillNormal(random);
    return tensor;
}

template <class At> LinearView linearAt(At&& at, const TestWeight& weight, const TestTensor* bias) {
    LinearView linear;
    linear.weight = testing::viewAt(weight, at);
    if (bias != nullptr) {
        linear.bias = at(*bias);
    }
    return linear;
}

/// A stack of experts of as many rows each over one matrix.
template <class At>
LinearView expertsAt(At&& at, const TestWeight& weight, std::int64_t experts, const TestTensor* bias) {
    LinearView linear = linearAt(at, weight, bias);
    linear.weight = testing::stackOf(linear.weight, experts);
    return linear;
}

TEST(PackedBlocksGpu, ExpertsAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(41);
    constexpr std::int64_t kExperts = 8, kUsed = 8, kHidden = 320;
    for (const testing::PackedForm& form : testing::packedForms()) {
        for (const std::int64_t width : {192, 256}) {
            const TestWeight gateUp = form.make(random, kExperts * 2 * width, kHidden);
            const TestWeight down = form.make(random, kExperts * kHidden, width);
            const TestTensor gateUpBias = normal(random, Shape{kExperts, 2 * width});
            const TestTensor downBias = normal(random, Shape{kExperts, kHidden});
            for (const std::int64_t tokens : {1, 3, 4, 5, 40, 150}) {
                for (const GateLayout layout : {GateLayout::Halves, GateLayout::Interleaved}) {
                    SCOPED_TRACE(::testing::Message() << form.name << ", " << tokens << " tokens, width " << width
                                                      << ", layout " << static_cast<int>(layout));
                    const TestTensor ids = testing::chooseExperts(random, tokens, 3, kUsed);
                    TestTensor weights(DType::F32, Shape{tokens, 3});
                    weights.fillNormal(random, 0.5);
                    const TestTensor x = normal(random, Shape{tokens, kHidden});
                    const TestTensor residual = normal(random, Shape{tokens, kHidden});
                    TestTensor out(DType::BF16, Shape{tokens, kHidden});
                    const bool biased = layout == GateLayout::Interleaved;
                    const auto make = [&](auto&& at) {
                        ExpertMlp op;
                        op.x = at(x);
                        op.ids = at(ids);
                        op.weights = at(weights);
                        op.gateUp = expertsAt(at, gateUp, kExperts, biased ? &gateUpBias : nullptr);
                        op.down = expertsAt(at, down, kExperts, biased ? &downBias : nullptr);
                        op.activation = biased ? Activation::ClampedSwiglu : Activation::Silu;
                        op.layout = layout;
                        op.residual = at(residual);
                        op.out = at(out);
                        return op;
                    };
                    testing::expectSameOnGpu(*testing::gpu(), make, {&out}, kTolerance);
                }
            }
        }
    }
}

TEST(PackedBlocksGpu, DenseMlpAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(42);
    constexpr std::int64_t kHidden = 320, kWidth = 416;
    for (const testing::PackedForm& form : testing::packedForms()) {
        const TestWeight gate = form.make(random, kWidth, kHidden);
        const TestWeight up = form.make(random, kWidth, kHidden);
        const TestWeight down = form.make(random, kHidden, kWidth);
        const TestTensor norm = normal(random, Shape{kHidden});
        for (const std::int64_t tokens : {1, 8, 9, 70}) {
            SCOPED_TRACE(::testing::Message() << form.name << ", " << tokens << " tokens");
            const TestTensor x = normal(random, Shape{tokens, kHidden});
            TestTensor out(DType::BF16, Shape{tokens, kHidden});
            const auto make = [&](auto&& at) {
                DenseMlp op;
                op.x = at(x);
                op.norm = {at(norm), 1e-6F, RmsNormOrder::ScaleThenCast};
                op.gate = linearAt(at, gate, nullptr);
                op.up = linearAt(at, up, nullptr);
                op.down = linearAt(at, down, nullptr);
                op.activation = tokens % 2 == 0 ? Activation::Silu : Activation::GeluTanh;
                op.out = at(out);
                return op;
            };
            testing::expectSameOnGpu(*testing::gpu(), make, {&out}, kTolerance);
        }
    }
}

TEST(PackedBlocksGpu, QueriesKeysAndValuesAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(43);
    constexpr std::int64_t kHidden = 352, kHeads = 6, kKvHeads = 2, kHeadDim = 64;
    TestTensor frequency(DType::F32, Shape{kHeadDim / 2});
    std::vector<double> frequencies;
    for (int i = 0; i < kHeadDim / 2; ++i) {
        frequencies.push_back(std::pow(10000.0, -2.0 * i / kHeadDim));
    }
    frequency.fill(frequencies);
    for (const testing::PackedForm& form : testing::packedForms()) {
        const TestWeight q = form.make(random, kHeads * kHeadDim, kHidden);
        const TestWeight k = form.make(random, kKvHeads * kHeadDim, kHidden);
        const TestWeight v = form.make(random, kKvHeads * kHeadDim, kHidden);
        const TestTensor norm = normal(random, Shape{kHidden});
        for (const std::int64_t tokens : {1, 6, 20}) {
            SCOPED_TRACE(::testing::Message() << form.name << ", " << tokens << " tokens");
            const TestTensor x = normal(random, Shape{tokens, kHidden});
            TestTensor positions(DType::I32, Shape{tokens});
            std::vector<std::int32_t> numbers;
            for (std::int64_t i = 0; i < tokens; ++i) {
                numbers.push_back(static_cast<std::int32_t>(7 * i));
            }
            positions.fillInts(numbers);
            TestTensor outQ(DType::BF16, Shape{tokens, kHeads, kHeadDim});
            TestTensor outK(DType::BF16, Shape{tokens, kKvHeads, kHeadDim});
            TestTensor outV(DType::BF16, Shape{tokens, kKvHeads, kHeadDim});
            const auto make = [&](auto&& at) {
                QkvProject op;
                op.x = at(x);
                op.norm = {at(norm), 1e-6F, RmsNormOrder::ScaleThenCast};
                op.q = linearAt(at, q, nullptr);
                op.k = linearAt(at, k, nullptr);
                op.v = linearAt(at, v, nullptr);
                op.positions = at(positions);
                op.inverseFrequency = at(frequency);
                op.writeCache = false;
                op.outQ = at(outQ);
                op.outK = at(outK);
                op.outV = at(outV);
                return op;
            };
            testing::expectSameOnGpu(*testing::gpu(), make, {&outQ, &outK, &outV}, kTolerance);
        }
    }
}

} // namespace
} // namespace vitrine::kernels
