// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Block ops of few tokens, fused and composed, against the CPU.

#include "kernels/formats/weight_formats.h"
#include "kernels/ops/fused/blocks.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

constexpr double kNarrow = 0.012; ///< of the spread, BF16 results after several roundings
constexpr double kWide = 2e-5;

class Decode : public ::testing::Test {
protected:
    TestTensor random(DType type, const Shape& shape, double deviation = 1) {
        TestTensor tensor(type, shape);
        tensor.fillNormal(engine_, deviation);
        return tensor;
    }
    TestTensor matrix(DType type, std::int64_t out, std::int64_t in) {
        return random(type, Shape{out, in}, 1 / std::sqrt(static_cast<double>(in)));
    }
    template <class At> static LinearView linear(At& at, const TestTensor& weight, const TestTensor& bias) {
        LinearView view;
        view.weight = denseWeight(at(weight));
        view.bias = at(bias);
        return view;
    }
    static double tolerance(DType type) { return type == DType::BF16 ? kNarrow : kWide; }

    std::mt19937 engine_{std::random_device{}()};
    const TestTensor none_;
};

struct Sizes {
    std::int64_t tokens, dim;
    DType type = DType::BF16;
};

const std::vector<Sizes> kSizes{
    {1, 64},    {1, 2880},  {2, 96},    {7, 256},   {9, 512},  {16, 128},           {16, 2880},          {17, 320},
    {33, 2880}, {64, 2880}, {64, 4096}, {32, 8192}, {65, 256}, {3, 72, DType::F32}, {1, 128, DType::F32}};

TEST_F(Decode, LmHeadOfChosenRows) {
    VITRINE_NEEDS_GPU();
    for (const Sizes& size : kSizes) {
        for (const RmsNormOrder form :
             {RmsNormOrder::CastThenScale, RmsNormOrder::ScaleThenCast, RmsNormOrder::OnePlusWeight}) {
            const TestTensor x = random(size.type, Shape{20, size.dim});
            const TestTensor norm = random(size.type, Shape{size.dim});
            const TestTensor head = matrix(size.type, 333, size.dim);
            std::vector<std::int32_t> chosen;
            for (std::int64_t i = 0; i < size.tokens; ++i) {
                chosen.push_back(static_cast<std::int32_t>((i * 7 + 3) % 20));
            }
            TestTensor rows(DType::I32, Shape{size.tokens});
            rows.fillInts(chosen);
            TestTensor logits(DType::F32, Shape{size.tokens, 333});
            testing::expectSameOnGpu(
                *testing::gpu(),
                [&](auto&& at) {
                    LmHead op;
                    op.x = at(x);
                    op.rows = at(rows);
                    op.norm = {at(norm), 1e-5F, form};
                    op.head = linear(at, head, none_);
                    op.softCap = form == RmsNormOrder::OnePlusWeight ? 20.0F : 0.0F;
                    op.logits = at(logits);
                    return op;
                },
                {&logits}, tolerance(size.type));
        }
    }
}

TEST_F(Decode, OutProjectInPlace) {
    VITRINE_NEEDS_GPU();
    for (const Sizes& size : kSizes) {
        const TestTensor x = random(size.type, Shape{size.tokens, size.dim});
        const TestTensor o = matrix(size.type, 90, size.dim);
        const TestTensor bias = random(size.type, Shape{90});
        TestTensor out = random(size.type, Shape{size.tokens, 90});
        testing::expectSameOnGpu(
            *testing::gpu(),
            [&](auto&& at) {
                OutProject op;
                op.x = at(x);
                op.o = linear(at, o, bias);
                op.residual = at(out);
                op.out = at(out);
                return op;
            },
            {&out}, tolerance(size.type));
    }
}

