// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rope.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(RopeGpu, AsOnTheCpuFarIntoTheContext) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(7);
    for (const auto& [type, dim, extra] : {std::tuple{DType::BF16, 64, 0}, std::tuple{DType::F32, 128, 24},
                                           std::tuple{DType::F16, 30, 0}, std::tuple{DType::BF16, 80, 3}}) {
        SCOPED_TRACE(dim);
        TestTensor x(type, Shape{6, 5, dim}, 5 * dim + extra), positions(DType::I32, Shape{6});
        TestTensor frequencies(DType::F32, Shape{dim / 2});
        x.fillNormal(random);
        positions.fillInts({0, 1, 77, 4095, 131071, 1000000});
        std::vector<double> inverse;
        for (int i = 0; i < dim / 2; ++i) {
            inverse.push_back(std::pow(150000.0, -2.0 * i / dim));
        }
        frequencies.fill(inverse);
        for (const auto& [back, interleaved] :
             {std::pair{false, false}, std::pair{true, false}, std::pair{true, true}}) {
            testing::expectSameOnGpu(
                *testing::gpu(),
                [&](auto&& at) { return Rope{at(x), at(positions), at(frequencies), 1.3F, back, interleaved}; }, {&x},
                type == DType::F32 ? 1e-6 : 2e-3);
        }
    }
}

} // namespace
} // namespace vitrine::kernels
