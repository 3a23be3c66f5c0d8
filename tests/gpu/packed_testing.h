// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the tests of products with packed weights share.

#include <functional>

#include "kernels/ops/linear/matmul.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels::testing {

/// One of the forms that packed_rows multiplies. Its scales divide stacks of any number of experts of whole 64 rows.
struct PackedForm {
    std::string name;
    std::function<TestWeight(std::mt19937& random, std::int64_t out, std::int64_t in)> make;
};

inline std::vector<PackedForm> packedForms() {
    const auto integers = [](const IntegerForm& form) {
        return [form](std::mt19937& random, std::int64_t out, std::int64_t in) {
            return integerWeight(random, out, in, form);
        };
    };
    const auto floats = [](std::int64_t rowGroup, std::int64_t group) {
        return [=](std::mt19937& random, std::int64_t out, std::int64_t in) {
            return fp8Weight(random, out, in, rowGroup, group == 0 ? in : group);
        };
    };
    return {{"INT4, groups of 32", integers({4, 32, DType::BF16, false, false})},
            {"INT4, groups of 128 with zeros", integers({4, 128, DType::F16, true, false})},
            {"FP8, blocks of 64 by 128", floats(64, 128)},
            {"FP8, rows", floats(1, 0)}};
}

/// x W^T + bias + residual with x of ordinary size beside the CPU. Rows of the result lie `gap` elements apart.
inline void expectPackedProductAsOnTheCpu(std::mt19937& random, const TestWeight& weight, std::int64_t rows,
                                          DType resultType, std::int64_t gap) {
    const std::int64_t out = weight.view.outFeatures(), in = weight.view.inFeatures();
    SCOPED_TRACE(::testing::Message() << rows << " rows, " << out << " by " << in << ", blocks of "
                                      << weight.view.rowGroup << " by " << weight.view.group
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
