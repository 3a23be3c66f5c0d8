// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// FP8 weights are multiplied exactly: sums in double differ from those of the GPU by the rounding of float32 sums only,
// whichever elements a weight has.

#include "tests/gpu/packed_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;
using testing::TestWeight;

/// What float32 sums may differ by, as a share of the spread. Weights rounded to BF16 would differ by 1e-3.
constexpr double kFloatSums = 2e-5;

std::vector<double> productInDouble(const TestTensor& x, const TestWeight& weight) {
    const std::int64_t rows = x.view().shape[0], out = weight.view.outFeatures(), in = weight.view.inFeatures();
    const std::vector<double> values = x.values();
    std::vector<double> sums(static_cast<std::size_t>(rows * out));
    for (std::int64_t i = 0; i < rows * out; ++i) {
        for (std::int64_t k = 0; k < in; ++k) {
            sums[static_cast<std::size_t>(i)] += values[static_cast<std::size_t>(i / out * in + k)] *
                                                 weight.values[static_cast<std::size_t>(i % out * in + k)];
        }
    }
    return sums;
}

void expectExact(std::mt19937& random, const TestWeight& weight, std::int64_t rows, double size) {
    const std::int64_t out = weight.view.outFeatures(), in = weight.view.inFeatures();
    SCOPED_TRACE(::testing::Message() << rows << " rows, " << out << " by " << in << ", blocks of "
                                      << weight.view.rowGroup << " by " << weight.view.group << ", x of " << size);
    TestTensor x(DType::BF16, Shape{rows, in}), result(DType::F32, Shape{rows, out});
    x.fillNormal(random, size);
    testing::OnDevice device(*testing::gpu());
    Matmul op;
    op.x = device(x);
    op.weight = testing::viewAt(weight, device);
    op.out = device(result);
    device.run(op);
    device.download(result);
    EXPECT_LE(testing::relativeDifference(result.values(), productInDouble(x, weight)), kFloatSums);
}

TEST(Fp8RowsGpu, SumsAreThoseOfDouble) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(61);
    for (const auto& [out, in] : {std::pair{200, 416}, {384, 1024}}) {
        for (const TestWeight& weight :
             {testing::fp8Weight(random, out, in, 128, 128), testing::fp8Weight(random, out, in, 1, in),
              testing::fp8Weight(random, out, in, out, in), testing::fp8Weight(random, out, in, 100, 256)}) {
            for (const std::int64_t rows : {1, 8, 16, 40}) {
                expectExact(random, weight, rows, 1);
            }
        }
    }
}

TEST(Fp8RowsGpu, SmallAndLargeInputsLoseNothing) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(62);
    const TestWeight weight = testing::fp8Weight(random, 128, 256, 128, 128);
    for (const double size : {1e-8, 1e-3, 1e4, 1e8}) {
        expectExact(random, weight, 3, size);
    }
}

/// A row of x picks one column: the result is an element and nothing else.
TEST(Fp8RowsGpu, EveryElementIsExact) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(63);
    constexpr std::int64_t kOut = 256, kIn = 32;
    TestWeight weight = testing::fp8Weight(random, kOut, kIn, kOut, kIn);
    weight.scales.fill({1.0});
    auto* const bytes = static_cast<const TensorView&>(weight.blocks).as<std::uint8_t>();
    for (std::int64_t i = 0; i < kOut * kIn; ++i) {
        const auto code = static_cast<std::uint8_t>(i / kIn);
        bytes[i] = (code & 0x7F) == 0x7F ? std::uint8_t{0} : code; // no number
    }
    std::vector<double> identity(static_cast<std::size_t>(kIn * kIn));
    for (std::int64_t i = 0; i < kIn; ++i) {
        identity[static_cast<std::size_t>(i * kIn + i)] = 1;
    }
    TestTensor x(DType::BF16, Shape{kIn, kIn}), result(DType::F32, Shape{kIn, kOut});
    x.fill(identity);
    const auto make = [&](auto&& at) {
        Matmul op;
        op.x = at(x);
        op.weight = testing::viewAt(weight, at);
        op.out = at(result);
        return op;
    };
    testing::expectSameOnGpu(*testing::gpu(), make, {&result}, 0);
}

} // namespace
} // namespace vitrine::kernels
