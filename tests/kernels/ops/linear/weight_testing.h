// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Random weights for tests of products, with their values for references.

#include <algorithm>

#include "kernels/context/cpu_context.h"
#include "kernels/formats/nf4_format.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/ops/linear/matmul.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels::testing {

/// A weight in each storage form with its values as double, (out, in).
struct TestWeight {
    TestTensor dense, blocks, scales, scaleScales, zeros, order;
    WeightView view;
    std::vector<double> values;
};

/// A dense matrix with a row stride, or stored (in, out) without one.
inline TestWeight denseWeight(std::mt19937& random, DType dtype, std::int64_t out, std::int64_t in, bool transposed) {
    TestWeight weight;
    weight.dense = transposed ? TestTensor(dtype, Shape{in, out}) : TestTensor(dtype, Shape{out, in}, in + 5);
    weight.dense.fillNormal(random);
    weight.view = kernels::denseWeight(weight.dense, transposed);
    const std::vector<double> stored = weight.dense.values();
    for (std::int64_t o = 0; o < out; ++o) {
        for (std::int64_t i = 0; i < in; ++i) {
            weight.values.push_back(stored[static_cast<std::size_t>(transposed ? i * out + o : o * in + i)]);
        }
    }
    return weight;
}

/// `in` is a multiple of 32.
inline TestWeight mxfp4Weight(std::mt19937& random, std::int64_t out, std::int64_t in) {
    const double table[16] = {0, .5, 1, 1.5, 2, 3, 4, 6, -0.0, -.5, -1, -1.5, -2, -3, -4, -6};
    TestWeight weight;
    weight.blocks = TestTensor(DType::U8, Shape{out, in / 32, 16});
    weight.scales = TestTensor(DType::U8, Shape{out, in / 32});
    weight.blocks.fillBytes(random, 0, 255);
    weight.scales.fillBytes(random, 119, 130);
    weight.view = packedWeight(WeightFormat::Mxfp4, weight.blocks, weight.scales);
    const std::vector<double> bytes = weight.blocks.values();
    const std::vector<double> scales = weight.scales.values();
    for (std::int64_t i = 0; i < out * in; ++i) {
        const auto byte = static_cast<unsigned>(bytes[static_cast<std::size_t>(i / 2)]);
        const unsigned nibble = i % 2 == 0 ? byte & 15U : byte >> 4;
        weight.values.push_back(table[nibble] *
                                std::ldexp(1.0, static_cast<int>(scales[static_cast<std::size_t>(i / 32)]) - 127));
    }
    return weight;
}

/// `in` is a multiple of 64. Scales are floats, or codes.
inline TestWeight nf4Weight(std::mt19937& random, std::int64_t out, std::int64_t in, bool packedScales) {
    const std::int64_t blocks = out * in / 64;
    const float offset = packedScales ? 0.75F : 0;
    TestWeight weight;
    weight.blocks = TestTensor(DType::U8, Shape{out, in / 2});
    weight.blocks.fillBytes(random, 0, 255);
    weight.scales = TestTensor(packedScales ? DType::U8 : DType::F32, Shape{out, in / 64});
    if (packedScales) {
        weight.scales.fillBytes(random, 0, 255);
        weight.scaleScales = TestTensor(DType::F32, Shape{(blocks + 255) / 256});
        weight.scaleScales.fillNormal(random, 0.25);
    } else {
        weight.scales.fillNormal(random);
    }
    weight.view = packedWeight(WeightFormat::Nf4, weight.blocks, weight.scales, weight.scaleScales, offset);
    const std::vector<double> bytes = weight.blocks.values();
    const std::vector<double> scales = weight.scales.values();
    const std::vector<double> scaleScales = packedScales ? weight.scaleScales.values() : std::vector<double>{};
    for (std::int64_t i = 0; i < out * in; ++i) {
        const auto byte = static_cast<unsigned>(bytes[static_cast<std::size_t>(i / 2)]);
        const auto block = static_cast<std::size_t>(i / 64);
        auto scale = static_cast<float>(scales[block]);
        if (packedScales) {
            scale =
                nf4ScaleMap()[static_cast<std::size_t>(scales[block])] * static_cast<float>(scaleScales[block / 256]);
            scale += offset;
        }
        weight.values.push_back(kNf4Values[i % 2 == 0 ? byte >> 4 : byte & 15U] * scale);
    }
    return weight;
}