// From two rows on one kernel serves up to 64 (split_rows.cuh): the same bits whatever else is in the step.
TEST_F(Decode, OutProjectOfARowDoesNotDependOnTheOthers) {
    VITRINE_NEEDS_GPU();
    constexpr std::int64_t kMost = 64, kDim = 2880, kFeatures = 300;
    const TestTensor o = matrix(DType::BF16, kFeatures, kDim);
    const TestTensor bias = random(DType::BF16, Shape{kFeatures});
    const std::vector<double> allOfX = random(DType::BF16, Shape{kMost, kDim}).values();
    const std::vector<double> allResiduals = random(DType::BF16, Shape{kMost, kFeatures}).values();
    std::vector<double> expected;
    for (const std::int64_t rows : {kMost, std::int64_t{2}, std::int64_t{16}, std::int64_t{17}, std::int64_t{40}}) {
        TestTensor x(DType::BF16, Shape{rows, kDim});
        x.fill({allOfX.begin(), allOfX.begin() + rows * kDim});
        TestTensor residual(DType::BF16, Shape{rows, kFeatures});
        residual.fill({allResiduals.begin(), allResiduals.begin() + rows * kFeatures});
        TestTensor out(DType::BF16, Shape{rows, kFeatures});
        testing::OnDevice device(*testing::gpu());
        OutProject op;
        op.x = device(x);
        op.o = linear(device, o, bias);
        op.residual = device(residual);
        op.out = device(out);
        device.run(op);
        device.download(out);
        if (rows == kMost) {
            expected = out.values();
        }
        const std::vector<double> got = out.values();
        EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin())) << rows << " rows";
    }
}

TEST_F(Decode, QkvProjectWritesPagesAndRings) {
    VITRINE_NEEDS_GPU();
    constexpr std::int64_t kHeads = 6, kKvHeads = 2, kPageTokens = 8, kColumns = 3;
    for (const Sizes& size : kSizes) {
        for (const auto& layout : std::vector<std::pair<std::int64_t, bool>>{
                 {16, false}, {16, true}, {64, false}, {64, true}, {128, false}}) {
            const std::int64_t headDim = layout.first, tokens = size.tokens;
            const bool ring = layout.second;
            const TestTensor x = random(size.type, Shape{tokens, size.dim});
            const TestTensor norm = random(size.type, Shape{size.dim});
            const TestTensor q = matrix(size.type, kHeads * headDim, size.dim);
            const TestTensor k = matrix(size.type, kKvHeads * headDim, size.dim);
            const TestTensor v = matrix(size.type, kKvHeads * headDim, size.dim);
            const TestTensor bias = random(size.type, Shape{kHeads * headDim});
            TestTensor frequency(DType::F32, Shape{headDim / 2});
            std::vector<double> frequencies;
            for (int i = 0; i < headDim / 2; ++i) {
                frequencies.push_back(std::pow(10000.0, -2.0 * i / headDim));
            }
            frequency.fill(frequencies);
            // A token of each sequence, the last of those kept; the pages lie in reverse.
            std::vector<std::int32_t> positions, sequences, table, first, lengths;
            for (std::int64_t i = 0; i < tokens; ++i) {
                const auto length = static_cast<std::int32_t>(1 + i * 5 % (kPageTokens * kColumns));
                positions.push_back(static_cast<std::int32_t>(900 + 13 * i));
                sequences.push_back(static_cast<std::int32_t>(i));
                lengths.push_back(length);
                first.push_back(positions.back() + 1 - length);
                for (std::int64_t column = 0; column < kColumns; ++column) {
                    table.push_back(static_cast<std::int32_t>(tokens * kColumns - 1 - i * kColumns - column));
                }
            }
            const auto ints = [](const std::vector<std::int32_t>& values, const Shape& shape) {
                TestTensor tensor(DType::I32, shape);
                tensor.fillInts(values);
                return tensor;
            };
            const TestTensor positionsOf = ints(positions, Shape{tokens});
            const TestTensor sequence = ints(sequences, Shape{tokens});
            const TestTensor tableOf = ints(table, Shape{tokens, kColumns});
            const TestTensor firstOf = ints(first, Shape{tokens});
            const TestTensor lengthsOf = ints(lengths, Shape{tokens});
            const Shape pool{tokens * kColumns, kPageTokens, kKvHeads, headDim};
            TestTensor keys = random(size.type, pool);
            TestTensor values = random(size.type, pool);
            TestTensor outQ(size.type, Shape{tokens, kHeads, headDim});
            TestTensor outK(size.type, Shape{tokens, kKvHeads, headDim});
            TestTensor outV(size.type, Shape{tokens, kKvHeads, headDim});
            testing::expectSameOnGpu(
                *testing::gpu(),
                [&](auto&& at) {
                    QkvProject op;
                    op.x = at(x);
                    op.norm = {at(norm), 1e-5F, RmsNormOrder::ScaleThenCast};
                    op.q = linear(at, q, bias);
                    op.k = linear(at, k, none_);
                    op.v = linear(at, v, none_);
                    op.positions = at(positionsOf);
                    op.inverseFrequency = at(frequency);
                    op.ropeScale = 1.3F;
                    op.sequence = at(sequence);
                    op.cache = {at(keys), at(values), at(tableOf), at(firstOf), at(lengthsOf), 0, ring};
                    op.outQ = at(outQ);
                    op.outK = at(outK);
                    op.outV = at(outV);
                    return op;
                },
                {&outQ, &outK, &outV, &keys, &values}, tolerance(size.type));
        }
    }
}

