// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/gradient_norm.h"

#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(SquaredNorm, AgainstDoubleAndOnTop) {
    std::mt19937 random(1);
    for (const DType type : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
        for (const std::int64_t n : {0, 1, 515, 8192, 40003}) {
            TestTensor x(type, Shape{n, 1}), out(DType::F64, Shape{1});
            x.fillNormal(random, 1e-3);
            double sum = 0;
            for (const double value : x.values()) {
                sum += value * value;
            }
            std::vector<double> sums;
            for (const int threads : {1, 3}) {
                CpuContext context(threads);
                testing::runOp(context, SquaredNorm{x, out, false, {}});
                EXPECT_NEAR(out.values()[0], sum, 1e-12 * sum);
                sums.push_back(out.values()[0]);
            }
            EXPECT_EQ(sums[0], sums[1]);
            CpuContext context(2);
            testing::runOp(context, SquaredNorm{x, out, true, {}});
            EXPECT_NEAR(out.values()[0], 2 * sum, 2e-12 * sum);
            EXPECT_TRUE(out.guardsIntact());
        }
    }
}

TEST(SquaredNorm, PartsCoverEveryElementOnce) {
    for (const std::int64_t n : {0LL, 1LL, 8191LL, 8193LL, 8388608LL, 8388609LL, 3000000007LL}) {
        const NormParts parts = normParts(n);
        EXPECT_GE(parts.count * parts.size, n);
        EXPECT_LE(parts.count, 1024);
        EXPECT_TRUE(parts.count == 1 || (parts.count - 1) * parts.size < n);
        EXPECT_EQ(parts.size % 8, 0);
    }
}

TEST(SquaredNorm, CheckNamesTheField) {
    TestTensor x(DType::F32, Shape{8}), out(DType::F64, Shape{1}), scratch(DType::F64, Shape{1});
    const SquaredNorm good{x, out, false, scratch};
    check(good);
    SquaredNorm op = good;
    op.out.dtype = DType::F32;
    testing::expectCheckNames(op, "out");
    op = good;
    op.scratch = {};
    testing::expectCheckNames(op, "scratch");
    op = good;
    op.x.dtype = DType::U8;
    testing::expectCheckNames(op, "x");
}

TEST(ClipScale, AsTorch) {
    CpuContext context(1);
    TestTensor squared(DType::F64, Shape{1}), scale(DType::F32, Shape{1}), norm(DType::F32, Shape{1});
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const auto& [sum, most, expected] :
         {std::tuple{16.0, 1.0F, 0.25}, {0.25, 1.0F, 1.0}, {0.0, 1.0F, 1.0}, {1e12, 0.0F, 1.0}, {1.0, 1.0F, 1.0}}) {
        squared.fill({sum});
        testing::runOp(context, ClipScale{squared, most, scale, norm});
        testing::expectNear(scale, {expected}, 1e-6);
        testing::expectNear(norm, {std::sqrt(sum)}, 0);
    }
    squared.fill({nan});
    testing::runOp(context, ClipScale{squared, 1, scale, norm});
    EXPECT_TRUE(std::isnan(scale.values()[0]) && std::isnan(norm.values()[0]));
    ClipScale op{squared, 1, scale, norm};
    op.maxNorm = -1;
    testing::expectCheckNames(op, "maxNorm");
    op = ClipScale{squared, 1, scale, norm};
    op.squaredNorm.dtype = DType::F32;
    testing::expectCheckNames(op, "squaredNorm");
}

} // namespace
} // namespace vitrine::kernels
