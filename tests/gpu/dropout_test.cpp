// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/dropout.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(DropoutGpu, ChoosesAsTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(61);
    const std::uint64_t seed = 0x123456789ABCDEFULL, stream = 0xFEDCBA9876543210ULL;
    for (const auto& [type, result, n] :
         {std::tuple{DType::BF16, DType::BF16, 2880}, std::tuple{DType::F32, DType::F32, 33},
          std::tuple{DType::F16, DType::F32, 64}}) {
        for (const float probability : {0.0F, 0.1F, 0.75F}) {
            SCOPED_TRACE(::testing::Message() << n << ", probability " << probability);
            TestTensor x(type, Shape{9, n}, n + 8), out(result, Shape{9, n}, n + 16);
            x.fillNormal(random);
            testing::expectSameOnGpu(
                *testing::gpu(), [&](auto&& at) { return Dropout{at(x), at(out), probability, seed, stream, 1000003}; },
                {&out}, 0);
        }
    }
    TestTensor x(DType::BF16, Shape{3, 40});
    x.fillNormal(random);
    testing::expectSameOnGpu(*testing::gpu(), [&](auto&& at) { return Dropout{at(x), at(x), 0.5F, 1, 2, 0}; }, {&x}, 0);
}

} // namespace
} // namespace vitrine::kernels
