// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/sum_rows.h"

#include "tests/kernels/ops/common/gradient_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(SumRows, AgainstDoubleForEveryNumberOfThreads) {
    std::mt19937 random(1);
    for (const DType type : {DType::F32, DType::BF16, DType::F16, DType::F64}) {
        for (const DType sums : {DType::F32, DType::F64}) {
            for (const auto& [rows, n] : {std::pair{1, 1}, {0, 7}, {64, 33}, {65, 600}, {1000, 5}, {3, 1300}}) {
                for (const bool accumulate : {false, true}) {
                    TestTensor x(type, Shape{rows, n}, n + 3), out(sums, Shape{n});
                    x.fillNormal(random);
                    out.fillNormal(random);
                    const std::vector<double> before = out.values(), values = x.values();
                    std::vector<double> expected = accumulate ? before : std::vector<double>(before.size(), 0);
                    for (std::size_t i = 0; i < values.size(); ++i) {
                        expected[i % expected.size()] += values[i];
                    }
                    std::vector<double> first;
                    for (const int threads : {1, 2, 5}) {
                        CpuContext context(threads);
                        out.fill(before);
                        testing::runOp(context, SumRows{x, out, accumulate, {}});
                        testing::expectClose(out, expected, sums == DType::F64 && type == DType::F64 ? 1e-14 : 2e-6);
                        first = first.empty() ? out.values() : first;
                        EXPECT_EQ(out.values(), first);
                    }
                }
            }
        }
    }
}

TEST(SumRows, CheckNamesTheField) {
    TestTensor x(DType::F32, Shape{100, 8}), out(DType::F32, Shape{8}), memory(DType::U8, Shape{64});
    SumRows op{x, out, false, {}};
    testing::expectCheckNames(op, "scratch");
    op.scratch = memory;
    check(op);
    op.out.dtype = DType::BF16;
    testing::expectCheckNames(op, "out");
    op = SumRows{x, out, false, memory};
    op.out.shape = Shape{7};
    testing::expectCheckNames(op, "out");
    op.out = x;
    op.out.shape = Shape{8};
    testing::expectCheckNames(op, "out");
}

} // namespace
} // namespace vitrine::kernels
