// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/dropout.h"

#include <algorithm>

#include "base/philox.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(Dropout, KeepsWhatPhiloxChooses) {
    std::mt19937 random(1);
    CpuContext context(2);
    for (const DType type : {DType::F32, DType::BF16, DType::F64}) {
        const std::int64_t rows = 7, n = 601, firstRow = 5;
        const std::uint64_t seed = 0x123456789ABCDEFULL, stream = 0xFEDCBA9876543210ULL;
        TestTensor x(type, Shape{rows, n}, n + 2), out(type, Shape{rows, n}, n + 4);
        x.fillNormal(random);
        testing::runOp(context, Dropout{x, out, 0.25F, seed, stream, firstRow});
        std::vector<double> expected;
        const std::vector<double> values = x.values();
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::uint64_t element = static_cast<std::uint64_t>(firstRow * n) + i;
            const auto words = base::philox4x32(base::philoxKey(seed, 0x64726F70U), element / 4, stream);
            expected.push_back(words[element % 4] < 0x40000000U ? 0 : values[i] / 0.75);
        }
        testing::expectNear(out, expected, 1e-7, 1.01);
    }
}

TEST(Dropout, TilesChooseAsTheWhole) {
    std::mt19937 random(2);
    CpuContext context(2);
    TestTensor x(DType::F32, Shape{6, 515}), out(DType::F32, Shape{6, 515});
    x.fillNormal(random);
    testing::runOp(context, Dropout{x, out, 0.5F, 3, 4, 0});
    for (const std::int64_t row : {0, 2, 4}) {
        const TensorView tile = sliceRows(x, row, row + 2);
        testing::runOp(context, Dropout{tile, tile, 0.5F, 3, 4, row});
    }
    EXPECT_EQ(x.values(), out.values());
}

TEST(Dropout, SharesAndStreams) {
    CpuContext context(2);
    TestTensor ones(DType::F32, Shape{100, 1000}), out(DType::F32, Shape{100, 1000}),
        other(DType::F32, Shape{100, 1000});
    ones.fill(std::vector<double>(100000, 1));
    const auto dropped = [](const TestTensor& tensor) {
        const std::vector<double> values = tensor.values();
        return std::count(values.begin(), values.end(), 0.0);
    };
    testing::runOp(context, Dropout{ones, out, 0.1F, 1, 2, 0});
    EXPECT_NEAR(static_cast<double>(dropped(out)), 10000, 500);
    testing::runOp(context, Dropout{ones, other, 0.1F, 1, 3, 0});
    EXPECT_NE(out.values(), other.values());
    testing::runOp(context, Dropout{ones, other, 0.1F, 2, 2, 0});
    EXPECT_NE(out.values(), other.values());
    testing::runOp(context, Dropout{ones, other, 0, 1, 2, 0});
    EXPECT_EQ(ones.values(), other.values());
}

TEST(Dropout, CheckNamesTheField) {
    TestTensor x(DType::F32, Shape{3, 8}), out(DType::F32, Shape{3, 8}), none(DType::F32, Shape{0, 8});
    CpuContext context(1);
    testing::runOp(context, Dropout{none, none, 0.5F});
    Dropout op{x, out, 1};
    testing::expectCheckNames(op, "probability");
    op.probability = -0.5F;
    testing::expectCheckNames(op, "probability");
    op = Dropout{x, out, 0.5F, 0, 0, -1};
    testing::expectCheckNames(op, "firstRow");
    op = Dropout{x, out, 0.5F};
    op.out.shape = Shape{3, 7};
    testing::expectCheckNames(op, "out");
    op.out = x;
    op.out.data = x.view().as<float>() + 1;
    testing::expectCheckNames(op, "out");
}

} // namespace
} // namespace vitrine::kernels