struct IntegerForm {
    int bits = 4;
    std::int64_t group = 32; ///< need not divide `in`
    DType scaleType = DType::BF16;
    bool zeros = false;
    bool ordered = false; ///< inputs belong to groups in a random order
};

/// Integers with scales for groups. `in` is even.
inline TestWeight integerWeight(std::mt19937& random, std::int64_t out, std::int64_t in, const IntegerForm& form) {
    const std::int64_t groups = (in + form.group - 1) / form.group;
    TestWeight weight;
    weight.blocks = TestTensor(DType::U8, Shape{out, in * form.bits / 8});
    weight.blocks.fillBytes(random, 0, 255);
    weight.scales = TestTensor(form.scaleType, Shape{out, groups});
    weight.scales.fillNormal(random, 0.1);
    std::vector<std::int32_t> groupOf(static_cast<std::size_t>(in));
    for (std::size_t i = 0; i < groupOf.size(); ++i) {
        groupOf[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) / form.group);
    }
    if (form.zeros) {
        weight.zeros = TestTensor(DType::U8, Shape{out, groups});
        weight.zeros.fillBytes(random, 0, (1 << form.bits) - 1);
        weight.view.zeros = weight.zeros;
    }
    if (form.ordered) {
        std::shuffle(groupOf.begin(), groupOf.end(), random);
        weight.order = TestTensor(DType::I32, Shape{in});
        weight.order.fillInts(groupOf);
        weight.view.order = weight.order;
    }
    weight.view.format = form.bits == 4 ? WeightFormat::Int4 : WeightFormat::Int8;
    weight.view.data = weight.blocks;
    weight.view.scales = weight.scales;
    weight.view.group = form.group;
    weight.view.shape = Shape{out, in};
    const std::vector<double> bytes = weight.blocks.values(), scales = weight.scales.values();
    const std::vector<double> zeros = form.zeros ? weight.zeros.values() : std::vector<double>{};
    for (std::int64_t o = 0; o < out; ++o) {
        for (std::int64_t i = 0; i < in; ++i) {
            const auto at =
                static_cast<std::size_t>(o * groups) + static_cast<std::size_t>(groupOf[static_cast<std::size_t>(i)]);
            const std::int64_t element = o * in + i;
            const auto byte =
                static_cast<unsigned>(bytes[static_cast<std::size_t>(form.bits == 8 ? element : element / 2)]);
            const unsigned code = form.bits == 8 ? byte : element % 2 == 0 ? byte & 15U : byte >> 4;
            const double zero = form.zeros ? zeros[at] : form.bits == 4 ? 8 : 128;
            weight.values.push_back(static_cast<float>((code - zero) * scales[at]));
        }
    }
    return weight;
}

/// E4M3 with a scale for blocks of `rowGroup` by `group`.
inline TestWeight fp8Weight(std::mt19937& random, std::int64_t out, std::int64_t in, std::int64_t rowGroup,
                            std::int64_t group) {
    const std::int64_t groups = (in + group - 1) / group;
    TestWeight weight;
    weight.blocks = TestTensor(DType::U8, Shape{out, in});
    weight.blocks.fillBytes(random, 0, 255);
    auto* const stored = static_cast<const TensorView&>(weight.blocks).as<std::uint8_t>();
    std::for_each(stored, stored + out * in, [](std::uint8_t& byte) {
        byte = (byte & 0x7F) > 0x70 ? byte & 0x8F : byte; // no NaN, and nothing that outweighs the rest
    });
    weight.scales = TestTensor(DType::F32, Shape{(out + rowGroup - 1) / rowGroup, groups});
    weight.scales.fillNormal(random, 0.05);
    weight.view.format = WeightFormat::Fp8;
    weight.view.data = weight.blocks;
    weight.view.scales = weight.scales;
    weight.view.group = group;
    weight.view.rowGroup = rowGroup;
    weight.view.shape = Shape{out, in};
    const std::vector<double> bytes = weight.blocks.values(), scales = weight.scales.values();
    for (std::int64_t i = 0; i < out * in; ++i) {
        const auto byte = static_cast<unsigned>(bytes[static_cast<std::size_t>(i)]);
        const int exponent = static_cast<int>(byte >> 3 & 15U);
        const double mantissa = byte & 7U;
        const double size = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
        const double value = byte < 128 ? size : -size;
        const std::int64_t at = i / in / rowGroup * groups + i % in / group;
        weight.values.push_back(static_cast<float>(value * scales[static_cast<std::size_t>(at)]));
    }
    return weight;
}

