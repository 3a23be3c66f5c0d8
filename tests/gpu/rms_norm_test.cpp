// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rms_norm.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

struct RmsNormCase {
    std::int64_t rows, dim;
    DType x, weight, out;
    std::int64_t extraStride = 0;
};

TEST(RmsNormGpu, AsOnTheCpuInEveryForm) {
    VITRINE_NEEDS_GPU();
    const DType wide = DType::F32, narrow = DType::BF16, half = DType::F16;
    const std::vector<RmsNormCase> cases{{1, 2880, narrow, narrow, narrow},  {37, 64, narrow, narrow, narrow},
                                         {5, 77, wide, narrow, wide, 3},     {9, 128, wide, wide, narrow, 16},
                                         {2, 9000, half, half, half},        {3, 1025, narrow, wide, narrow},
                                         {2, 32768, narrow, narrow, narrow}, {0, 64, narrow, narrow, narrow}};
    std::mt19937 random(5);
    for (const RmsNormCase& item : cases) {
        for (const RmsNormOrder form :
             {RmsNormOrder::CastThenScale, RmsNormOrder::ScaleThenCast, RmsNormOrder::OnePlusWeight}) {
            SCOPED_TRACE(::testing::Message() << item.rows << " x " << item.dim);
            TestTensor x(item.x, Shape{item.rows, item.dim}, item.dim + item.extraStride);
            TestTensor weight(item.weight, Shape{item.dim});
            TestTensor out(item.out, Shape{item.rows, item.dim}, item.dim + item.extraStride);
            x.fillNormal(random, 3);
            weight.fillNormal(random);
            testing::expectSameOnGpu(
                *testing::gpu(), [&](auto&& at) { return RmsNorm{at(x), at(weight), at(out), 1e-5F, form}; }, {&out},
                item.out == wide ? 1e-6 : 4e-3);
        }
    }
}

TEST(RmsNormGpu, InPlace) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(6);
    TestTensor x(DType::BF16, Shape{7, 3000}), weight(DType::BF16, Shape{3000});
    x.fillNormal(random);
    weight.fillNormal(random);
    testing::expectSameOnGpu(
        *testing::gpu(),
        [&](auto&& at) { return RmsNorm{at(x), at(weight), at(x), 1e-6F, RmsNormOrder::ScaleThenCast}; }, {&x}, 4e-3);
}

TEST(RmsNormGpu, DoublesAreRefusedByName) {
    VITRINE_NEEDS_GPU();
    TestTensor x(DType::F64, Shape{1, 8}), weight(DType::F64, Shape{8}), out(DType::F64, Shape{1, 8});
    EXPECT_THROW(execute(*testing::gpu(), RmsNorm{x, weight, out}), base::Unsupported);
}

} // namespace
} // namespace vitrine::kernels
