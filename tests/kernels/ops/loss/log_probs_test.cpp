// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/log_probs.h"

#include <algorithm>

#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct LogProbsReference {
    std::vector<double> logProbs, entropies, lse, gradients;
};

/// One row of the reference; `slope` is the gradient of its log-probability.
void addReferenceRow(LogProbsReference& out, const std::vector<double>& x, std::int32_t target, double cap,
                     double inverse, double slope) {
    const bool ignored = target < 0;
    std::vector<double> z, slopes;
    for (const double value : x) {
        const double tangent = cap > 0 ? std::tanh(value / cap) : 0;
        z.push_back(inverse * (cap > 0 ? cap * tangent : value));
        slopes.push_back(inverse * (1 - tangent * tangent));
    }
    const double best = *std::max_element(z.begin(), z.end());
    double sum = 0, entropy = 0;
    for (const double value : z) {
        sum += std::exp(value - best);
    }
    const double lse = best + std::log(sum);
    for (std::size_t i = 0; i < z.size(); ++i) {
        const double p = std::exp(z[i] - lse);
        entropy -= p > 0 ? p * (z[i] - lse) : 0;
        const double hit = static_cast<std::int32_t>(i) == target ? 1 : 0;
        out.gradients.push_back(ignored || slope == 0 ? 0 : slope * (hit - p) * slopes[i]);
    }
    out.logProbs.push_back(ignored ? 0 : z[static_cast<std::size_t>(target)] - lse);
    out.entropies.push_back(ignored ? 0 : entropy);
    out.lse.push_back(ignored ? 0 : lse);
}

LogProbsReference logProbsReference(const std::vector<double>& logits, const std::vector<std::int32_t>& targets,
                                    float cap, float inverse, const std::vector<double>& slopes) {
    LogProbsReference out;
    const auto vocab = static_cast<std::ptrdiff_t>(logits.size() / targets.size());
    for (std::size_t row = 0; row < targets.size(); ++row) {
        const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row) * vocab;
        addReferenceRow(out, {begin, begin + vocab}, targets[row], static_cast<double>(cap),
                        static_cast<double>(inverse), slopes[row]);
    }
    return out;
}

/// Every fourth row is ignored; the first and the last id are among the targets.
std::vector<std::int32_t> sampledTargets(std::mt19937& random, std::int64_t rows, std::int64_t vocab) {
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

/// An op of each kind with tensors of its own, of rows of F64 or of another type.
struct LogProbsScene {
    TestTensor logits, targets, logProbs, entropies, lse, slopes, gradients;
    float cap = 0, inverse = 1;

    LogProbsScene(DType type, std::int64_t rows, std::int64_t vocab, std::int64_t gap = 0)
        : logits(type, Shape{rows, vocab}, vocab + gap), targets(DType::I32, Shape{rows}),
          logProbs(valuesOf(type), Shape{rows}), entropies(valuesOf(type), Shape{rows}),
          lse(valuesOf(type), Shape{rows}), slopes(valuesOf(type), Shape{rows}),
          gradients(type, Shape{rows, vocab}, vocab + 2 * gap) {}

    static DType valuesOf(DType type) { return type == DType::F64 ? DType::F64 : DType::F32; }
    LogProbs forward() const { return {logits, targets, cap, inverse, logProbs, entropies, lse, {}}; }
    LogProbsBackward backward() const { return {logits, targets, cap, inverse, lse, slopes, gradients, {}}; }
};

TEST(LogProbs, AgainstDouble) {
    std::mt19937 random(1);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
        for (const auto& [cap, inverse] : {std::pair{0.0F, 1.0F}, {7.5F, 1.0F}, {0.0F, 1.6F}, {5.0F, 0.7F}}) {
            for (const auto& [rows, vocab] : {std::pair{1, 1}, {5, 7}, {6, 513}, {5, 4099}}) {
                SCOPED_TRACE(::testing::Message() << dtypeName(type) << " cap " << cap << ", inverse temperature "
                                                  << inverse << ", " << rows << ", " << vocab);
                LogProbsScene scene(type, rows, vocab, 3);
                scene.cap = cap;
                scene.inverse = inverse;
                scene.logits.fillNormal(random, 6);
                scene.slopes.fillNormal(random, 0.3);
                const std::vector<std::int32_t> ids = sampledTargets(random, rows, vocab);
                scene.targets.fillInts(ids);
                testing::runOp(context, scene.forward());
                testing::runOp(context, scene.backward());
                const LogProbsReference expected =
                    logProbsReference(scene.logits.values(), ids, cap, inverse, scene.slopes.values());
                const bool wide = type == DType::F64;
                testing::expectNear(scene.logProbs, expected.logProbs, wide ? 1e-12 : 8e-6, 2);
                testing::expectNear(scene.entropies, expected.entropies, wide ? 1e-12 : 8e-6, 2);
                testing::expectNear(scene.lse, expected.lse, wide ? 1e-12 : 8e-6, 2);
                const double smallest = type == DType::F16 ? 0x1p-25 : 0; // half a step of its subnormals
                testing::expectNear(scene.gradients, expected.gradients, wide ? 1e-13 : 2e-6 + smallest,
                                    wide ? 4 : 1.01);
                const std::vector<double> before = scene.logProbs.values();
                LogProbs alone = scene.forward();
                alone.entropies = alone.lse = {};
                scene.logProbs.poison();
                testing::runOp(context, alone);
                EXPECT_EQ(scene.logProbs.values(), before) << "log-probabilities depend on what else is asked for";
            }
        }
    }
}

