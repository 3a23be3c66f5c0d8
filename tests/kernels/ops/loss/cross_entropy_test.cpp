// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/cross_entropy.h"

#include <algorithm>

#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

struct LossReference {
    std::vector<double> losses, gradients;
};

LossReference lossReference(const std::vector<double>& logits, const std::vector<std::int32_t>& targets, double cap,
                            double scale) {
    LossReference out;
    const std::size_t vocab = targets.empty() ? 0 : logits.size() / targets.size();
    for (std::size_t row = 0; row < targets.size(); ++row) {
        std::vector<double> y, slopes;
        for (std::size_t i = 0; i < vocab; ++i) {
            const double x = logits[row * vocab + i];
            const double tangent = cap > 0 ? std::tanh(x / cap) : 0;
            y.push_back(cap > 0 ? cap * tangent : x);
            slopes.push_back(1 - tangent * tangent);
        }
        const double best = *std::max_element(y.begin(), y.end());
        double sum = 0;
        for (const double value : y) {
            sum += std::exp(value - best);
        }
        const bool ignored = targets[row] < 0;
        const auto target = static_cast<std::size_t>(ignored ? 0 : targets[row]);
        out.losses.push_back(ignored ? 0 : std::log(sum) + best - y[target]);
        for (std::size_t i = 0; i < vocab; ++i) {
            const double share = std::exp(y[i] - best) / sum - (i == target ? 1 : 0);
            out.gradients.push_back(ignored ? 0 : scale * share * slopes[i]);
        }
    }
    return out;
}

/// Every fourth row is ignored; the first and the last id are among the targets.
std::vector<std::int32_t> makeTargets(std::mt19937& random, std::int64_t rows, std::int64_t vocab) {
    std::uniform_int_distribution<std::int32_t> uniform(0, static_cast<std::int32_t>(vocab - 1));
    std::vector<std::int32_t> targets;
    for (std::int64_t row = 0; row < rows; ++row) {
        targets.push_back(row % 4 == 3 ? -100 : uniform(random));
    }
    targets[0] = static_cast<std::int32_t>(vocab - 1);
    if (rows > 1) {
        targets[1] = 0;
    }
    return targets;
}

TEST(CrossEntropy, AgainstDouble) {
    std::mt19937 random(1);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
        for (const float cap : {0.0F, 7.5F}) {
            for (const auto& [rows, vocab] : {std::pair{1, 1}, {5, 7}, {6, 513}, {4, 4099}}) {
                SCOPED_TRACE(::testing::Message()
                             << dtypeName(type) << " cap " << cap << ", " << rows << ", " << vocab);
                TestTensor logits(type, Shape{rows, vocab}, vocab + 3);
                TestTensor targets(DType::I32, Shape{rows});
                TestTensor losses(type == DType::F64 ? DType::F64 : DType::F32, Shape{rows});
                TestTensor gradients(type, Shape{rows, vocab}, vocab + 5);
                logits.fillNormal(random, 6);
                const std::vector<std::int32_t> ids = makeTargets(random, rows, vocab);
                targets.fillInts(ids);
                testing::runOp(context, CrossEntropy{logits, targets, cap, losses, gradients, 0.25F, {}});
                const LossReference expected = lossReference(logits.values(), ids, static_cast<double>(cap), 0.25);
                const bool wide = type == DType::F64;
                testing::expectNear(losses, expected.losses, wide ? 1e-12 : 4e-6, 2);
                const double smallest = type == DType::F16 ? 0x1p-25 : 0; // half a step of its subnormals
                testing::expectNear(gradients, expected.gradients, wide ? 1e-14 : 3e-7 + smallest, wide ? 4 : 1.01);
                TestTensor again(losses.view().dtype, Shape{rows});
                testing::runOp(context, CrossEntropy{logits, targets, cap, again, {}, 0.25F, {}});
                EXPECT_EQ(again.values(), losses.values()) << "losses depend on whether there is a gradient";
            }
        }
    }
}

