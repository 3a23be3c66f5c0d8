// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/kv_write.h"

#include "tests/kernels/ops/attention/kv_reference.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TestTensor ints(const Shape& shape, const std::vector<std::int32_t>& values) {
    TestTensor tensor(DType::I32, shape);
    tensor.fillInts(values);
    return tensor;
}

TEST(KvWrite, TokensLandInTheirPagesRounded) {
    CpuContext context(2);
    std::mt19937 random(1);
    TestTensor keys(DType::BF16, Shape{5, 4, 2, 3}, 4 * 2 * 3 + 8);
    TestTensor values(DType::BF16, Shape{5, 4, 2, 3}, 4 * 2 * 3 + 16);
    TestTensor k(DType::F32, Shape{3, 2, 3}, 10);
    TestTensor v(DType::F32, Shape{3, 2, 3});
    k.fillNormal(random);
    v.fillNormal(random);
    const TestTensor table = ints(Shape{2, 2}, {4, 1, 2, -1});
    const TestTensor first = ints(Shape{2}, {0, 10});
    const TestTensor lengths = ints(Shape{2}, {7, 2});
    const TestTensor sequence = ints(Shape{3}, {0, 0, 1});
    const TestTensor positions = ints(Shape{3}, {3, 6, 11});
    testing::runOp(context, KvWrite{k, v, sequence, positions, KvView{keys, values, table, first, lengths}});
    const std::vector<double> storedK = keys.values();
    const std::vector<double> storedV = values.values();
    // (page, slot): position 3 of sequence 0 is slot 3 of page 4, 6 is slot 2 of page 1; 11 of sequence 1 is slot 1
    // of 2.
    const std::size_t expected[] = {4 * 4 + 3, 1 * 4 + 2, 2 * 4 + 1};
    std::size_t written = 0;
    for (std::size_t slot = 0; slot < 20; ++slot) {
        written += std::isnan(storedK[slot * 6]) ? 0 : 1;
    }
    EXPECT_EQ(written, 3U);
    for (std::size_t token = 0; token < 3; ++token) {
        for (std::size_t i = 0; i < 6; ++i) {
            EXPECT_NEAR(storedK[expected[token] * 6 + i], k.values()[token * 6 + i], 0.02);
            EXPECT_NEAR(storedV[expected[token] * 6 + i], v.values()[token * 6 + i], 0.02);
        }
    }
    EXPECT_TRUE(keys.guardsIntact());
    EXPECT_TRUE(values.guardsIntact());
}