TEST_F(Decode, DenseMlp) {
    VITRINE_NEEDS_GPU();
    for (const Sizes& size : kSizes) {
        for (const Activation activation : {Activation::Silu, Activation::GeluTanh}) {
            const TestTensor x = random(size.type, Shape{size.tokens, size.dim});
            const TestTensor norm = random(size.type, Shape{size.dim});
            const TestTensor gate = matrix(size.type, 200, size.dim);
            const TestTensor up = matrix(size.type, 200, size.dim);
            const TestTensor down = matrix(size.type, size.dim, 200);
            TestTensor out(size.type, Shape{size.tokens, size.dim});
            testing::expectSameOnGpu(
                *testing::gpu(),
                [&](auto&& at) {
                    DenseMlp op;
                    op.x = at(x);
                    op.norm = {at(norm), 1e-6F, RmsNormOrder::CastThenScale};
                    op.gate = linear(at, gate, none_);
                    op.up = linear(at, up, none_);
                    op.down = linear(at, down, none_);
                    op.activation = activation;
                    op.out = at(out);
                    return op;
                },
                {&out}, tolerance(size.type));
        }
    }
}

TEST_F(Decode, RouteInBothOrders) {
    VITRINE_NEEDS_GPU();
    for (const Sizes& size : kSizes) {
        for (const RouterOrder order : {RouterOrder::TopKThenSoftmax, RouterOrder::SoftmaxThenTopK}) {
            const std::int64_t experts = order == RouterOrder::TopKThenSoftmax ? 32 : 13;
            const TestTensor x = random(size.type, Shape{size.tokens, size.dim});
            const TestTensor norm = random(size.type, Shape{size.dim}, 0.3);
            // Far apart, so that rounding does not change the choice.
            const TestTensor router = random(size.type, Shape{experts, size.dim}, 3);
            const TestTensor bias = random(size.type, Shape{experts});
            TestTensor out(size.type, Shape{size.tokens, size.dim});
            TestTensor ids(DType::I32, Shape{size.tokens, 4});
            TestTensor weights(DType::F32, Shape{size.tokens, 4});
            testing::expectSameOnGpu(
                *testing::gpu(),
                [&](auto&& at) {
                    Route op;
                    op.x = at(x);
                    op.norm = {at(norm), 1e-5F, RmsNormOrder::ScaleThenCast};
                    op.router = linear(at, router, bias);
                    op.order = order;
                    op.normalize = true;
                    op.normed = at(out);
                    op.ids = at(ids);
                    op.weights = at(weights);
                    return op;
                },
                // Rounding of BF16 may swap experts that are nearly equal.
                size.type == DType::BF16 ? std::vector<TestTensor*>{&out}
                                         : std::vector<TestTensor*>{&out, &ids, &weights},
                tolerance(size.type));
            for (const double id : ids.values()) {
                EXPECT_TRUE(id >= 0 && id < static_cast<double>(experts));
            }
        }
    }
}

struct ExpertCase {
    std::int64_t tokens, dim, width, experts;
    int k, used; ///< experts that tokens choose among
    Activation activation;
    GateLayout layout;
    DType type = DType::BF16;
};

/// An ExpertMlp of MXFP4 experts over random data.
struct ExpertScene {
    ExpertScene(const ExpertCase& c, std::mt19937& engine) : item(c) {
        const auto random = [&](const Shape& shape) {
            TestTensor tensor(c.type, shape);
            tensor.fillNormal(engine, 1);
            return tensor;
        };
        const auto stack = [&](std::int64_t rows, std::int64_t in, TestTensor& blocks, TestTensor& scales) {
            blocks = TestTensor(DType::U8, Shape{c.experts, rows, in / 32, 16});
            scales = TestTensor(DType::U8, Shape{c.experts, rows, in / 32});
            blocks.fillBytes(engine, 0, 255);
            scales.fillBytes(engine, 119, 124);
        };
        stack(2 * c.width, c.dim, upBlocks, upScales);
        stack(c.dim, c.width, downBlocks, downScales);
        upBias = random(Shape{c.experts, 2 * c.width});
        downBias = random(Shape{c.experts, c.dim});
        x = random(Shape{c.tokens, c.dim});
        out = random(Shape{c.tokens, c.dim});
        std::vector<std::int32_t> chosen;
        std::vector<std::int32_t> order(static_cast<std::size_t>(c.used));
        for (int i = 0; i < c.used; ++i) {
            order[static_cast<std::size_t>(i)] = i;
        }
        std::vector<double> shares;
        for (std::int64_t token = 0; token < c.tokens; ++token) {
            std::shuffle(order.begin(), order.end(), engine);
            chosen.insert(chosen.end(), order.begin(), order.begin() + c.k);
            shares.insert(shares.end(), static_cast<std::size_t>(c.k), 1.0 / c.k);
        }
        ids = TestTensor(DType::I32, Shape{c.tokens, c.k});
        ids.fillInts(chosen);
        weights = TestTensor(DType::F32, Shape{c.tokens, c.k});
        weights.fill(shares);
    }