/// Every form of integers and FP8 that files have, and groups that end within a row.
inline std::vector<TestWeight> groupedWeights(std::mt19937& random, std::int64_t out, std::int64_t in) {
    std::vector<TestWeight> weights;
    weights.push_back(integerWeight(random, out, in, {4, 32, DType::BF16, false, false}));
    weights.push_back(integerWeight(random, out, in, {4, 128, DType::F16, true, false}));
    weights.push_back(integerWeight(random, out, in, {4, in, DType::F32, true, false}));
    weights.push_back(integerWeight(random, out, in, {4, 64, DType::F16, true, true}));
    weights.push_back(integerWeight(random, out, in, {8, 32, DType::F16, false, false}));
    weights.push_back(integerWeight(random, out, in, {8, 128, DType::BF16, true, true}));
    weights.push_back(fp8Weight(random, out, in, 128, 128));
    weights.push_back(fp8Weight(random, out, in, out, in));
    weights.push_back(fp8Weight(random, out, in, 1, in));
    return weights;
}

/// The view of a weight whose tensors lie where `at` says.
template <class At> WeightView viewAt(const TestWeight& weight, At&& at) {
    WeightView view = weight.view;
    view.data = at(view.quantized() ? weight.blocks : weight.dense);
    view.scales = at(weight.scales);
    view.scaleScales = at(weight.scaleScales);
    view.zeros = at(weight.zeros);
    view.order = at(weight.order);
    return view;
}

/// Compares products by weights (out, in) that `make` gives with sums in double, on every level of the CPU and for row
/// counts that take its different kernels.
template <class Make>
void expectProducts(std::mt19937& random, std::int64_t out, std::int64_t in, double tolerance, const Make& make) {
    forEachSimd([&](CpuContext& context) {
        for (const std::int64_t rows : {1, 5, 60}) {
            const TestWeight weight = make();
            TestTensor x(DType::F32, Shape{rows, in}), y(DType::F32, Shape{rows, out});
            x.fillNormal(random);
            Matmul op;
            op.x = x;
            op.weight = weight.view;
            op.out = y;
            runOp(context, op);
            const std::vector<double> xs = x.values();
            std::vector<double> expected(static_cast<std::size_t>(rows * out));
            for (std::int64_t i = 0; i < rows * out; ++i) {
                for (std::int64_t k = 0; k < in; ++k) {
                    expected[static_cast<std::size_t>(i)] += xs[static_cast<std::size_t>(i / out * in + k)] *
                                                             weight.values[static_cast<std::size_t>(i % out * in + k)];
                }
            }
            expectNear(y, expected, tolerance);
        }
    });
}

/// A stack of experts over the rows of one matrix.
inline WeightView stackOf(WeightView view, std::int64_t experts) {
    const auto split = [&](TensorView& field) {
        if (!field.empty()) {
            field.shape = Shape{experts, field.shape[0] / experts, field.shape[1]};
        }
    };
    split(view.data);
    split(view.scales);
    split(view.zeros);
    view.shape = Shape{experts, view.shape[0] / experts, view.shape[1]};
    return view;
}

} // namespace vitrine::kernels::testing