TEST(KvWrite, ARingKeepsOnlyWhatTheWindowHolds) {
    CpuContext context(2);
    TestTensor keys(DType::F32, Shape{2, 3, 1, 1});
    TestTensor values(DType::F32, Shape{2, 3, 1, 1});
    TestTensor k(DType::F32, Shape{9, 1, 1});
    k.fill({0, 1, 2, 3, 4, 5, 6, 7, 8});
    const TestTensor table = ints(Shape{1, 2}, {1, 0});
    const TestTensor first = ints(Shape{1}, {4}); // of 9 tokens the last 5 stay, in a ring of 6
    const TestTensor lengths = ints(Shape{1}, {5});
    const TestTensor sequence = ints(Shape{9}, std::vector<std::int32_t>(9, 0));
    const TestTensor positions = ints(Shape{9}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
    testing::runOp(context, KvWrite{k, k, sequence, positions, KvView{keys, values, table, first, lengths, 0, true}});
    // Slots 0, 1, 2 are page 1: positions 6, 7, 8; slots 4 and 5 of page 0: positions 4 and 5.
    const std::vector<double> stored = keys.values();
    EXPECT_EQ(stored[3], 6);
    EXPECT_EQ(stored[4], 7);
    EXPECT_EQ(stored[5], 8);
    EXPECT_TRUE(std::isnan(stored[0]));
    EXPECT_EQ(stored[1], 4);
    EXPECT_EQ(stored[2], 5);
}

TEST(KvWrite, BytesComeWithTheirScalesAndRowsAreRoundedInPlace) {
    CpuContext context(2);
    std::mt19937 random(2);
    for (const DType type : {DType::I8, DType::F8E4M3}) {
        for (const bool writes : {true, false}) {
            TestTensor keys(type, Shape{3, 4, 2, 6}, 4 * 2 * 6 + 8);
            TestTensor values(type, Shape{3, 4, 2, 6});
            TestTensor keyScales(DType::F32, Shape{3, 2, 4}, 11);
            TestTensor valueScales(DType::F32, Shape{3, 2, 4});
            TestTensor k(DType::F32, Shape{2, 2, 6}, 14);
            TestTensor v(DType::F32, Shape{2, 2, 6});
            k.fillNormal(random);
            v.fillNormal(random, 1e-5);
            const std::vector<double> expectedK = testing::asCached(type, k.values(), 6);
            const std::vector<double> expectedV = testing::asCached(type, v.values(), 6);
            const TestTensor table = ints(Shape{1, 2}, {2, 1});
            const TestTensor first = ints(Shape{1}, {1});
            const TestTensor lengths = ints(Shape{1}, {7});
            const TestTensor sequence = ints(Shape{2}, {0, 0});
            const TestTensor positions = ints(Shape{2}, {0, 6}); // the first is older than the window
            testing::runOp(context,
                           KvWrite{k, v, sequence, positions,
                                   KvView{keys, values, table, first, lengths, 0, false, keyScales, valueScales}, true,
                                   writes});
            EXPECT_EQ(k.values(), expectedK);
            EXPECT_EQ(v.values(), expectedV);
            // Position 6 is slot 1 of page 1.
            for (std::int64_t head = 0; head < 2; ++head) {
                const float scale = keyScales.view().as<const float>()[11 + head * 4 + 1];
                EXPECT_EQ(std::isnan(scale), !writes);
                for (std::int64_t i = 0; writes && i < 6; ++i) {
                    const int byte = keys.view().as<const std::uint8_t>()[keys.view().stride0() + 12 + head * 6 + i];
                    EXPECT_EQ(testing::kvByteValue(type, byte) * scale,
                              expectedK[static_cast<std::size_t>(12 + head * 6 + i)]);
                }
            }
            const std::vector<double> scales = valueScales.values();
            EXPECT_EQ(std::count_if(scales.begin(), scales.end(), [](double x) { return !std::isnan(x); }),
                      writes ? 2 : 0);
            EXPECT_TRUE(keys.guardsIntact() && keyScales.guardsIntact() && valueScales.guardsIntact());
        }
    }
}

TEST(KvWrite, ScalesBelongToBytesAlone) {
    TestTensor k(DType::F32, Shape{1, 1, 4});
    const TestTensor bytes(DType::I8, Shape{1, 4, 1, 4});
    const TestTensor floats(DType::BF16, Shape{1, 4, 1, 4});
    const TestTensor scales(DType::F32, Shape{1, 1, 4});
    const TestTensor table = ints(Shape{1, 1}, {0});
    const TestTensor one = ints(Shape{1}, {1});
    const TestTensor zero = ints(Shape{1}, {0});
    testing::expectCheckNames(KvWrite{k, k, zero, zero, KvView{bytes, bytes, table, zero, one}}, "cache.keyScales");
    testing::expectCheckNames(
        KvWrite{k, k, zero, zero, KvView{floats, floats, table, zero, one, 0, false, scales, scales}},
        "cache.keyScales");
}

TEST(KvWrite, MistakesThrow) {
    CpuContext context(2);
    TestTensor keys(DType::F32, Shape{1, 2, 1, 1});
    TestTensor values(DType::F32, Shape{1, 2, 1, 1});
    TestTensor k(DType::F32, Shape{1, 1, 1});
    const TestTensor table = ints(Shape{1, 1}, {0});
    const TestTensor first = ints(Shape{1}, {0});
    const TestTensor lengths = ints(Shape{1}, {2});
    const auto write = [&](std::int32_t sequence, std::int32_t position) {
        const TestTensor sequences = ints(Shape{1}, {sequence});
        const TestTensor positions = ints(Shape{1}, {position});
        testing::runOp(context, KvWrite{k, k, sequences, positions, KvView{keys, values, table, first, lengths}});
    };
    write(0, 1);
    EXPECT_THROW(write(1, 0), base::Internal);
    EXPECT_THROW(write(-1, 0), base::Internal);
    EXPECT_THROW(write(0, 2), base::Internal);
}

} // namespace
} // namespace vitrine::kernels
