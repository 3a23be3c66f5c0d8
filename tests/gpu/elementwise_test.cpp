// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/elementwise.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(ElementwiseGpu, AddOfMixedTypesAndStrides) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(9);
    for (const std::int64_t extra : {0, 8, 5}) {
        for (const std::int64_t width : {64, 33}) {
            TestTensor a(DType::BF16, Shape{4, width}, width + extra), b(DType::F32, Shape{4, width});
            TestTensor out(DType::BF16, Shape{4, width}, width + extra);
            a.fillNormal(random);
            b.fillNormal(random);
            testing::expectSameOnGpu(*testing::gpu(), [&](auto&& at) { return Add{at(a), at(b), at(out)}; }, {&out}, 0);
        }
    }
    TestTensor x(DType::F32, Shape{3, 40}), y(DType::F32, Shape{3, 40});
    x.fillNormal(random);
    y.fillNormal(random);
    testing::expectSameOnGpu(*testing::gpu(), [&](auto&& at) { return Add{at(x), at(y), at(x)}; }, {&x}, 0);
}

TEST(ElementwiseGpu, SoftCapAndCasts) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(10);
    TestTensor x(DType::F32, Shape{3, 50}), narrow(DType::BF16, Shape{3, 50}), half(DType::F16, Shape{3, 50}, 56);
    x.fillNormal(random, 40);
    testing::expectSameOnGpu(*testing::gpu(), [&](auto&& at) { return Cast{at(x), at(narrow)}; }, {&narrow}, 0);
    testing::expectSameOnGpu(*testing::gpu(), [&](auto&& at) { return Cast{at(x), at(half)}; }, {&half}, 0);
    testing::expectSameOnGpu(*testing::gpu(), [&](auto&& at) { return SoftCap{at(x), 30}; }, {&x}, 1e-6);
}

TEST(ElementwiseGpu, RowsTimesTheirWeights) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(12);
    for (const auto& [type, width, extra] :
         {std::tuple{DType::BF16, 64, 8}, std::tuple{DType::F32, 33, 0}, std::tuple{DType::BF16, 64, 0}}) {
        TestTensor x(type, Shape{5, width}, width + extra), weights(DType::F32, Shape{5}), out(type, Shape{5, width});
        x.fillNormal(random);
        weights.fillNormal(random);
        testing::expectSameOnGpu(
            *testing::gpu(), [&](auto&& at) { return ScaleRows{at(x), at(weights), at(out)}; }, {&out}, 0);
        testing::expectSameOnGpu(
            *testing::gpu(), [&](auto&& at) { return ScaleRows{at(x), at(weights), at(x)}; }, {&x}, 0);
    }
}

TEST(ElementwiseGpu, SetZero) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(12);
    TestTensor bytes(DType::U8, Shape{1003}), floats(DType::BF16, Shape{3, 50}), none(DType::F32, Shape{0});
    bytes.fillBytes(random, 1, 255);
    floats.fillNormal(random);
    for (TestTensor* tensor : {&bytes, &floats, &none}) {
        testing::expectSameOnGpu(*testing::gpu(), [&](auto&& at) { return SetZero{at(*tensor)}; }, {tensor}, 0);
    }
}

} // namespace
} // namespace vitrine::kernels
