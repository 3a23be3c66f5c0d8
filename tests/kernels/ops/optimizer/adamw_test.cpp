// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/adamw.h"

#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

/// One step as torch.optim.AdamW writes it.
void torchStep(const AdamW& op, const std::vector<double>& gradient, double gradScale, std::vector<double>& p,
               std::vector<double>& m, std::vector<double>& v) {
    const double correction1 = 1 - std::pow(op.beta1, static_cast<double>(op.step));
    const double correction2 = 1 - std::pow(op.beta2, static_cast<double>(op.step));
    for (std::size_t i = 0; i < p.size(); ++i) {
        const double g = gradient[i] * gradScale;
        p[i] *= 1 - op.learningRate * op.weightDecay;
        m[i] += (g - m[i]) * (1 - op.beta1);
        v[i] = v[i] * op.beta2 + (1 - op.beta2) * g * g;
        const double denominator = std::sqrt(v[i]) / std::sqrt(correction2) + op.epsilon;
        p[i] -= op.learningRate / correction1 * m[i] / denominator;
    }
}

struct AdamWCase {
    DType parameter, gradient;
    bool master = false;
    bool scaled = false;
};

const std::vector<AdamWCase> kAdamWCases{
    {DType::F64, DType::F64},
    {DType::F64, DType::F32, false, true},
    {DType::F32, DType::F32},
    {DType::F32, DType::BF16},
    {DType::BF16, DType::BF16, true, true},
    {DType::BF16, DType::F32, true},
    {DType::F16, DType::F16, true},
    {DType::BF16, DType::BF16},
    {DType::F32, DType::F32, true, true},
    {DType::F16, DType::F32, false},
};

TEST(AdamW, FiveStepsAsTorch) {
    std::mt19937 random(1);
    CpuContext context(2);
    for (const AdamWCase& item : kAdamWCases) {
        SCOPED_TRACE(::testing::Message()
                     << dtypeName(item.parameter) << ", " << dtypeName(item.gradient) << ", master " << item.master);
        const std::int64_t n = 29 * 53;
        const DType moments = item.parameter == DType::F64 ? DType::F64 : DType::F32;
        TestTensor parameter(item.parameter, Shape{29, n / 29}), gradient(item.gradient, Shape{n});
        TestTensor master, gradScale;
        TestTensor moment1(moments, Shape{n}), moment2(moments, Shape{1, n});
        parameter.fillNormal(random);
        moment1.fill(std::vector<double>(static_cast<std::size_t>(n), 0));
        moment2.fill(std::vector<double>(static_cast<std::size_t>(n), 0));
        if (item.master) {
            master = TestTensor(DType::F32, Shape{n});
            master.fillNormal(random);
        }
        if (item.scaled) {
            gradScale = TestTensor(DType::F32, Shape{1});
            gradScale.fill({0.375});
        }
        const TestTensor& updated = item.master ? master : parameter;
        std::vector<double> p = updated.values(), m = moment1.values(), v = moment2.values();
        AdamW op{parameter, master, gradient, moment1, moment2, gradScale, 3e-3, 0.85, 0.97, 1e-7, 0.1};
        for (op.step = 1; op.step <= 5; ++op.step) {
            gradient.fillNormal(random, 2);
            if (updated.view().dtype != DType::F32 && updated.view().dtype != DType::F64) {
                p = updated.values(); // each step rounds it
            }
            testing::runOp(context, op);
            torchStep(op, gradient.values(), item.scaled ? 0.375 : 1, p, m, v);
            const bool wide = item.parameter == DType::F64;
            // Float32 is rounded about twice a step, and the roundings of all steps add up.
            testing::expectNear(updated, p, wide ? 1e-14 : 4e-7, updated.view().dtype == DType::F32 ? 4 : 1.01);
            testing::expectNear(moment1, m, wide ? 1e-14 : 1e-6, 4);
            testing::expectNear(moment2, v, wide ? 1e-14 : 1e-6, 4);
        }
        std::vector<double> rounded = updated.values();
        roundFloats(item.parameter, rounded.data(), n);
        EXPECT_EQ(parameter.values(), rounded);
        EXPECT_TRUE(parameter.guardsIntact() && gradient.guardsIntact());
    }
}

