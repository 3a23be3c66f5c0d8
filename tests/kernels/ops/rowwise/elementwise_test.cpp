// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/elementwise.h"

#include "kernels/ops/rowwise/embedding.h"
#include "kernels/ops/rowwise/gated_activation.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(Add, StridesAndTypes) {
    std::mt19937 random(1);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
        TestTensor a(type, Shape{7, 1025}, 1100);
        TestTensor b(DType::F32, Shape{7, 1025});
        TestTensor out(type, Shape{7, 1025}, 1030);
        a.fillNormal(random);
        b.fillNormal(random);
        std::vector<double> expected = a.values();
        const std::vector<double> addend = b.values();
        for (std::size_t i = 0; i < expected.size(); ++i) {
            expected[i] += addend[i];
        }
        testing::runOp(context, Add{a, b, out});
        testing::expectNear(out, expected, 1e-7, 1);
        testing::runOp(context, Add{a, b, a});
        EXPECT_EQ(a.values(), out.values());
    }
}

TEST(SoftCap, AgainstDouble) {
    std::mt19937 random(2);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::BF16}) {
        TestTensor x(type, Shape{3, 777});
        x.fillNormal(random, 50);
        std::vector<double> expected = x.values();
        for (double& value : expected) {
            value = 30 * std::tanh(value / 30);
        }
        testing::runOp(context, SoftCap{x, 30});
        testing::expectNear(x, expected, 1e-5, 1.01);
    }
}

TEST(Cast, RoundsToNearestEvenOnce) {
    CpuContext context(1);
    TestTensor x(DType::F64, Shape{6});
    // Halfway cases, and one that a first rounding to float32 would turn into a halfway case.
    x.fill({1 + 0x1p-8, 1 + 3 * 0x1p-8, 1 + 0x1p-8 + 0x1p-40, -1 - 0x1p-8, 1e300, 0});
    TestTensor out(DType::BF16, Shape{6});
    testing::runOp(context, Cast{x, out});
    const std::vector<double> values = out.values();
    EXPECT_EQ(values[0], 1);
    EXPECT_EQ(values[1], 1 + 0x1p-6);
    EXPECT_EQ(values[2], 1 + 0x1p-7);
    EXPECT_EQ(values[3], -1);
    EXPECT_EQ(values[4], std::numeric_limits<double>::infinity());
    EXPECT_EQ(values[5], 0);
}

TEST(SetZero, EveryByteAndNoOther) {
    std::mt19937 random(6);
    CpuContext context(2);
    for (const std::int64_t n : {0, 1, 1000003}) {
        TestTensor bytes(DType::U8, Shape{n}), floats(DType::BF16, Shape{3, n});
        bytes.fillBytes(random, 1, 255);
        floats.fillNormal(random);
        testing::runOp(context, SetZero{bytes});
        testing::runOp(context, SetZero{floats});
        EXPECT_EQ(bytes.values(), std::vector<double>(static_cast<std::size_t>(n), 0));
        EXPECT_EQ(floats.values(), std::vector<double>(static_cast<std::size_t>(3 * n), 0));
        EXPECT_TRUE(bytes.guardsIntact() && floats.guardsIntact());
        EXPECT_EQ(cost(SetZero{floats}, DeviceTraits{}).bytesWritten, static_cast<std::uint64_t>(6 * n));
    }
    TestTensor apart(DType::F32, Shape{3, 4}, 5);
    testing::expectCheckNames(SetZero{apart}, "out");
}

TEST(Floats, EveryHalfSurvivesTheRoundTrip) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const float value = f16ToFloat(static_cast<std::uint16_t>(bits));
        if (std::isnan(value)) {
            EXPECT_TRUE(std::isnan(f16ToFloat(floatToF16(value))));
        } else {
            EXPECT_EQ(floatToF16(value), bits);
        }
    }
    EXPECT_EQ(f16ToFloat(0x0001), 0x1p-24F);
    EXPECT_EQ(f16ToFloat(0x7BFF), 65504.0F);
    EXPECT_EQ(floatToF16(65519.9F), 0x7BFF);
    EXPECT_EQ(floatToF16(65520.0F), 0x7C00);
    EXPECT_EQ(floatToF16(0x1p-25F), 0);
    EXPECT_EQ(floatToF16(0x1.8p-25F), 1);
}