TEST(CrossEntropy, GradientIsTheSlopeOfTheLoss) {
    std::mt19937 random(2);
    CpuContext context(1);
    const std::int64_t rows = 5, vocab = 11;
    for (const float cap : {0.0F, 3.0F}) {
        TestTensor logits(DType::F64, Shape{rows, vocab});
        TestTensor targets(DType::I32, Shape{rows});
        TestTensor losses(DType::F64, Shape{rows}), gradients(DType::F64, Shape{rows, vocab});
        TestTensor sum(DType::F64, Shape{1});
        logits.fillNormal(random, 2);
        targets.fillInts(makeTargets(random, rows, vocab));
        testing::runOp(context, CrossEntropy{logits, targets, cap, losses, gradients, 1, {}});
        const std::vector<double> x = logits.values(), slopes = gradients.values();
        const auto lossAt = [&](std::size_t i, double move) {
            std::vector<double> moved = x;
            moved[i] += move;
            logits.fill(moved);
            testing::runOp(context, CrossEntropy{logits, targets, cap, losses, {}, 1, {}});
            testing::runOp(context, SumLosses{losses, sum, false});
            return sum.values()[0];
        };
        const double step = 1e-5;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double slope = (lossAt(i, step) - lossAt(i, -step)) / (2 * step);
            EXPECT_NEAR(slopes[i], slope, 1e-6 * std::max(1e-2, std::fabs(slope))) << i;
        }
    }
}

TEST(CrossEntropy, GradientTakesThePlaceOfTheLogits) {
    std::mt19937 random(3);
    CpuContext context(2);
    const std::int64_t rows = 5, vocab = 1543, stride = 1600;
    for (const auto& [type, narrow] : {std::pair{DType::F32, DType::F32},
                                       {DType::F32, DType::BF16},
                                       {DType::BF16, DType::BF16},
                                       {DType::F64, DType::BF16}}) {
        TestTensor logits(type, Shape{rows, vocab}, stride), gradients(narrow, Shape{rows, vocab});
        TestTensor targets(DType::I32, Shape{rows});
        TestTensor losses(DType::F32, Shape{rows}), again(DType::F32, Shape{rows});
        logits.fillNormal(random, 3);
        targets.fillInts(makeTargets(random, rows, vocab));
        testing::runOp(context, CrossEntropy{logits, targets, 0, losses, gradients, 0.5F, {}});
        TensorView place = logits;
        place.dtype = narrow;
        place.strides[0] = stride * bitsOf(type) / bitsOf(narrow);
        testing::runOp(context, CrossEntropy{logits, targets, 0, again, place, 0.5F, {}});
        EXPECT_EQ(again.values(), losses.values());
        EXPECT_TRUE(logits.guardsIntact());
        const std::vector<double> expected = gradients.values();
        for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t i = 0; i < vocab; ++i) {
                double value = 0;
                loadFloats(narrow, place.data, row * place.stride0() + i, 1, &value);
                ASSERT_EQ(value, expected[static_cast<std::size_t>(row * vocab + i)]) << row << ", " << i;
            }
        }
    }
}

TEST(CrossEntropy, NaNShowsInItsRowOnly) {
    CpuContext context(1);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    TestTensor logits(DType::F32, Shape{3, 3}), targets(DType::I32, Shape{3});
    TestTensor losses(DType::F32, Shape{3}), gradients(DType::F32, Shape{3, 3});
    logits.fill({1, nan, 2, 0, 0, 0, nan, 1, 1});
    targets.fillInts({0, 1, -1});
    testing::runOp(context, CrossEntropy{logits, targets, 0, losses, gradients, 1, {}});
    EXPECT_TRUE(std::isnan(losses.values()[0]));
    EXPECT_NEAR(losses.values()[1], std::log(3.0), 1e-6);
    EXPECT_EQ(losses.values()[2], 0) << "an ignored row is not looked at";
    EXPECT_TRUE(std::isnan(gradients.values()[2]));
    EXPECT_EQ(gradients.values()[8], 0);
}

TEST(CrossEntropy, MaskedIdsHaveNoShare) {
    CpuContext context(1);
    const double nothing = -std::numeric_limits<double>::infinity();
    TestTensor logits(DType::F32, Shape{1, 4}), targets(DType::I32, Shape{1});
    TestTensor losses(DType::F32, Shape{1}), gradients(DType::F32, Shape{1, 4});
    logits.fill({nothing, 5, 5, nothing});
    targets.fillInts({1});
    testing::runOp(context, CrossEntropy{logits, targets, 0, losses, gradients, 1, {}});
    testing::expectNear(losses, {std::log(2.0)}, 1e-6);
    testing::expectNear(gradients, {0, -0.5, 0.5, 0}, 1e-6);
}