TEST(LogProbs, GradientIsTheSlope) {
    std::mt19937 random(2);
    CpuContext context(1);
    const std::int64_t rows = 5, vocab = 11;
    for (const auto& [cap, inverse] : {std::pair{0.0F, 1.0F}, {3.0F, 1.0F}, {0.0F, 0.5F}, {3.0F, 1.75F}}) {
        LogProbsScene scene(DType::F64, rows, vocab);
        scene.cap = cap;
        scene.inverse = inverse;
        scene.logits.fillNormal(random, 2);
        scene.slopes.fillNormal(random);
        scene.targets.fillInts(sampledTargets(random, rows, vocab));
        testing::runOp(context, scene.forward());
        testing::runOp(context, scene.backward());
        const std::vector<double> x = scene.logits.values(), slopes = scene.slopes.values();
        const auto sumAt = [&](std::size_t i, double move) {
            std::vector<double> moved = x;
            moved[i] += move;
            scene.logits.fill(moved);
            testing::runOp(context, scene.forward());
            const std::vector<double> values = scene.logProbs.values();
            double sum = 0;
            for (std::size_t row = 0; row < values.size(); ++row) {
                sum += slopes[row] * values[row];
            }
            return sum;
        };
        const double step = 1e-5;
        const std::vector<double> gradients = scene.gradients.values();
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double slope = (sumAt(i, step) - sumAt(i, -step)) / (2 * step);
            EXPECT_NEAR(gradients[i], slope, 1e-6 * std::max(1e-2, std::fabs(slope))) << i;
        }
    }
}

