// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Products that stream a packed weight as it is stored: rows on both sides of every size of tile, groups and blocks of
// every kind, axes that end within a chunk or a block, and experts.

#include "kernels/ops/experts/moe.h"
#include "tests/gpu/packed_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;
using testing::TestWeight;

std::vector<TestWeight> streamedWeights(std::mt19937& random, std::int64_t out, std::int64_t in) {
    std::vector<TestWeight> weights;
    weights.push_back(testing::integerWeight(random, out, in, {4, 32, DType::BF16, false, false}));
    weights.push_back(testing::integerWeight(random, out, in, {4, 64, DType::F16, true, false}));
    weights.push_back(testing::integerWeight(random, out, in, {4, 128, DType::BF16, true, false}));
    weights.push_back(testing::integerWeight(random, out, in, {4, in, DType::F32, false, false}));
    weights.push_back(testing::fp8Weight(random, out, in, 128, 128));
    weights.push_back(testing::fp8Weight(random, out, in, 1, in));
    weights.push_back(testing::fp8Weight(random, out, in, out, in));
    return weights;
}

TEST(PackedRowsGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(21);
    for (const auto& [out, in] : {std::pair{300, 512}, {1000, 2880}}) {
        for (const TestWeight& weight : streamedWeights(random, out, in)) {
            for (const std::int64_t rows : {1, 7, 9, 33, 65}) {
                testing::expectPackedProductAsOnTheCpu(random, weight, rows, DType::BF16, 3);
            }
        }
    }
}

TEST(PackedRowsGpu, ExpertsAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(22);
    constexpr std::int64_t kExperts = 6, kChosen = 3, kOut = 320;
    for (const std::int64_t in : {256, 352}) {
        for (const testing::PackedForm& form : testing::packedForms()) {
            const TestWeight weight = form.make(random, kExperts * kOut, in);
            for (const std::int64_t tokens : {1, 5, 12, 300}) {
                for (const bool perToken : {true, false}) {
                    SCOPED_TRACE(::testing::Message()
                                 << form.name << ", " << tokens << " tokens, in " << in << ", per token " << perToken);
                    TestTensor x(DType::BF16, Shape{perToken ? tokens : tokens * kChosen, in});
                    TestTensor ids(DType::I32, Shape{tokens, kChosen});
                    TestTensor bias(DType::BF16, Shape{kExperts, kOut});
                    TestTensor out(DType::BF16, Shape{tokens * kChosen, kOut});
                    x.fillNormal(random);
                    bias.fillNormal(random);
                    std::vector<std::int32_t> chosen;
                    for (std::int64_t i = 0; i < tokens; ++i) {
                        const auto first = static_cast<std::int32_t>(random() % kExperts);
                        for (std::int32_t k = 0; k < kChosen; ++k) {
                            chosen.push_back((first + k * 2) % kExperts);
                        }
                    }
                    ids.fillInts(chosen);
                    const auto make = [&](auto&& at) {
                        ExpertMatmul op;
                        op.x = at(x);
                        op.xPerToken = perToken;
                        op.ids = at(ids);
                        op.weight = testing::stackOf(testing::viewAt(weight, at), kExperts);
                        op.bias = at(bias);
                        op.out = at(out);
                        return op;
                    };
                    testing::expectSameOnGpu(*testing::gpu(), make, {&out}, 1e-2);
                }
            }
        }
    }
}

} // namespace
} // namespace vitrine::kernels
