// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// A format of 4 bits that no product file knows: a nibble n stands for (n - 5) / 2 times the scale of its row. With its
// row in the table alone it multiplies on the CPU and is priced on Meta by its own bytes.

#include <gtest/gtest.h>
#include <random>

#include "kernels/formats/weight_formats.h"
#include "kernels/ops/experts/moe.h"
#include "kernels/ops/linear/weights.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

constexpr auto kHalves = static_cast<WeightFormat>(200);

PackedFormat halvesFormat() {
    PackedFormat row;
    row.format = kHalves;
    row.name = "halves";
    row.title = "HALVES";
    row.unit = 2;
    row.problem = [](const WeightView& weight) { return groupedProblem(weight, 4); };
    row.expand = [](const PackedMatrix& matrix, std::int64_t index, std::int64_t begin, std::int64_t count,
                    float* out) {
        const float scale = reinterpret_cast<const float*>(matrix.scales)[index];
        for (std::int64_t i = begin; i < begin + count; ++i) {
            const std::uint8_t pair = matrix.row(index)[i / 2];
            *out++ = static_cast<float>((i % 2 == 0 ? pair & 15 : pair >> 4) - 5) * 0.5F * scale;
        }
    };
    return row;
}

testing::TestWeight halvesWeight(std::mt19937& random, std::int64_t out, std::int64_t in) {
    testing::TestWeight weight = testing::integerWeight(random, out, in, {4, in, DType::F32, false, false});
    weight.view.format = kHalves;
    const std::vector<double> bytes = weight.blocks.values(), scales = weight.scales.values();
    for (std::int64_t i = 0; i < out * in; ++i) {
        const auto pair = static_cast<unsigned>(bytes[static_cast<std::size_t>(i / 2)]);
        const int nibble = static_cast<int>(i % 2 == 0 ? pair & 15U : pair >> 4);
        weight.values[static_cast<std::size_t>(i)] =
            static_cast<float>((nibble - 5) * 0.5 * scales[static_cast<std::size_t>(i / in)]);
    }
    return weight;
}

TEST(AddedFormat, MultipliesOnEveryLevelOfTheCpu) {
    const AddedFormat added(halvesFormat());
    std::mt19937 random(1);
    testing::expectProducts(random, 37, 96, 1e-4, [&] { return halvesWeight(random, 37, 96); });
}

TEST(AddedFormat, ExpandsAndIsPricedByItsBytes) {
    const AddedFormat added(halvesFormat());
    std::mt19937 random(2);
    CpuContext context(2);
    const testing::TestWeight weight = halvesWeight(random, 20, 64);
    TestTensor out(DType::F32, Shape{20, 64});
    const Dequantize op{weight.view, out};
    testing::runOp(context, op);
    EXPECT_EQ(out.values(), weight.values);
    EXPECT_EQ(weight.view.bytes(), 20U * 32 + 20 * 4);
    EXPECT_EQ(cost(op, DeviceTraits{}).bytesRead, weight.view.bytes());
    EXPECT_EQ(packedFormat(kHalves).title, "HALVES");
}

TEST(AddedFormat, IsGoneWithItsObject) {
    {
        const AddedFormat added(halvesFormat());
    }
    EXPECT_THROW(packedFormat(kHalves), base::Error);
}

} // namespace
} // namespace vitrine::kernels
