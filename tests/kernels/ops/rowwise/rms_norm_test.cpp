// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rms_norm.h"

#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

double rounded(DType type, double value) {
    roundFloats(type, &value, 1);
    return value;
}

std::vector<double> reference(const std::vector<double>& x, const std::vector<double>& w, double eps, RmsNormOrder form,
                              DType type) {
    std::vector<double> out;
    const std::size_t dim = w.size();
    for (std::size_t row = 0; row < x.size() / dim; ++row) {
        double squares = 0;
        for (std::size_t i = 0; i < dim; ++i) {
            squares += x[row * dim + i] * x[row * dim + i];
        }
        const double inverse = 1 / std::sqrt(squares / static_cast<double>(dim) + eps);
        for (std::size_t i = 0; i < dim; ++i) {
            const double y = x[row * dim + i] * inverse;
            switch (form) {
            case RmsNormOrder::CastThenScale:
                out.push_back(rounded(type, y) * w[i]);
                break;
            case RmsNormOrder::ScaleThenCast:
                out.push_back(y * w[i]);
                break;
            case RmsNormOrder::OnePlusWeight:
                out.push_back(y * (1 + w[i]));
                break;
            }
        }
    }
    return out;
}

TEST(RmsNorm, FormsAgainstDouble) {
    std::mt19937 random(1);
    CpuContext context(2);
    for (const RmsNormOrder form :
         {RmsNormOrder::CastThenScale, RmsNormOrder::ScaleThenCast, RmsNormOrder::OnePlusWeight}) {
        for (const DType type : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
            for (const auto& [rows, dim] : {std::pair{1, 1}, {3, 7}, {5, 513}, {40, 2880}}) {
                TestTensor x(type, Shape{rows, dim}, dim + 9);
                TestTensor w(DType::BF16, Shape{dim});
                TestTensor out(type, Shape{rows, dim});
                x.fillNormal(random, 3);
                w.fillNormal(random);
                testing::runOp(context, RmsNorm{x, w, out, 1e-3F, form});
                // Casting before scaling may round y to the other neighbour: one step of the type.
                const double steps = form == RmsNormOrder::CastThenScale ? 3 : 1.01;
                const double slack = type == DType::F64 ? 1e-13 : 4e-6;
                testing::expectNear(out, reference(x.values(), w.values(), static_cast<double>(1e-3F), form, type),
                                    slack, steps);
            }
        }
    }
}

TEST(RmsNorm, FormsDifferWhereTheyShould) {
    // y = 1 + 2^-9 is not in BF16: casting first loses what scaling by 256.5 first would keep.
    CpuContext context(1);
    TestTensor x(DType::BF16, Shape{1, 3});
    TestTensor w(DType::F32, Shape{3});
    x.fill({1.0, 1.0078125, 0.9921875});
    w.fill({1.00390625, 1.00390625, 1.00390625});
    TestTensor first(DType::BF16, Shape{1, 3});
    TestTensor later(DType::BF16, Shape{1, 3});
    testing::runOp(context, RmsNorm{x, w, first, 0, RmsNormOrder::CastThenScale});
    testing::runOp(context, RmsNorm{x, w, later, 0, RmsNormOrder::ScaleThenCast});
    EXPECT_EQ(first.values()[0], rounded(DType::BF16, rounded(DType::BF16, x.values()[0] * 0.99998) * 1.00390625));
    EXPECT_TRUE(later.guardsIntact());
}

TEST(RmsNorm, InPlace) {
    std::mt19937 random(2);
    CpuContext context(1);
    TestTensor x(DType::F32, Shape{3, 600});
    TestTensor w(DType::F32, Shape{600});
    TestTensor out(DType::F32, Shape{3, 600});
    x.fillNormal(random);
    w.fillNormal(random);
    testing::runOp(context, RmsNorm{x, w, out, 1e-6F, RmsNormOrder::CastThenScale});
    testing::runOp(context, RmsNorm{x, w, x, 1e-6F, RmsNormOrder::CastThenScale});
    EXPECT_EQ(x.values(), out.values());
}

TEST(RmsNorm, CheckNamesTheField) {
    TestTensor x(DType::F32, Shape{3, 8});
    TestTensor w(DType::F32, Shape{8});
    TestTensor out(DType::F32, Shape{3, 8});
    RmsNorm op{x, w, out};
    check(op);
    op.weight.shape = Shape{7};
    testing::expectCheckNames(op, "weight");
    op = RmsNorm{x, w, out};
    op.out.data = x.view().as<float>() + 1;
    testing::expectCheckNames(op, "out");
    op = RmsNorm{x, w, out};
    op.x.dtype = DType::U8;
    testing::expectCheckNames(op, "x");
}

} // namespace
} // namespace vitrine::kernels
