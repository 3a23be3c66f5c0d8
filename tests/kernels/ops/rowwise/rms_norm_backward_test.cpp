// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rms_norm.h"
#include "tests/kernels/ops/common/gradient_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

constexpr RmsNormOrder kOrders[] = {RmsNormOrder::CastThenScale, RmsNormOrder::ScaleThenCast,
                                    RmsNormOrder::OnePlusWeight};

/// All tensors of one call.
struct Scene {
    TestTensor x, weight, gradOut, residual, gradX, gradWeight;

    Scene(DType type, DType sums, std::int64_t rows, std::int64_t dim, std::int64_t extra = 0)
        : x(type, Shape{rows, dim}, dim + extra), weight(type, Shape{dim}),
          gradOut(type, Shape{rows, dim}, dim + 2 * extra), residual(type, Shape{rows, dim}, dim + 3 * extra),
          gradX(type, Shape{rows, dim}, dim + extra), gradWeight(sums, Shape{dim}) {}

    void fill(std::mt19937& random) {
        x.fillNormal(random, 2);
        weight.fillNormal(random);
        gradOut.fillNormal(random);
        residual.fillNormal(random);
        gradWeight.fillNormal(random);
    }
    void fillFrom(const Scene& other) {
        x.fill(other.x.values());
        weight.fill(other.weight.values());
        gradOut.fill(other.gradOut.values());
        residual.fill(other.residual.values());
        gradWeight.fill(other.gradWeight.values());
    }
    RmsNormBackward op(RmsNormOrder form) const {
        return {{x, weight, {}, 1e-3F, form}, gradOut, residual, gradX, gradWeight, {}};
    }
};

std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> out;
    for (std::size_t i = 0; i < a.size(); ++i) {
        out.push_back(a[i] - b.at(i));
    }
    return out;
}

TEST(RmsNormBackward, AgainstDifferences) {
    std::mt19937 random(1);
    CpuContext context(2);
    for (const RmsNormOrder form : kOrders) {
        for (const auto& [rows, dim] : {std::pair{1, 1}, {3, 7}, {2, 33}}) {
            Scene scene(DType::F64, DType::F64, rows, dim);
            scene.fill(random);
            TestTensor out(DType::F64, Shape{rows, dim});
            const std::vector<double> before = scene.gradWeight.values();
            testing::runOp(context, scene.op(form));
            const auto loss = [&] {
                testing::runOp(context, RmsNorm{scene.x, scene.weight, out, 1e-3F, form});
                return testing::dotOf(out, scene.gradOut);
            };
            testing::expectGradient(scene.x, difference(scene.gradX.values(), scene.residual.values()), loss);
            testing::expectGradient(scene.weight, difference(scene.gradWeight.values(), before), loss);
        }
    }
}

TEST(RmsNormBackward, NarrowAgainstDouble) {
    std::mt19937 random(2);
    CpuContext context(2);
    for (const RmsNormOrder form : kOrders) {
        for (const DType type : {DType::F32, DType::BF16, DType::F16}) {
            for (const auto& [rows, dim] : {std::pair{5, 600}, {700, 33}, {2100, 8}, {0, 16}}) {
                Scene scene(type, DType::F32, rows, dim, 3), wide(DType::F64, DType::F64, rows, dim);
                scene.fill(random);
                wide.fillFrom(scene);
                testing::runOp(context, scene.op(form));
                testing::runOp(context, wide.op(form));
                testing::expectClose(scene.gradX, wide.gradX.values(), 2e-6);
                testing::expectClose(scene.gradWeight, wide.gradWeight.values(), 2e-6);
            }
        }
    }
}

TEST(RmsNormBackward, InPlaceAndWithoutTheOptions) {
    std::mt19937 random(3);
    CpuContext context(2);
    Scene scene(DType::F32, DType::F32, 9, 530);
    scene.fill(random);
    RmsNormBackward op = scene.op(RmsNormOrder::ScaleThenCast);
    testing::runOp(context, op);
    const std::vector<double> expected = scene.gradX.values();
    const std::vector<double> residual = scene.residual.values();
    op.gradWeight = {};
    op.gradX = scene.residual;
    testing::runOp(context, op);
    EXPECT_EQ(scene.residual.values(), expected) << "over the residual";
    scene.residual.fill(residual);
    op.gradX = scene.gradOut;
    testing::runOp(context, op);
    EXPECT_EQ(scene.gradOut.values(), expected) << "over gradOut";
}

TEST(RmsNormBackward, TheSameForEveryNumberOfThreads) {
    std::mt19937 random(4);
    Scene scene(DType::BF16, DType::F32, 3000, 48);
    scene.fill(random);
    const std::vector<double> before = scene.gradWeight.values();
    std::vector<double> expected;
    for (const int threads : {1, 2, 5}) {
        CpuContext context(threads);
        scene.gradWeight.fill(before);
        testing::runOp(context, scene.op(RmsNormOrder::OnePlusWeight));
        expected = expected.empty() ? scene.gradWeight.values() : expected;
        EXPECT_EQ(scene.gradWeight.values(), expected);
    }
}

TEST(RmsNormBackward, CheckNamesTheField) {
    const Scene scene(DType::F32, DType::F32, 3, 8);
    TestTensor memory(DType::U8, Shape{4096});
    RmsNormBackward good = scene.op(RmsNormOrder::CastThenScale);
    testing::expectCheckNames(good, "scratch");
    good.scratch = memory;
    check(good);
    RmsNormBackward op = good;
    op.forward.weight.shape = Shape{7};
    testing::expectCheckNames(op, "weight");
    op = good;
    op.gradOut.shape = Shape{3, 7};
    testing::expectCheckNames(op, "gradOut");
    op = good;
    op.gradX.data = scene.x.view().data;
    testing::expectCheckNames(op, "gradX");
    op = good;
    op.gradResidual.data = scene.gradX.view().as<float>() + 1;
    testing::expectCheckNames(op, "gradX");
    op = good;
    op.gradResidual.shape = Shape{2, 8};
    testing::expectCheckNames(op, "gradResidual");
    op = good;
    op.gradWeight.dtype = DType::BF16;
    testing::expectCheckNames(op, "gradWeight");
}

} // namespace
} // namespace vitrine::kernels
