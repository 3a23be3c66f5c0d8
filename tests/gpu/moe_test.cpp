// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/moe.h"

#include <algorithm>
#include <numeric>

#include "kernels/formats/weight_formats.h"
#include "kernels/ops/fused/blocks.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/experts/expert_testing.h"

namespace vitrine::kernels {
namespace {

using testing::chooseExperts;
using testing::ExpertStack;
using testing::TestTensor;

struct MoeCase {
    std::int64_t tokens;
    int k, experts, used;
    std::int64_t in, out;
    DType weights, x, bias;
    bool transposed = false, perToken = true;
};

TEST(ExpertMatmulGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    const DType mxfp4 = DType::U8, wide = DType::F32, narrow = DType::BF16, none = DType::None;
    const std::vector<MoeCase> cases{
        {1, 2, 4, 4, 64, 64, mxfp4, narrow, narrow},
        {37, 2, 4, 3, 96, 160, mxfp4, narrow, narrow},
        {300, 4, 8, 8, 128, 96, narrow, narrow, none},
        {200, 4, 32, 5, 320, 272, mxfp4, narrow, wide, false, false},
        {65, 2, 4, 4, 72, 80, narrow, narrow, narrow, false, false},
        {33, 2, 4, 4, 64, 100, narrow, narrow, narrow, true},
        {50, 3, 6, 6, 96, 65, mxfp4, wide, narrow},
        {50, 3, 6, 6, 90, 65, wide, wide, wide},
        {20, 1, 700, 700, 32, 48, mxfp4, narrow, none},
        {150, 2, 4, 3, 416, 352, mxfp4, narrow, narrow},
        {150, 2, 4, 4, 328, 400, narrow, narrow, narrow},
    };
    std::mt19937 random(1);
    for (const MoeCase& item : cases) {
        SCOPED_TRACE(::testing::Message() << item.tokens << " tokens, in " << item.in << ", out " << item.out);
        const ExpertStack stack(random, item.weights, item.experts, item.out, item.in, item.transposed, item.bias);
        const TestTensor ids = chooseExperts(random, item.tokens, item.k, item.used);
        const std::int64_t pairs = item.tokens * item.k;
        TestTensor x(item.x, Shape{item.perToken ? item.tokens : pairs, item.in});
        x.fillNormal(random);
        TestTensor out(item.x, Shape{pairs, item.out});
        const auto make = [&](auto&& at) {
            ExpertMatmul op;
            op.x = at(x);
            op.xPerToken = item.perToken;
            op.ids = at(ids);
            const LinearView linear = stack.view(at);
            op.weight = linear.weight;
            op.bias = linear.bias;
            op.out = at(out);
            return op;
        };
        testing::expectSameOnGpu(*testing::gpu(), make, {&out}, item.x == wide ? 1e-5 : 1e-2);
    }
}

TEST(ExpertMlpGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    struct MlpCase {
        std::int64_t tokens;
        int k, experts, used;
        std::int64_t hidden, width;
        DType weights, x;
        Activation activation;
        GateLayout layout;
        bool residual;
    };
    const std::vector<MlpCase> cases{
        {130, 4, 32, 32, 192, 96, DType::U8, DType::BF16, Activation::ClampedSwiglu, GateLayout::Interleaved, true},
        {700, 2, 8, 3, 64, 96, DType::U8, DType::BF16, Activation::Silu, GateLayout::Halves, true},
        {300, 2, 4, 4, 416, 352, DType::U8, DType::BF16, Activation::Silu, GateLayout::Halves, true},
        {300, 4, 4, 4, 352, 480, DType::U8, DType::BF16, Activation::ClampedSwiglu, GateLayout::Interleaved, true},
        {90, 2, 4, 4, 96, 160, DType::BF16, DType::BF16, Activation::GeluTanh, GateLayout::Halves, false},
        {90, 2, 4, 4, 96, 64, DType::BF16, DType::F32, Activation::ClampedSwiglu, GateLayout::Interleaved, true},
        {1, 4, 8, 8, 192, 96, DType::U8, DType::BF16, Activation::ClampedSwiglu, GateLayout::Interleaved, true},
    };
    std::mt19937 random(2);
    for (const MlpCase& item : cases) {
        SCOPED_TRACE(::testing::Message()
                     << item.tokens << " tokens, hidden " << item.hidden << ", width " << item.width);
        const ExpertStack gateUp(random, item.weights, item.experts, 2 * item.width, item.hidden, false, DType::BF16);
        const ExpertStack down(random, item.weights, item.experts, item.hidden, item.width, false, DType::BF16);
        const TestTensor ids = chooseExperts(random, item.tokens, item.k, item.used);
        TestTensor weights(DType::F32, Shape{item.tokens, item.k});
        weights.fillNormal(random, 0.5);
        TestTensor x(item.x, Shape{item.tokens, item.hidden});
        x.fillNormal(random);
        TestTensor residual(item.x, Shape{item.tokens, item.hidden});
        residual.fillNormal(random);
        TestTensor out(item.x, Shape{item.tokens, item.hidden});
        const auto make = [&](auto&& at) {
            ExpertMlp op;
            op.x = at(x);
            op.ids = at(ids);
            op.weights = at(weights);
            op.gateUp = gateUp.view(at);
            op.down = down.view(at);
            op.activation = item.activation;
            op.layout = item.layout;
            if (item.residual) {
                op.residual = at(residual);
            }
            op.out = at(out);
            return op;
        };
        testing::expectSameOnGpu(*testing::gpu(), make, {&out}, item.x == DType::F32 ? 1e-5 : 1.5e-2);
    }
}

struct CombineCase {
    std::int64_t tokens;
    int k;
    std::int64_t hidden;
    DType type;
    bool places, weights, residual;
};

const std::vector<CombineCase>& combineCases() {
    static const std::vector<CombineCase> kAll = {
        {1, 4, 2880, DType::BF16, true, true, true},    {333, 4, 2880, DType::BF16, true, true, true},
        {333, 4, 2880, DType::BF16, true, false, true}, {70, 8, 96, DType::BF16, true, false, false},
        {70, 3, 35, DType::BF16, true, true, false},    {70, 2, 33, DType::F32, true, false, true},
        {70, 2, 64, DType::F32, false, false, true},    {70, 2, 64, DType::F32, false, true, true},
    };
    return kAll;
}

TEST(MoeCombineGpu, RowsByExpertAndWithoutWeightsAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(3);
    for (const CombineCase& item : combineCases()) {
        SCOPED_TRACE(::testing::Message() << item.tokens << " tokens, hidden " << item.hidden << ", places "
                                          << item.places << ", weights " << item.weights);
        const std::int64_t pairs = item.tokens * item.k;
        std::vector<std::int32_t> order(static_cast<std::size_t>(pairs));
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        TestTensor places, weights, residual;
        if (item.places) {
            places = TestTensor(DType::I32, Shape{pairs});
            places.fillInts(order);
        }
        if (item.weights) {
            weights = TestTensor(DType::F32, Shape{item.tokens, item.k});
            weights.fillNormal(random);
        }
        if (item.residual) {
            residual = TestTensor(item.type, Shape{item.tokens, item.hidden}, item.hidden + 8);
            residual.fillNormal(random);
        }
        TestTensor x(item.type, Shape{pairs, item.hidden}, item.hidden + 16);
        TestTensor out(item.type, Shape{item.tokens, item.hidden});
        x.fillNormal(random);
        const auto make = [&](auto&& at) { return MoeCombine{at(x), at(weights), at(residual), at(out), at(places)}; };
        testing::expectSameOnGpu(*testing::gpu(), make, {&out}, item.type == DType::F32 ? 1e-6 : 1e-2);
    }
}

} // namespace
} // namespace vitrine::kernels
