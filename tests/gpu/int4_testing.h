// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the tests of INT4 products share.

#include "kernels/ops/linear/matmul.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels::testing {

/// x W^T + bias + residual with x of ordinary size beside the CPU. Rows of the result lie `gap` elements apart.
inline void expectInt4ProductAsOnTheCpu(std::mt19937& random, const TestWeight& weight, std::int64_t rows,
                                        DType resultType, std::int64_t gap) {
    const std::int64_t out = weight.view.outFeatures(), in = weight.view.inFeatures();
    SCOPED_TRACE(::testing::Message() << rows << " rows, " << out << " by " << in << ", group " << weight.view.group
                                      << (weight.view.zeros.empty() ? "" : ", zeros"));
    TestTensor x(DType::BF16, Shape{rows, in}, in + 8);
    TestTensor bias(DType::BF16, Shape{out}), result(resultType, Shape{rows, out}, out + gap);
    x.fillNormal(random);
    bias.fillNormal(random);
    result.fillNormal(random);
    const auto make = [&](auto&& at) {
        Matmul op;
        op.x = at(x);
        op.weight = viewAt(weight, at);
        op.bias = at(bias);
        op.out = at(result);
        op.residual = op.out;
        return op;
    };
    expectSameOnGpu(*gpu(), make, {&result}, 1e-2);
}

} // namespace vitrine::kernels::testing
