// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/gated_activation.h"
#include "tests/kernels/ops/common/gradient_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

constexpr Activation kActivations[] = {Activation::Silu, Activation::GeluTanh, Activation::ClampedSwiglu};
constexpr GateLayout kLayouts[] = {GateLayout::Halves, GateLayout::Interleaved};

/// All tensors of one call.
struct GatedScene {
    TestTensor gateUp, out, gradOut, weights, dots, gradGateUp;

    GatedScene(DType type, DType sums, std::int64_t rows, std::int64_t n, std::int64_t extra = 0)
        : gateUp(type, Shape{rows, 2 * n}, 2 * n + extra), out(type, Shape{rows, n}, n + extra),
          gradOut(type, Shape{rows, n}, n + 2 * extra), weights(DType::F32, Shape{rows}), dots(sums, Shape{rows}),
          gradGateUp(type, Shape{rows, 2 * n}, 2 * n + extra) {}

    void fill(std::mt19937& random) {
        gateUp.fillNormal(random, 2);
        gradOut.fillNormal(random);
        weights.fillNormal(random);
    }
    /// A limit that cuts some values.
    GatedActivationBackward op(Activation activation, GateLayout layout) const {
        return {{gateUp, out, activation, layout, 1.702F, 2.5F}, gradOut, weights, dots, gradGateUp};
    }
};

TEST(GatedActivationBackward, AgainstDifferences) {
    std::mt19937 random(1);
    CpuContext context(2);
    for (const Activation activation : kActivations) {
        for (const GateLayout layout : kLayouts) {
            GatedScene scene(DType::F64, DType::F64, 4, 19);
            scene.fill(random);
            const GatedActivationBackward op = scene.op(activation, layout);
            testing::runOp(context, op);
            const std::vector<double> gradients = scene.gradGateUp.values(), dots = scene.dots.values();
            const std::vector<double> activated = scene.out.values(), grads = scene.gradOut.values();
            const std::vector<double> weights = scene.weights.values();
            const auto rowDot = [&](const std::vector<double>& outs, std::size_t row) {
                double sum = 0;
                for (std::size_t i = row * 19; i < (row + 1) * 19; ++i) {
                    sum += outs[i] * grads[i];
                }
                return sum;
            };
            const auto loss = [&] {
                testing::runOp(context, op.forward);
                const std::vector<double> outs = scene.out.values();
                double sum = 0;
                for (std::size_t row = 0; row < 4; ++row) {
                    sum += weights[row] * rowDot(outs, row);
                }
                return sum;
            };
            testing::expectGradient(scene.gateUp, gradients, loss);
            loss();
            testing::expectClose(scene.out, activated, 1e-14);
            for (std::size_t row = 0; row < 4; ++row) {
                EXPECT_NEAR(dots[row], rowDot(activated, row), 1e-12);
            }
        }
    }
}

TEST(GatedActivationBackward, NarrowAgainstDouble) {
    std::mt19937 random(2);
    CpuContext context(2);
    for (const Activation activation : kActivations) {
        for (const GateLayout layout : kLayouts) {
            for (const DType type : {DType::F32, DType::BF16}) {
                for (const auto& [rows, n] : {std::pair{3, 700}, {40, 9}, {0, 8}}) {
                    GatedScene scene(type, DType::F32, rows, n, 5), wide(DType::F64, DType::F64, rows, n);
                    scene.fill(random);
                    wide.gateUp.fill(scene.gateUp.values());
                    wide.gradOut.fill(scene.gradOut.values());
                    wide.weights.fill(scene.weights.values());
                    testing::runOp(context, scene.op(activation, layout));
                    testing::runOp(context, wide.op(activation, layout));
                    testing::expectClose(scene.gradGateUp, wide.gradGateUp.values(), 2e-6);
                    testing::expectClose(scene.out, wide.out.values(), 2e-6);
                    testing::expectClose(scene.dots, wide.dots.values(), 4e-6);
                }
            }
        }
    }
}

TEST(GatedActivationBackward, LimitsPassTheirGradientAndWhatIsBeyondDoesNot) {
    CpuContext context(1);
    TestTensor gateUp(DType::F64, Shape{1, 8}), gradOut(DType::F64, Shape{1, 4}), grads(DType::F64, Shape{1, 8});
    gateUp.fill({7, 7.5, -9, 1, 7, -7, 7.5, -7.5});
    gradOut.fill({1, 1, 1, 1});
    GatedActivationBackward op{{gateUp, {}, Activation::ClampedSwiglu, GateLayout::Halves}, gradOut, {}, {}, grads};
    testing::runOp(context, op);
    const std::vector<double> values = grads.values();
    EXPECT_NE(values[0], 0);
    EXPECT_EQ(values[1], 0);
    EXPECT_NE(values[2], 0);
    EXPECT_NE(values[4], 0);
    EXPECT_NE(values[5], 0);
    EXPECT_EQ(values[6], 0);
    EXPECT_EQ(values[7], 0);
}

TEST(GatedActivationBackward, InPlaceAndWithoutTheOptions) {
    std::mt19937 random(3);
    CpuContext context(2);
    for (const GateLayout layout : kLayouts) {
        GatedScene scene(DType::BF16, DType::F32, 4, 520);
        scene.fill(random);
        GatedActivationBackward op = scene.op(Activation::Silu, layout);
        op.forward.out = {};
        op.rowDots = {};
        testing::runOp(context, op);
        const std::vector<double> expected = scene.gradGateUp.values();
        op.gradGateUp = scene.gateUp;
        testing::runOp(context, op);
        EXPECT_EQ(scene.gateUp.values(), expected);
    }
}

TEST(GatedActivationBackward, CheckNamesTheField) {
    const GatedScene scene(DType::F32, DType::F32, 3, 8);
    const GatedActivationBackward good = scene.op(Activation::Silu, GateLayout::Halves);
    check(good);
    GatedActivationBackward op = good;
    op.gradOut.shape = Shape{3, 7};
    testing::expectCheckNames(op, "gradOut");
    op = good;
    op.gradGateUp.data = scene.gateUp.view().as<float>() + 1;
    testing::expectCheckNames(op, "gradGateUp");
    op = good;
    op.forward.out.data = scene.gradOut.view().data;
    testing::expectCheckNames(op, "out");
    op = good;
    op.rowWeights.shape = Shape{2};
    testing::expectCheckNames(op, "rowWeights");
    op = good;
    op.rowDots.dtype = DType::BF16;
    testing::expectCheckNames(op, "rowDots");
    op = good;
    op.forward.gateUp.shape = Shape{3, 15};
    testing::expectCheckNames(op, "gateUp");
}

} // namespace
} // namespace vitrine::kernels