TEST(LogProbs, GradientTakesThePlaceOfTheLogits) {
    std::mt19937 random(3);
    CpuContext context(2);
    const std::int64_t rows = 5, vocab = 1543, stride = 1600;
    for (const auto& [type, narrow] : {std::pair{DType::F32, DType::F32},
                                       {DType::F32, DType::BF16},
                                       {DType::BF16, DType::BF16},
                                       {DType::F64, DType::BF16}}) {
        LogProbsScene scene(type, rows, vocab, stride - vocab);
        TestTensor gradients(narrow, Shape{rows, vocab});
        scene.inverse = 1.25F;
        scene.logits.fillNormal(random, 3);
        scene.slopes.fillNormal(random);
        scene.targets.fillInts(sampledTargets(random, rows, vocab));
        testing::runOp(context, scene.forward());
        LogProbsBackward op = scene.backward();
        op.gradLogits = gradients;
        testing::runOp(context, op);
        TensorView place = scene.logits;
        place.dtype = narrow;
        place.strides[0] = stride * bitsOf(type) / bitsOf(narrow);
        op.gradLogits = place;
        testing::runOp(context, op);
        EXPECT_TRUE(scene.logits.guardsIntact());
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

TEST(LogProbs, NaNShowsInItsRowOnly) {
    CpuContext context(1);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    LogProbsScene scene(DType::F32, 4, 3);
    scene.logits.fill({1, nan, 2, 0, 0, 0, nan, 1, 1, nan, 1, 1});
    scene.slopes.fill({1, 1, 1, 0});
    scene.targets.fillInts({0, 1, -1, 1});
    testing::runOp(context, scene.forward());
    testing::runOp(context, scene.backward());
    for (const TestTensor* values : {&scene.logProbs, &scene.entropies, &scene.lse}) {
        EXPECT_TRUE(std::isnan(values->values()[0]));
        EXPECT_EQ(values->values()[2], 0) << "an ignored row is not looked at";
        EXPECT_TRUE(std::isnan(values->values()[3]));
    }
    EXPECT_NEAR(scene.entropies.values()[1], std::log(3.0), 1e-6);
    EXPECT_TRUE(std::isnan(scene.gradients.values()[2]));
    EXPECT_NEAR(scene.gradients.values()[4], 2.0 / 3, 1e-6);
    EXPECT_EQ(scene.gradients.values()[8], 0);
    EXPECT_EQ(scene.gradients.values()[10], 0) << "a row without a gradient is not looked at";
}

TEST(LogProbs, MaskedIdsHaveNoShare) {
    CpuContext context(1);
    for (const DType type : {DType::F32, DType::F64}) {
        const std::int64_t vocab = 1030; // whole pieces of nothing before and after
        std::vector<double> x(2 * vocab, -kInfinity);
        x[600] = x[601] = 5;
        x[vocab] = x[2 * vocab - 1] = -3e38;
        x[vocab + 700] = 3e38;
        LogProbsScene scene(type, 2, vocab);
        scene.logits.fill(x);
        scene.slopes.fill({1, 1});
        scene.targets.fillInts({600, 700});
        testing::runOp(context, scene.forward());
        testing::runOp(context, scene.backward());
        testing::expectNear(scene.logProbs, {-std::log(2.0), 0}, 1e-6);
        testing::expectNear(scene.entropies, {std::log(2.0), 0}, 1e-6);
        std::vector<double> expected(2 * vocab, 0.0);
        expected[600] = 0.5;
        expected[601] = -0.5;
        testing::expectNear(scene.gradients, expected, 1e-6);
    }
}

TEST(LogProbs, EntropyOfOneIdAndOfAll) {
    CpuContext context(1);
    LogProbsScene scene(DType::F32, 2, 5000);
    std::vector<double> x(10000, 0.25);
    x[4321] = 200;
    scene.logits.fill(x);
    scene.targets.fillInts({4321, 7});
    testing::runOp(context, scene.forward());
    testing::expectNear(scene.entropies, {0, std::log(5000.0)}, 1e-6);
    testing::expectNear(scene.logProbs, {0, -std::log(5000.0)}, 1e-6);
}

TEST(LogProbs, ThreadsDoNotChangeResults) {
    std::mt19937 random(4);
    LogProbsScene scene(DType::BF16, 37, 3000);
    scene.cap = 30;
    scene.logits.fillNormal(random, 5);
    scene.slopes.fillNormal(random);
    scene.targets.fillInts(sampledTargets(random, 37, 3000));
    std::vector<double> first;
    for (const int threads : {1, 2, 5}) {
        CpuContext context(threads);
        testing::runOp(context, scene.forward());
        testing::runOp(context, scene.backward());
        std::vector<double> all = scene.entropies.values();
        const std::vector<double> rest = scene.gradients.values();
        all.insert(all.end(), rest.begin(), rest.end());
        first = first.empty() ? all : first;
        EXPECT_EQ(all, first);
    }
}

TEST(LogProbs, NoRowsAndWrongTargets) {
    CpuContext context(1);
    const LogProbsScene none(DType::F32, 0, 8);
    testing::runOp(context, none.forward());
    testing::runOp(context, none.backward());
    LogProbsScene scene(DType::F32, 1, 8);
    scene.targets.fillInts({8});
    EXPECT_THROW(testing::runOp(context, scene.forward()), base::BadInput);
    EXPECT_THROW(testing::runOp(context, scene.backward()), base::BadInput);
}

TEST(LogProbs, CheckNamesTheField) {
    const LogProbsScene scene(DType::F32, 3, 8);
    const LogProbs good = scene.forward();
    check(good);
    LogProbs op = good;
    op.targets.shape = Shape{2};
    testing::expectCheckNames(op, "targets");
    op = good;
    op.softCap = -1;
    testing::expectCheckNames(op, "softCap");
    op = good;
    op.inverseTemperature = 0;
    testing::expectCheckNames(op, "inverseTemperature");
    op = good;
    op.logProbs.dtype = DType::BF16;
    testing::expectCheckNames(op, "logProbs");
    op = good;
    op.entropies.shape = Shape{2};
    testing::expectCheckNames(op, "entropies");
    op = good;
    op.lse.data = op.entropies.data;
    testing::expectCheckNames(op, "lse");
    op = good;
    op.logProbs.dtype = op.entropies.dtype = DType::F32;
    op.lse.dtype = DType::F64;
    testing::expectCheckNames(op, "lse");
}

TEST(LogProbsBackward, CheckNamesTheField) {
    const LogProbsScene scene(DType::F32, 3, 8);
    TestTensor narrow(DType::BF16, Shape{3, 8});
    LogProbsBackward good = scene.backward();
    good.gradLogits = narrow;
    check(good);
    LogProbsBackward op = good;
    op.lse.shape = Shape{2};
    testing::expectCheckNames(op, "lse");
    op = good;
    op.gradLogProbs.dtype = DType::F16;
    testing::expectCheckNames(op, "gradLogProbs");
    op = good;
    op.inverseTemperature = -1;
    testing::expectCheckNames(op, "inverseTemperature");
    op = good;
    op.gradLogits.data = scene.logits.view().data; // narrower rows that begin inside those of the logits
    testing::expectCheckNames(op, "gradLogits");
    op.gradLogits.strides[0] = 16;
    check(op);
    op = good;
    op.gradLogits = op.logits;
    op.gradLogits.dtype = DType::F64;
    testing::expectCheckNames(op, "gradLogits");
}

TEST(LogProbs, CostIsWhatItMoves) {
    const LogProbsScene scene(DType::F32, 3, 8);
    const Cost whole = cost(scene.forward(), DeviceTraits{});
    EXPECT_EQ(whole.bytesRead, 3U * (8 * 4 + 4));
    EXPECT_EQ(whole.bytesWritten, 3U * 3 * 4);
    LogProbs alone = scene.forward();
    alone.entropies = alone.lse = {};
    EXPECT_EQ(cost(alone, DeviceTraits{}).bytesWritten, 3U * 4);
    const Cost backward = cost(scene.backward(), DeviceTraits{});
    EXPECT_EQ(backward.bytesRead, 3U * (8 * 4 + 3 * 4));
    EXPECT_EQ(backward.bytesWritten, 3U * 8 * 4);
}

} // namespace
} // namespace vitrine::kernels
