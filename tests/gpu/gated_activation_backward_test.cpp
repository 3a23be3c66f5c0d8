// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/gated_activation.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

TEST(GatedActivationBackwardGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(31);
    for (const Activation activation : {Activation::Silu, Activation::GeluTanh, Activation::ClampedSwiglu}) {
        for (const GateLayout layout : {GateLayout::Halves, GateLayout::Interleaved}) {
            for (const auto& [type, rows, n] :
                 {std::tuple{DType::BF16, 5, 2880}, std::tuple{DType::F32, 9, 33}, std::tuple{DType::F16, 13, 1024},
                  std::tuple{DType::BF16, 3, 1501}, std::tuple{DType::BF16, 0, 64}}) {
                for (const bool options : {true, false}) {
                    SCOPED_TRACE(::testing::Message() << rows << " x " << n << ", options " << options);
                    TestTensor gateUp(type, Shape{rows, 2 * n}, 2 * n + 8), out(type, Shape{rows, n}, n + 8), none;
                    TestTensor gradOut(type, Shape{rows, n}), weights(DType::F32, Shape{rows});
                    TestTensor dots(DType::F32, Shape{rows}), grads(type, Shape{rows, 2 * n}, 2 * n + 16);
                    gateUp.fillNormal(random, 6);
                    gradOut.fillNormal(random);
                    weights.fillNormal(random);
                    const auto make = [&](auto&& at) {
                        const GatedActivation forward{at(gateUp), at(options ? out : none), activation, layout};
                        return GatedActivationBackward{forward, at(gradOut), at(options ? weights : none),
                                                       at(options ? dots : none), at(grads)};
                    };
                    const double tolerance = type == DType::F32 ? 2e-6 : 4e-3;
                    std::vector<testing::ComparedOutput> outputs{{&grads, tolerance}};
                    if (options) {
                        outputs.push_back({&out, tolerance});
                        outputs.push_back({&dots, 1e-5});
                    }
                    testing::expectSameOnGpu(*testing::gpu(), make, outputs);
                }
            }
        }
    }
}

TEST(GatedActivationBackwardGpu, OverGateUp) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(32);
    for (const GateLayout layout : {GateLayout::Halves, GateLayout::Interleaved}) {
        for (const std::int64_t n : {512, 33}) {
            TestTensor gateUp(DType::BF16, Shape{6, 2 * n}), gradOut(DType::BF16, Shape{6, n});
            gateUp.fillNormal(random, 2);
            gradOut.fillNormal(random);
            testing::expectSameOnGpu(
                *testing::gpu(),
                [&](auto&& at) {
                    const GatedActivation forward{at(gateUp), {}, Activation::Silu, layout};
                    return GatedActivationBackward{forward, at(gradOut), {}, {}, at(gateUp)};
                },
                {&gateUp}, 4e-3);
        }
    }
}

} // namespace
} // namespace vitrine::kernels
