// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Products whose activations become E4M3 too: those that the user asks for, and only then.

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/core/floats.h"
#include "kernels/cuda/jit/kernel_library.h"
#include "kernels/ops/fused/blocks.h"
#include "tests/gpu/packed_testing.h"
#include "tests/kernels/ops/experts/expert_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;
using testing::TestWeight;

CudaContext& asked() {
    static CudaContext context = [] {
        CudaOptions options;
        options.kernelOverrides = {{"fp8_gemm", "w8a8"}};
        return CudaContext(options);
    }();
    return context;
}

std::uint64_t callsOf(CudaContext& context) {
    std::uint64_t calls = 0;
    for (const KernelUse& use : context.library().uses()) {
        calls += use.family == "fp8_gemm" ? use.calls : 0;
    }
    return calls;
}

bool hasWgmma() {
    return testing::gpu()->device().major == 9;
}

/// What 128 inputs of a row are after they were E4M3 with one scale, of which the lowest eight bits are not used.
void roundGroup(double* values, std::int64_t count) {
    float largest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        largest = std::max(largest, static_cast<float>(std::fabs(values[i])));
    }
    const auto scale = std::bit_cast<float>(std::bit_cast<std::uint32_t>(largest / kLargestE4m3) & 0xFFFFFF00U);
    const float inverse = 1 / scale;
    for (std::int64_t i = 0; i < count; ++i) {
        values[i] = static_cast<double>(e4m3ToFloat(floatToE4m3(static_cast<float>(values[i]) * inverse))) * scale;
    }
}

Matmul productOn(testing::OnDevice& device, const TestTensor& x, const TestWeight& weight, const TestTensor& result) {
    Matmul op;
    op.x = device(x);
    op.weight = testing::viewAt(weight, device);
    op.out = device(result);
    return op;
}

TEST(Fp8GemmGpu, SumsOfRoundedInputs) {
    VITRINE_NEEDS_GPU();
    if (!hasWgmma()) {
        GTEST_SKIP() << "W8A8 products need the tensor cores of sm_90";
    }
    std::mt19937 random(71);
    for (const auto& [out, in] : {std::pair{200, 416}, {160, 512}, {384, 2048}}) {
        const TestWeight weight = testing::fp8Weight(random, out, in, 128, 128);
        for (const std::int64_t rows : {65, 400}) {
            SCOPED_TRACE(::testing::Message() << rows << " rows, " << out << " by " << in);
            TestTensor x(DType::BF16, Shape{rows, in}), result(DType::F32, Shape{rows, out});
            x.fillNormal(random);
            testing::OnDevice device(asked());
            Matmul op = productOn(device, x, weight, result);
            const std::uint64_t before = callsOf(asked());
            device.run(op);
            EXPECT_GT(callsOf(asked()), before) << "another kernel made the product";
            device.download(result);
            std::vector<double> values = x.values();
            for (std::int64_t i = 0; i < rows; ++i) {
                for (std::int64_t k = 0; k < in; k += 128) {
                    roundGroup(values.data() + i * in + k, std::min<std::int64_t>(128, in - k));
                }
            }
            std::vector<double> expected(static_cast<std::size_t>(rows * out));
            for (std::int64_t i = 0; i < rows * out; ++i) {
                for (std::int64_t k = 0; k < in; ++k) {
                    expected[static_cast<std::size_t>(i)] += values[static_cast<std::size_t>(i / out * in + k)] *
                                                             weight.values[static_cast<std::size_t>(i % out * in + k)];
                }
            }
            EXPECT_LE(testing::relativeDifference(result.values(), expected), 5e-4);
        }
    }
}

TEST(Fp8GemmGpu, IsNotTakenUnasked) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(72);
    const TestWeight weight = testing::fp8Weight(random, 256, 512, 128, 128);
    TestTensor x(DType::BF16, Shape{100, 512}), result(DType::BF16, Shape{100, 256});
    x.fillNormal(random);
    testing::OnDevice device(*testing::gpu());
    Matmul op = productOn(device, x, weight, result);
    device.run(op);
    EXPECT_EQ(callsOf(*testing::gpu()), 0U);
}

TEST(Fp8GemmGpu, ExpertsAreNearTheExactOnes) {
    VITRINE_NEEDS_GPU();
    if (!hasWgmma()) {
        GTEST_SKIP() << "W8A8 products need the tensor cores of sm_90";
    }
    std::mt19937 random(73);
    constexpr std::int64_t kExperts = 4, kChosen = 2, kHidden = 256, kWidth = 384;
    const TestWeight gateUp = testing::fp8Weight(random, kExperts * 2 * kWidth, kHidden, 128, 128);
    const TestWeight down = testing::fp8Weight(random, kExperts * kHidden, kWidth, 128, 128);
    for (const std::int64_t tokens : {70, 333}) {
        SCOPED_TRACE(::testing::Message() << tokens << " tokens");
        const TestTensor ids = testing::chooseExperts(random, tokens, kChosen, kExperts);
        TestTensor weights(DType::F32, Shape{tokens, kChosen}), x(DType::BF16, Shape{tokens, kHidden});
        TestTensor bias(DType::BF16, Shape{kExperts, kHidden}), out(DType::BF16, Shape{tokens, kHidden});
        weights.fillNormal(random, 0.5);
        x.fillNormal(random, 0.1);
        bias.fillNormal(random);
        const auto make = [&](auto&& at) {
            ExpertMlp op;
            op.x = at(x);
            op.ids = at(ids);
            op.weights = at(weights);
            op.gateUp.weight = testing::stackOf(testing::viewAt(gateUp, at), kExperts);
            op.down.weight = testing::stackOf(testing::viewAt(down, at), kExperts);
            op.down.bias = at(bias);
            op.out = at(out);
            return op;
        };
        const std::uint64_t before = callsOf(asked());
        testing::expectSameOnGpu(asked(), make, {&out}, 4e-2);
        EXPECT_GT(callsOf(asked()), before) << "another kernel made the products";
    }
}

} // namespace
} // namespace vitrine::kernels
