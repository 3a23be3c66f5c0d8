// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/kv_rows.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "base/error.h"
#include "kernels/core/floats.h"
#include "tests/kernels/ops/attention/kv_reference.h"

namespace vitrine::kernels {
namespace {

constexpr DType kTypes[] = {DType::I8, DType::F8E4M3};

struct Kept {
    std::vector<std::uint8_t> bytes;
    float scale = 0;
    std::vector<float> read;
};

Kept keep(DType dtype, const std::vector<float>& row) {
    Kept kept;
    const auto count = static_cast<std::int64_t>(row.size());
    kept.bytes.resize(row.size());
    kept.read.resize(row.size());
    kept.scale = quantizeKvRow(dtype, row.data(), count, kept.bytes.data());
    dequantizeKvRow(dtype, kept.bytes.data(), kept.scale, count, kept.read.data());
    return kept;
}

TEST(KvRows, E4m3IsThatOfOcp) {
    for (int byte = 0; byte < 256; ++byte) {
        const auto bits = static_cast<std::uint8_t>(byte);
        const double expected = testing::kvByteValue(DType::F8E4M3, byte);
        if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(e4m3ToFloat(bits)));
            continue;
        }
        EXPECT_EQ(e4m3ToFloat(bits), expected);
        EXPECT_EQ(floatToE4m3(static_cast<float>(expected)), bits);
    }
    EXPECT_EQ(e4m3ToFloat(0x7E), 448);
    EXPECT_EQ(floatToE4m3(464), 0x7E) << "half way to 480, which is no number";
    EXPECT_EQ(floatToE4m3(1e30F), 0x7E);
    EXPECT_EQ(floatToE4m3(-std::numeric_limits<float>::infinity()), 0xFE);
    EXPECT_EQ(floatToE4m3(std::numeric_limits<float>::quiet_NaN()) & 0x7F, 0x7F);
    EXPECT_EQ(floatToE4m3(1.0625F), 0x38) << "a tie goes to the even neighbour";
    EXPECT_EQ(floatToE4m3(1.1875F), 0x3A);
    EXPECT_EQ(floatToE4m3(0x1.0p-10F), 0x00);
    EXPECT_EQ(floatToE4m3(0x1.8p-9F), 0x02);
}

TEST(KvRows, EveryElementIsTheNearestAndASecondWriteChangesNothing) {
    std::mt19937 random(3);
    for (const DType dtype : kTypes) {
        SCOPED_TRACE(dtypeName(dtype));
        for (const float deviation : {1e-30F, 1e-6F, 1.0F, 700.0F, 1e30F}) {
            std::normal_distribution<float> normal(0, deviation);
            std::vector<float> row(77);
            for (float& x : row) {
                x = normal(random);
            }
            const Kept kept = keep(dtype, row);
            const std::vector<double> expected =
                testing::asCached(dtype, {row.begin(), row.end()}, static_cast<std::int64_t>(row.size()));
            for (std::size_t i = 0; i < row.size(); ++i) {
                ASSERT_EQ(kept.read[i], expected[i]) << row[i] << " by " << kept.scale;
            }
            const Kept again = keep(dtype, kept.read);
            EXPECT_EQ(again.scale, kept.scale);
            EXPECT_EQ(again.bytes, kept.bytes);
        }
    }
}

TEST(KvRows, ZerosAndTinyRowsAreZeros) {
    for (const DType dtype : kTypes) {
        for (const float x : {0.0F, -0.0F, 1e-38F, std::numeric_limits<float>::denorm_min()}) {
            const Kept kept = keep(dtype, {x, 0, -x});
            EXPECT_EQ(kept.scale, 0);
            EXPECT_EQ(kept.read, (std::vector<float>{0, 0, 0}));
        }
    }
}

TEST(KvRows, ARowWithNoNumberReadsAsNone) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const DType dtype : kTypes) {
        for (const float x : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
            for (const float read : keep(dtype, {1, x, 2}).read) {
                EXPECT_TRUE(std::isnan(read));
            }
        }
        const float largest = std::numeric_limits<float>::max();
        for (const float read : keep(dtype, {largest, -largest}).read) {
            EXPECT_NEAR(std::fabs(read) / largest, 1, 1e-4);
        }
    }
}

TEST(KvRows, OtherTypesAreRefused) {
    float x = 0;
    EXPECT_THROW(quantizeKvRow(DType::BF16, &x, 1, &x), base::Internal);
    EXPECT_THROW(dequantizeKvRow(DType::U8, &x, 1, 1, &x), base::Internal);
}

} // namespace
} // namespace vitrine::kernels
