// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/k_quant_format.h"

#include <gtest/gtest.h>
#include <random>

#include "kernels/core/floats.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/ops/linear/weights.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

std::int64_t elementsOf(std::int64_t blockBytes) {
    return blockBytes < 32 ? kQ1Elements : kKQuantElements;
}

/// Random blocks with scales of a moderate size. That they are the floats of the gguf package is
/// tests/engine/quant/gguf_test.cpp's part; here their one row is the reference.
testing::TestWeight blockWeight(const PackedFormat& format, std::int64_t blockBytes, std::mt19937& random,
                                std::int64_t out, std::int64_t in) {
    testing::TestWeight weight;
    weight.blocks = TestTensor(DType::U8, Shape{out, in / elementsOf(blockBytes) * blockBytes});
    weight.blocks.fillBytes(random, 0, 255);
    weight.view.format = format.format;
    weight.view.data = weight.blocks;
    weight.view.shape = Shape{out, in};
    auto* bytes = weight.view.data.as<std::uint8_t>();
    const bool atEnd = blockBytes == kQ6KBytes;
    for (std::int64_t block = 0; block < out * in / elementsOf(blockBytes); ++block) {
        std::uint8_t* const scale = bytes + block * blockBytes + (atEnd ? blockBytes - 2 : 0);
        const std::uint16_t half = floatToF16(0.001F);
        for (int i = 0; i < (atEnd ? 2 : 4); ++i) {
            scale[i] = static_cast<std::uint8_t>(half >> (i % 2 * 8));
        }
    }
    std::vector<float> row(static_cast<std::size_t>(in));
    for (std::int64_t o = 0; o < out; ++o) {
        format.expand(packedMatrixOf(weight.view, 0), o, 0, in, row.data());
        weight.values.insert(weight.values.end(), row.begin(), row.end());
    }
    return weight;
}

class KQuantFormat : public ::testing::TestWithParam<std::pair<const PackedFormat* (*)(), std::int64_t>> {};

const PackedFormat* q4k() {
    return &q4kFormat();
}
const PackedFormat* q6k() {
    return &q6kFormat();
}
const PackedFormat* q5k() {
    return &q5kFormat();
}
const PackedFormat* q41() {
    return &q41Format();
}
const PackedFormat* q51() {
    return &q51Format();
}

TEST_P(KQuantFormat, MultipliesOnEveryLevelOfTheCpu) {
    std::mt19937 random(3);
    testing::expectProducts(random, 19, 768, 1e-3,
                            [&] { return blockWeight(*GetParam().first(), GetParam().second, random, 19, 768); });
}

TEST_P(KQuantFormat, AnyStretchOfARowIsThatOfTheWhole) {
    std::mt19937 random(4);
    const PackedFormat& format = *GetParam().first();
    const testing::TestWeight weight = blockWeight(format, GetParam().second, random, 3, 512);
    std::vector<float> part(64);
    for (std::int64_t begin = 0; begin + 64 <= 512; begin += format.unit) {
        format.expand(packedMatrixOf(weight.view, 0), 2, begin, 64, part.data());
        for (std::int64_t i = 0; i < 64; ++i) {
            EXPECT_EQ(part[static_cast<std::size_t>(i)], weight.values[static_cast<std::size_t>(2 * 512 + begin + i)]);
        }
    }
}

TEST_P(KQuantFormat, IsPricedByItsBytesAndChecked) {
    std::mt19937 random(5);
    const PackedFormat& format = *GetParam().first();
    testing::TestWeight weight = blockWeight(format, GetParam().second, random, 4, 512);
    TestTensor out(DType::F32, Shape{4, 512});
    const Dequantize op{weight.view, out};
    EXPECT_EQ(cost(op, DeviceTraits{}).bytesRead,
              static_cast<std::uint64_t>(4 * 512 / elementsOf(GetParam().second) * GetParam().second));
    EXPECT_EQ(format.problem(weight.view), "");
    weight.view.shape = Shape{4, 500};
    EXPECT_EQ(format.problem(weight.view),
              "rows are not whole blocks of " + std::to_string(elementsOf(GetParam().second)));
    weight.view.shape = Shape{4, 256};
    EXPECT_EQ(format.problem(weight.view), "the data are not U8 blocks without gaps");
}

INSTANTIATE_TEST_SUITE_P(Formats, KQuantFormat,
                         ::testing::Values(std::pair{&q4k, kQ4KBytes}, std::pair{&q5k, kQ5KBytes},
                                           std::pair{&q6k, kQ6KBytes}, std::pair{&q41, kQ41Bytes},
                                           std::pair{&q51, kQ51Bytes}));

} // namespace
} // namespace vitrine::kernels