TEST(Floats, ExponentialStaysWithinTwoSteps) {
    for (int step = 0; step < 12773; ++step) {
        const float x = -87 + 0.0137F * static_cast<float>(step);
        const double exact = std::exp(static_cast<double>(x));
        EXPECT_NEAR(static_cast<double>(fastExp(x)) / exact, 1, 2.5e-7) << x;
    }
    EXPECT_EQ(fastExp(-1000), 0);
    EXPECT_EQ(fastExp(-std::numeric_limits<float>::infinity()), 0);
    EXPECT_EQ(fastExp(0), 1);
    EXPECT_TRUE(std::isnan(fastExp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Embedding, PicksScaledRows) {
    std::mt19937 random(3);
    CpuContext context(2);
    TestTensor table(DType::BF16, Shape{50, 600});
    TestTensor ids(DType::I32, Shape{4});
    TestTensor out(DType::F32, Shape{4, 600}, 640);
    table.fillNormal(random);
    ids.fillInts({49, 0, 7, 7});
    testing::runOp(context, Embedding{ids, table, out, 1.5F});
    const std::vector<double> rows = table.values();
    std::vector<double> expected;
    for (const std::size_t id : {49, 0, 7, 7}) {
        for (std::size_t i = 0; i < 600; ++i) {
            expected.push_back(rows[id * 600 + i] * 1.5);
        }
    }
    testing::expectNear(out, expected, 0, 0);
    EXPECT_EQ(cost(Embedding{ids, table, out, 1}, DeviceTraits{}).bytesRead, 16U + 4 * 600 * 2);
}

TEST(Embedding, IdsOutsideTheTableAreBadInput) {
    CpuContext context(2);
    TestTensor table(DType::BF16, Shape{5, 8});
    TestTensor ids(DType::I32, Shape{1});
    TestTensor out(DType::F32, Shape{1, 8});
    for (const int id : {5, -1}) {
        ids.fillInts({id});
        EXPECT_THROW(testing::runOp(context, Embedding{ids, table, out, 1}), base::BadInput);
    }
}

double activated(Activation activation, double gate, double up) {
    switch (activation) {
    case Activation::Silu:
        return gate / (1 + std::exp(-gate)) * up;
    case Activation::GeluTanh:
        return 0.5 * gate * (1 + std::tanh(std::sqrt(2 / M_PI) * (gate + 0.044715 * gate * gate * gate))) * up;
    case Activation::ClampedSwiglu:
        break;
    }
    const double g = std::min(gate, 7.0);
    const double u = std::max(-7.0, std::min(up, 7.0));
    return (u + 1) * g / (1 + std::exp(-static_cast<double>(1.702F) * g));
}

TEST(GatedActivation, FormsAndLayoutsAgainstDouble) {
    std::mt19937 random(4);
    CpuContext context(2);
    for (const Activation activation : {Activation::Silu, Activation::GeluTanh, Activation::ClampedSwiglu}) {
        for (const GateLayout layout : {GateLayout::Halves, GateLayout::Interleaved}) {
            for (const DType type : {DType::F32, DType::BF16, DType::F64}) {
                const std::int64_t n = 1029;
                TestTensor both(type, Shape{5, 2 * n}, 2 * n + 6);
                TestTensor out(type, Shape{5, n});
                both.fillNormal(random, 8);
                testing::runOp(context, GatedActivation{both, out, activation, layout});
                const std::vector<double> values = both.values();
                std::vector<double> expected;
                for (std::int64_t row = 0; row < 5; ++row) {
                    for (std::int64_t i = 0; i < n; ++i) {
                        const bool halves = layout == GateLayout::Halves;
                        const auto gateAt = static_cast<std::size_t>(row * 2 * n + (halves ? i : 2 * i));
                        const auto upAt = static_cast<std::size_t>(row * 2 * n + (halves ? n + i : 2 * i + 1));
                        expected.push_back(activated(activation, values[gateAt], values[upAt]));
                    }
                }
                testing::expectNear(out, expected, type == DType::F64 ? 1e-12 : 2e-5, type == DType::F64 ? 64 : 2);
            }
        }
    }
}

TEST(GatedActivation, CheckNamesTheField) {
    TestTensor both(DType::F32, Shape{2, 6});
    TestTensor out(DType::F32, Shape{2, 3});
    GatedActivation op{both, out};
    check(op);
    op.out.shape = Shape{2, 2};
    testing::expectCheckNames(op, "out");
    op = GatedActivation{both, both};
    op.out.shape = Shape{2, 3};
    testing::expectCheckNames(op, "out");
}

TEST(ScaleRows, RowsTimesTheirWeights) {
    std::mt19937 random(21);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::BF16, DType::F64}) {
        for (const auto& [rows, n] : {std::pair{1, 1}, {5, 700}, {0, 3}}) {
            TestTensor x(type, Shape{rows, n}, n + 3), weights(DType::F32, Shape{rows}), out(type, Shape{rows, n});
            x.fillNormal(random);
            weights.fillNormal(random);
            std::vector<double> expected = x.values();
            const std::vector<double> factors = weights.values();
            for (std::size_t i = 0; i < expected.size(); ++i) {
                expected[i] *= factors[i / static_cast<std::size_t>(n)];
            }
            testing::runOp(context, ScaleRows{x, weights, out});
            testing::expectNear(out, expected, 1e-12);
            testing::runOp(context, ScaleRows{x, weights, x});
            EXPECT_EQ(x.values(), out.values());
        }
    }
}

TEST(ScaleRows, CheckNamesTheField) {
    TestTensor x(DType::F32, Shape{3, 8}), weights(DType::F32, Shape{3});
    ScaleRows op{x, weights, x};
    check(op);
    op.weights.shape = Shape{2};
    testing::expectCheckNames(op, "weights");
    op = ScaleRows{x, weights, x};
    op.out.shape = Shape{3, 7};
    testing::expectCheckNames(op, "out");
}

} // namespace
} // namespace vitrine::kernels