TEST(AdamW, FirstStepMovesByTheLearningRate) {
    CpuContext context(1);
    TestTensor parameter(DType::F64, Shape{3}), gradient(DType::F64, Shape{3});
    TestTensor moment1(DType::F64, Shape{3}), moment2(DType::F64, Shape{3});
    parameter.fill({1, 1, 1});
    gradient.fill({5, -0.001, 0});
    moment1.fill({0, 0, 0});
    moment2.fill({0, 0, 0});
    AdamW op{parameter, {}, gradient, moment1, moment2, {}, 0.1};
    op.weightDecay = 0;
    testing::runOp(context, op);
    testing::expectNear(parameter, {0.9, 1.1, 1}, 1e-5);
}

TEST(AdamW, ThreadsDoNotChangeResults) {
    std::vector<double> first;
    for (const int threads : {1, 3}) {
        std::mt19937 random(2);
        CpuContext context(threads);
        TestTensor parameter(DType::BF16, Shape{9, 5000}), gradient(DType::BF16, Shape{9, 5000});
        TestTensor moment1(DType::F32, Shape{9, 5000}), moment2(DType::F32, Shape{9, 5000});
        parameter.fillNormal(random);
        gradient.fillNormal(random);
        moment1.fillNormal(random);
        moment2.fill(std::vector<double>(45000, 0.5));
        testing::runOp(context, AdamW{parameter, {}, gradient, moment1, moment2, {}, 0.01});
        first = first.empty() ? parameter.values() : first;
        EXPECT_EQ(parameter.values(), first);
    }
}

TEST(AdamW, NoElements) {
    CpuContext context(1);
    TestTensor parameter(DType::F32, Shape{0}), moment(DType::F32, Shape{0}), other(DType::F32, Shape{0});
    testing::runOp(context, AdamW{parameter, {}, other, moment, moment, {}, 0.1});
}

TEST(AdamW, CheckNamesTheField) {
    TestTensor parameter(DType::BF16, Shape{8}), master(DType::F32, Shape{8}), gradient(DType::F32, Shape{8});
    TestTensor moment1(DType::F32, Shape{8}), moment2(DType::F32, Shape{8}), gradScale(DType::F32, Shape{1});
    const AdamW good{parameter, master, gradient, moment1, moment2, gradScale, 0.1};
    check(good);
    AdamW op = good;
    op.gradient.shape = Shape{7};
    testing::expectCheckNames(op, "gradient");
    op = good;
    op.master.dtype = DType::BF16;
    testing::expectCheckNames(op, "master");
    op = good;
    op.moment1.dtype = DType::BF16;
    testing::expectCheckNames(op, "moment1");
    op = good;
    op.moment2 = op.moment1;
    testing::expectCheckNames(op, "moment2");
    op = good;
    op.gradScale.shape = Shape{2};
    testing::expectCheckNames(op, "gradScale");
    op = good;
    op.step = 0;
    testing::expectCheckNames(op, "step");
    op = good;
    op.beta2 = 1;
    testing::expectCheckNames(op, "beta2");
    op = good;
    op.parameter.shape = Shape{2, 4};
    op.parameter.strides[0] = 5;
    testing::expectCheckNames(op, "parameter");
}

TEST(AdamW, CostIsWhatItMoves) {
    TestTensor parameter(DType::BF16, Shape{8}), master(DType::F32, Shape{8}), gradient(DType::BF16, Shape{8});
    TestTensor moment1(DType::F32, Shape{8}), moment2(DType::F32, Shape{8});
    const Cost whole = cost(AdamW{parameter, master, gradient, moment1, moment2, {}, 0.1}, DeviceTraits{});
    EXPECT_EQ(whole.bytesRead, 8U * (4 + 2 + 4 + 4));
    EXPECT_EQ(whole.bytesWritten, 8U * (4 + 2 + 4 + 4));
    const Cost plain = cost(AdamW{parameter, {}, gradient, moment1, moment2, {}, 0.1}, DeviceTraits{});
    EXPECT_EQ(plain.bytesWritten, 8U * (2 + 4 + 4));
}

} // namespace
} // namespace vitrine::kernels
