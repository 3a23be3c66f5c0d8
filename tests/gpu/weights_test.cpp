// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/weights.h"

#include "kernels/formats/weight_formats.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(DequantizeMxfp4Gpu, ExactForEveryScale) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(4);
    for (const DType type : {DType::BF16, DType::F32}) {
        TestTensor blocks(DType::U8, Shape{3, 7, 5, 16});
        TestTensor scales(DType::U8, Shape{3, 7, 5});
        blocks.fillBytes(random, 0, 255);
        scales.fillBytes(random, 0, 252);
        TestTensor out(type, Shape{3, 7, 160});
        const auto make = [&](auto&& at) {
            return Dequantize{packedWeight(WeightFormat::Mxfp4, at(blocks), at(scales)), at(out)};
        };
        testing::expectSameOnGpu(*testing::gpu(), make, {&out}, 0);
    }
}

TEST(DequantizeNf4Gpu, BitForBitAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(6);
    for (const DType type : {DType::BF16, DType::F16, DType::F32}) {
        for (const bool packedScales : {false, true}) {
            // Groups that leave some of four threads without work, whole grids, and more groups of scales than one.
            for (const auto& [rows, in] : {std::pair{1, 64}, {3, 64}, {5, 192}, {64, 128}, {129, 704}}) {
                SCOPED_TRACE(::testing::Message() << rows << " by " << in << ", packed scales " << packedScales);
                const testing::TestWeight weight = testing::nf4Weight(random, rows, in, packedScales);
                TestTensor out(type, Shape{rows, in});
                const auto make = [&](auto&& at) { return Dequantize{testing::viewAt(weight, at), at(out)}; };
                testing::expectSameOnGpu(*testing::gpu(), make, {&out}, 0);
            }
        }
    }
}

TEST(DequantizeGroupedGpu, BitForBitAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(11);
    for (const DType type : {DType::BF16, DType::F16, DType::F32}) {
        for (const auto& [rows, in] : {std::pair{1, 64}, {130, 100}, {129, 704}}) {
            for (const testing::TestWeight& weight : testing::groupedWeights(random, rows, in)) {
                SCOPED_TRACE(::testing::Message()
                             << rows << " by " << in << ", format " << static_cast<int>(weight.view.format));
                TestTensor out(type, Shape{rows, in});
                const auto make = [&](auto&& at) { return Dequantize{testing::viewAt(weight, at), at(out)}; };
                testing::expectSameOnGpu(*testing::gpu(), make, {&out}, 0);
            }
        }
    }
}

TEST(FillRandomGpu, BitForBitAsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    for (const DType type : {DType::BF16, DType::F16, DType::F32, DType::U8}) {
        for (const float deviation : {0.02F, 0.0F}) {
            for (const std::int64_t elements : {std::int64_t{1}, std::int64_t{4097}, std::int64_t{300001}}) {
                TestTensor out(type, Shape{elements});
                const auto make = [&](auto&& at) {
                    return FillRandom{at(out), 0x1234567890ABCDEFULL, 17, type == DType::U8 ? 120.0F : 0.5F, deviation};
                };
                testing::expectSameOnGpu(*testing::gpu(), make, {&out}, 0);
            }
        }
    }
}

TEST(TransposeCopyGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(5);
    for (const auto& [rows, columns] : {std::pair{1, 70}, {33, 31}, {64, 96}, {200, 65}}) {
        for (const DType type : {DType::U8, DType::BF16, DType::F32, DType::F64}) {
            TestTensor x(type, Shape{2, rows, columns});
            if (type == DType::U8) {
                x.fillBytes(random, 0, 255);
            } else {
                x.fillNormal(random);
            }
            TestTensor out(type, Shape{2, columns, rows});
            const auto make = [&](auto&& at) { return TransposeCopy{at(x), at(out)}; };
            testing::expectSameOnGpu(*testing::gpu(), make, {&out}, 0);
        }
    }
}

} // namespace
} // namespace vitrine::kernels
