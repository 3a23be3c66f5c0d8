// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/weights.h"

#include <set>

#include "base/philox.h"
#include "kernels/formats/mxfp4_format.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/ops/linear/weight_product.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(DequantizeMxfp4, LowNibbleFirst) {
    CpuContext context(1);
    TestTensor blocks(DType::U8, Shape{1, 1, 16});
    TestTensor scales(DType::U8, Shape{1, 1});
    std::vector<double> bytes(16, 0.0);
    bytes[0] = 0x21;  // 0.5 then 1
    bytes[15] = 0xF7; // 6 then -6
    for (std::size_t i = 0; i < 16; ++i) {
        blocks.view().as<std::uint8_t>()[i] = static_cast<std::uint8_t>(bytes[i]);
    }
    scales.view().as<std::uint8_t>()[0] = 128;
    TestTensor out(DType::BF16, Shape{1, 32});
    testing::runOp(context, Dequantize{packedWeight(WeightFormat::Mxfp4, blocks, scales), out});
    std::vector<double> expected(32, 0.0);
    expected[0] = 1;
    expected[1] = 2;
    expected[30] = 12;
    expected[31] = -12;
    EXPECT_EQ(out.values(), expected);
}

TEST(DequantizeMxfp4, EveryScaleAndNibbleIsExact) {
    CpuContext context(2);
    const double table[8] = {0, .5, 1, 1.5, 2, 3, 4, 6};
    TestTensor blocks(DType::U8, Shape{3, 255, 1, 16});
    TestTensor scales(DType::U8, Shape{3, 255, 1});
    TestTensor out(DType::F32, Shape{3, 255, 32});
    std::vector<double> expected;
    for (std::size_t row = 0; row < 3 * 255; ++row) {
        const std::size_t scale = row % 255;
        scales.view().as<std::uint8_t>()[row] = static_cast<std::uint8_t>(scale);
        for (std::size_t b = 0; b < 16; ++b) {
            blocks.view().as<std::uint8_t>()[row * 16 + b] = static_cast<std::uint8_t>(b | ((15 - b) << 4));
            for (const std::size_t nibble : {b, 15 - b}) {
                const double sign = nibble >= 8 ? -1 : 1;
                const double value = sign * std::ldexp(table[nibble % 8], static_cast<int>(scale) - 127);
                // Above the largest float32 the value becomes infinite, as a float32 product does.
                expected.push_back(static_cast<double>(static_cast<float>(value)));
            }
        }
    }
    testing::runOp(context, Dequantize{packedWeight(WeightFormat::Mxfp4, blocks, scales), out});
    EXPECT_EQ(out.values(), expected);
    EXPECT_TRUE(std::isnan(mxfp4Scale(255)));
    EXPECT_EQ(mxfp4Scale(0), 0x1p-127F);
}

TEST(DequantizeNf4, IsTableTimesScale) {
    CpuContext context(2);
    std::mt19937 random(6);
    for (const bool packedScales : {false, true}) {
        const testing::TestWeight weight = testing::nf4Weight(random, 37, 192, packedScales);
        TestTensor wide(DType::F32, Shape{37, 192}), narrow(DType::BF16, Shape{37, 192});
        testing::runOp(context, Dequantize{weight.view, wide});
        EXPECT_EQ(wide.values(), weight.values);
        testing::runOp(context, Dequantize{weight.view, narrow});
        TestTensor rounded(DType::BF16, Shape{37, 192});
        rounded.fill(weight.values);
        EXPECT_EQ(narrow.values(), rounded.values());
    }
}

TEST(DequantizeGrouped, IsCodeLessZeroTimesScale) {
    CpuContext context(2);
    std::mt19937 random(16);
    for (const testing::TestWeight& weight : testing::groupedWeights(random, 131, 320)) {
        TestTensor wide(DType::F32, Shape{131, 320});
        testing::runOp(context, Dequantize{weight.view, wide});
        EXPECT_EQ(wide.values(), weight.values);
    }
}

TEST(DequantizeGrouped, CheckRefusesOtherShapes) {
    std::mt19937 random(17);
    const testing::TestWeight weight = testing::integerWeight(random, 8, 128, {4, 32, DType::F16, true, true});
    TestTensor out(DType::F32, Shape{8, 128});
    const Dequantize good{weight.view, out};
    check(good);
    const auto expectRefused = [&](const auto& damage) {
        Dequantize op = good;
        damage(op.weight);
        testing::expectCheckNames(op, "weight");
    };
    expectRefused([](WeightView& view) { view.data.shape = Shape{8, 48}; });
    expectRefused([](WeightView& view) { view.scales.shape = Shape{8, 3}; });
    expectRefused([](WeightView& view) { view.scales.dtype = DType::U8; });
    expectRefused([](WeightView& view) { view.scales = {}; });
    expectRefused([](WeightView& view) { view.zeros.dtype = DType::BF16; });
    expectRefused([](WeightView& view) { view.zeros.shape = Shape{8, 2}; });
    expectRefused([](WeightView& view) { view.order.shape = Shape{64}; });
    expectRefused([](WeightView& view) { view.group = 0; });
    expectRefused([](WeightView& view) { view.transposed = true; });
    expectRefused([](WeightView& view) { view.scaleScales = view.scales; });
}