TEST(CrossEntropy, ThreadsDoNotChangeResults) {
    std::mt19937 random(4);
    TestTensor logits(DType::BF16, Shape{37, 3000}), targets(DType::I32, Shape{37});
    logits.fillNormal(random, 5);
    targets.fillInts(makeTargets(random, 37, 3000));
    std::vector<double> first;
    for (const int threads : {1, 2, 5}) {
        CpuContext context(threads);
        TestTensor losses(DType::F32, Shape{37}), gradients(DType::BF16, Shape{37, 3000});
        testing::runOp(context, CrossEntropy{logits, targets, 30, losses, gradients, 1, {}});
        std::vector<double> all = losses.values();
        const std::vector<double> rest = gradients.values();
        all.insert(all.end(), rest.begin(), rest.end());
        first = first.empty() ? all : first;
        EXPECT_EQ(all, first);
    }
}

TEST(CrossEntropy, NoRowsAndWrongTargets) {
    CpuContext context(1);
    TestTensor none(DType::F32, Shape{0, 8}), noTargets(DType::I32, Shape{0}), noLosses(DType::F32, Shape{0});
    testing::runOp(context, CrossEntropy{none, noTargets, 0, noLosses, none, 1, {}});
    TestTensor logits(DType::F32, Shape{1, 8}), targets(DType::I32, Shape{1}), losses(DType::F32, Shape{1});
    targets.fillInts({8});
    EXPECT_THROW(testing::runOp(context, CrossEntropy{logits, targets, 0, losses, {}, 1, {}}), base::BadInput);
}

TEST(CrossEntropy, CheckNamesTheField) {
    TestTensor logits(DType::F32, Shape{3, 8}), targets(DType::I32, Shape{3}), losses(DType::F32, Shape{3});
    TestTensor gradients(DType::BF16, Shape{3, 8});
    const CrossEntropy good{logits, targets, 0, losses, gradients, 1, {}};
    check(good);
    CrossEntropy op = good;
    op.targets.shape = Shape{2};
    testing::expectCheckNames(op, "targets");
    op = good;
    op.targets.dtype = DType::I64;
    testing::expectCheckNames(op, "targets");
    op = good;
    op.losses.dtype = DType::BF16;
    testing::expectCheckNames(op, "losses");
    op = good;
    op.softCap = -1;
    testing::expectCheckNames(op, "softCap");
    op = good;
    op.gradLogits.shape = Shape{3, 7};
    testing::expectCheckNames(op, "gradLogits");
    op = good;
    op.gradLogits.data = logits.view().data; // narrower rows that begin inside those of the logits
    testing::expectCheckNames(op, "gradLogits");
    op.gradLogits.strides[0] = 16;
    check(op);
    op.gradLogits.data = logits.view().as<float>() + 8;
    testing::expectCheckNames(op, "gradLogits");
    op = good;
    op.gradLogits = op.logits;
    op.gradLogits.dtype = DType::F64;
    testing::expectCheckNames(op, "gradLogits");
}

TEST(CrossEntropy, CostIsWhatItMoves) {
    TestTensor logits(DType::F32, Shape{3, 8}), targets(DType::I32, Shape{3}), losses(DType::F32, Shape{3});
    TestTensor gradients(DType::BF16, Shape{3, 8});
    const Cost whole = cost(CrossEntropy{logits, targets, 0, losses, gradients, 1, {}}, DeviceTraits{});
    EXPECT_EQ(whole.bytesRead, 3U * (8 * 4 + 4));
    EXPECT_EQ(whole.bytesWritten, 3U * (8 * 2 + 4));
    EXPECT_EQ(cost(CrossEntropy{logits, targets, 0, losses, {}, 1, {}}, DeviceTraits{}).bytesWritten, 3U * 4);
}

TEST(SumLosses, InDoubleAndOnTop) {
    std::mt19937 random(5);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::F64}) {
        TestTensor losses(type, Shape{3001}), out(type, Shape{1});
        losses.fillNormal(random, 3);
        double sum = 0;
        for (const double loss : losses.values()) {
            sum += loss;
        }
        testing::runOp(context, SumLosses{losses, out, false});
        testing::expectNear(out, {sum}, 1e-12);
        testing::runOp(context, SumLosses{losses, out, true});
        testing::expectNear(out, {2 * sum}, 1e-12, 2);
    }
    TestTensor none(DType::F32, Shape{0}), out(DType::F32, Shape{1});
    testing::runOp(context, SumLosses{none, out, false});
    EXPECT_EQ(out.values()[0], 0);
    SumLosses op{none, out, false};
    op.out.shape = Shape{2};
    testing::expectCheckNames(op, "out");
    op = SumLosses{none, out, false};
    op.losses.dtype = DType::BF16;
    testing::expectCheckNames(op, "losses");
}

} // namespace
} // namespace vitrine::kernels
