// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/sum_rows.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(SumRowsGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(51);
    for (const auto& [type, rows, n] :
         {std::tuple{DType::BF16, 5000, 2880}, std::tuple{DType::F32, 3000, 33}, std::tuple{DType::F16, 64, 40},
          std::tuple{DType::BF16, 1, 8}, std::tuple{DType::F32, 0, 40}}) {
        for (const bool accumulate : {false, true}) {
            SCOPED_TRACE(::testing::Message() << rows << " x " << n << ", accumulate " << accumulate);
            TestTensor x(type, Shape{rows, n}, n + 8), out(DType::F32, Shape{n});
            x.fillNormal(random);
            if (accumulate) {
                out.fillNormal(random);
            }
            testing::expectSameOnGpu(
                *testing::gpu(), [&](auto&& at) { return SumRows{at(x), at(out), accumulate, {}}; }, {&out}, 2e-6);
        }
    }
}

TEST(SumRowsGpu, DoublesAreRefusedByName) {
    VITRINE_NEEDS_GPU();
    TestTensor x(DType::F32, Shape{1, 8}), out(DType::F64, Shape{8});
    EXPECT_THROW(execute(*testing::gpu(), SumRows{x, out, false, {}}), base::Unsupported);
}

} // namespace
} // namespace vitrine::kernels