TEST(DequantizeNf4, CheckRefusesOtherShapes) {
    std::mt19937 random(7);
    const testing::TestWeight weight = testing::nf4Weight(random, 8, 128, true);
    TestTensor out(DType::F32, Shape{8, 128});
    const Dequantize good{weight.view, out};
    check(good);
    Dequantize op = good;
    op.weight.data.shape = Shape{8, 48}; // an input axis of 96
    testing::expectCheckNames(op, "weight");
    op = good;
    op.weight.scaleScales.shape = Shape{2};
    testing::expectCheckNames(op, "weight");
    op = good;
    op.weight.scaleScales = {};
    testing::expectCheckNames(op, "weight");
    op = good;
    op.weight.scales.dtype = DType::F32;
    testing::expectCheckNames(op, "weight");
    op = good;
    op.weight.transposed = true;
    testing::expectCheckNames(op, "weight");
    op = good;
    op.weight.zeros = op.weight.scaleScales;
    testing::expectCheckNames(op, "weight");
    op = good;
    op.out.shape = Shape{8, 64};
    testing::expectCheckNames(op, "out");
}

TEST(TransposeCopy, EveryElementSize) {
    CpuContext context(2);
    for (const DType type : {DType::U8, DType::BF16, DType::F32, DType::F64}) {
        TestTensor x(type, Shape{3, 33, 70});
        TestTensor out(type, Shape{3, 70, 33});
        std::mt19937 random(1);
        if (type == DType::U8) {
            x.fillBytes(random, 0, 255);
        } else {
            x.fillNormal(random);
        }
        testing::runOp(context, TransposeCopy{x, out});
        const std::vector<double> from = x.values();
        const std::vector<double> to = out.values();
        for (std::size_t m = 0; m < 3; ++m) {
            for (std::size_t a = 0; a < 33; ++a) {
                for (std::size_t b = 0; b < 70; ++b) {
                    ASSERT_EQ(to[(m * 70 + b) * 33 + a], from[(m * 33 + a) * 70 + b]);
                }
            }
        }
        EXPECT_TRUE(out.guardsIntact());
    }
}

TEST(FillRandom, MomentsAndTails) {
    CpuContext context(2);
    for (const DType type : {DType::BF16, DType::F16, DType::F32, DType::F64}) {
        constexpr std::int64_t kCount = 400001;
        TestTensor out(type, Shape{kCount});
        testing::runOp(context, FillRandom{out, 42, 7, 0.5F, 2.0F});
        EXPECT_TRUE(out.guardsIntact());
        double sum = 0, squares = 0, fourth = 0;
        int beyondTwo = 0;
        for (const double value : out.values()) {
            const double z = (value - 0.5) / 2;
            ASSERT_FALSE(std::isnan(z));
            sum += z;
            squares += z * z;
            fourth += z * z * z * z;
            beyondTwo += std::fabs(z) > 2 ? 1 : 0;
        }
        EXPECT_NEAR(sum / kCount, 0, 0.01);
        EXPECT_NEAR(squares / kCount, 1, 0.01);
        EXPECT_NEAR(fourth / kCount, 3, 0.1);
        EXPECT_NEAR(beyondTwo / static_cast<double>(kCount), 0.0455, 0.002);
    }
}

TEST(FillRandom, SameForEveryThreadCountAndSimdLevel) {
    for (const DType type : {DType::BF16, DType::F32, DType::U8}) {
        std::vector<double> first;
        for (const int threads : {1, 2, 3}) {
            testing::forEachSimd(
                [&](CpuContext& context) {
                    TestTensor out(type, Shape{70003});
                    testing::runOp(context, FillRandom{out, 1, 2, 0, 1});
                    if (first.empty()) {
                        first = out.values();
                    }
                    EXPECT_EQ(out.values(), first);
                },
                threads);
        }
        CpuContext context(2);
        TestTensor other(type, Shape{70003});
        testing::runOp(context, FillRandom{other, 1, 3, 0, 1});
        EXPECT_NE(other.values(), first);
    }
}

TEST(FillRandom, BytesArePhiloxAndConstantsAreConstant) {
    CpuContext context(2);
    TestTensor out(DType::U8, Shape{100000});
    testing::runOp(context, FillRandom{out, 0x123456789ABCDEF, 5, 0, 1});
    const auto key = base::philoxKey(0x123456789ABCDEF, 5);
    for (const std::uint64_t block : {0U, 1U, 63U, 64U, 6249U}) {
        const auto words = base::philox4x32(key, block, 0);
        EXPECT_EQ(std::memcmp(out.view().as<std::uint8_t>() + 16 * block, words.data(), 16), 0) << block;
    }
    testing::runOp(context, FillRandom{out, 1, 1, 121, 0});
    for (const double value : out.values()) {
        ASSERT_EQ(value, 121);
    }
    testing::runOp(context, FillRandom{out, 1, 1, 3, 1});
    double highest = 0;
    for (const double value : out.values()) {
        ASSERT_EQ(static_cast<int>(value) & 3, 0) << "the bits of the center are clear";
        highest = std::max(highest, value);
    }
    EXPECT_EQ(highest, 252) << "and the others are not";
    TestTensor ones(DType::BF16, Shape{1000});
    testing::runOp(context, FillRandom{ones, 1, 1, 1, 0});
    for (const double value : ones.values()) {
        ASSERT_EQ(value, 1);
    }
}

} // namespace
} // namespace vitrine::kernels