    template <class At> ExpertMlp operator()(At&& at) const {
        ExpertMlp op;
        op.x = at(x);
        op.ids = at(ids);
        op.weights = at(weights);
        op.gateUp.weight = packedWeight(WeightFormat::Mxfp4, at(upBlocks), at(upScales));
        op.gateUp.bias = at(upBias);
        op.down.weight = packedWeight(WeightFormat::Mxfp4, at(downBlocks), at(downScales));
        op.down.bias = at(downBias);
        op.activation = item.activation;
        op.layout = item.layout;
        op.residual = at(out);
        op.out = at(out);
        return op;
    }

    ExpertCase item;
    TestTensor upBlocks, upScales, downBlocks, downScales, upBias, downBias, x, out, ids, weights;
};

TEST_F(Decode, ExpertsOfFewTokens) {
    VITRINE_NEEDS_GPU();
    const Activation clamped = Activation::ClampedSwiglu, silu = Activation::Silu;
    const GateLayout mixed = GateLayout::Interleaved, halves = GateLayout::Halves;
    for (const ExpertCase& c : std::vector<ExpertCase>{{1, 64, 64, 4, 2, 4, clamped, mixed},
                                                       {1, 2880, 320, 32, 4, 32, clamped, mixed},
                                                       {1, 256, 192, 16, 8, 16, silu, halves},
                                                       {5, 128, 64, 8, 2, 8, silu, halves},
                                                       {16, 320, 128, 32, 4, 32, clamped, mixed},
                                                       {40, 128, 128, 8, 2, 3, clamped, mixed},
                                                       {48, 2880, 320, 32, 4, 32, clamped, mixed},
                                                       {64, 192, 64, 16, 8, 16, silu, halves},
                                                       {64, 512, 448, 8, 2, 3, silu, halves},
                                                       {100, 2880, 320, 32, 4, 32, clamped, mixed},
                                                       {128, 128, 192, 8, 4, 5, silu, halves},
                                                       {65, 128, 64, 8, 8, 8, clamped, mixed},
                                                       {129, 128, 64, 8, 2, 8, clamped, mixed},
                                                       {3, 96, 64, 8, 2, 8, clamped, mixed},
                                                       {2, 128, 64, 8, 2, 8, clamped, mixed, DType::F32}}) {
        ExpertScene scene(c, engine_);
        testing::expectSameOnGpu(
            *testing::gpu(), [&](auto&& at) { return scene(at); }, {&scene.out}, tolerance(c.type));
    }
}

TEST_F(Decode, ExpertsOfATokenDoNotDependOnTheOthers) {
    VITRINE_NEEDS_GPU();
    CudaContext& context = *testing::gpu();
    constexpr std::int64_t kDim = 2880;
    ExpertScene scene({128, kDim, 448, 8, 4, 8, Activation::ClampedSwiglu, GateLayout::Interleaved}, engine_);
    TestTensor result(DType::BF16, Shape{128, kDim});
    // The first two tokens beside many, 30 and no others: two tiles, several items of one tile, one item.
    const auto run = [&](std::int64_t tokens) {
        testing::OnDevice device(context);
        ExpertMlp op = scene(device);
        op.out = device(result);
        for (TensorView* view : {&op.x, &op.ids, &op.weights, &op.residual, &op.out}) {
            *view = sliceRows(*view, 0, tokens);
        }
        device.run(op);
        device.download(result);
        const std::vector<double> all = result.values();
        return std::vector<double>(all.begin(), all.begin() + 2 * kDim);
    };
    const std::vector<double> alone = run(2);
    EXPECT_EQ(run(32), alone);
    EXPECT_EQ(run(64), alone);
    EXPECT_EQ(run(128), alone);
}

} // namespace
} // namespace vitrine::kernels
