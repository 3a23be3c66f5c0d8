// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/gated_activation.h"

#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(GatedActivationGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(11);
    for (const Activation activation : {Activation::Silu, Activation::GeluTanh, Activation::ClampedSwiglu}) {
        for (const GateLayout layout : {GateLayout::Halves, GateLayout::Interleaved}) {
            for (const auto& [type, n] : {std::pair{DType::BF16, 2880}, std::pair{DType::F32, 33}}) {
                TestTensor gateUp(type, Shape{5, 2 * n}), out(type, Shape{5, n}, n + 8);
                gateUp.fillNormal(random, 6);
                testing::expectSameOnGpu(
                    *testing::gpu(),
                    [&](auto&& at) { return GatedActivation{at(gateUp), at(out), activation, layout}; }, {&out},
                    type == DType::F32 ? 1e-6 : 4e-3);
            }
        }
    }
}

} // namespace
} // namespace vitrine::kernels
