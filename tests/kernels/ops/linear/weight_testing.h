// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Random weights for tests of products, with their values for references.

#include "kernels/context/cpu_context.h"
#include "kernels/formats/nf4_format.h"
#include "kernels/formats/weight_formats.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels::testing {

/// A weight in each storage form with its values as double, (out, in).
struct TestWeight {
    TestTensor dense, blocks, scales, scaleScales;
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

/// The view of a weight whose tensors lie where `at` says.
template <class At> WeightView viewAt(const TestWeight& weight, At&& at) {
    WeightView view = weight.view;
    view.data = at(view.quantized() ? weight.blocks : weight.dense);
    view.scales = at(weight.scales);
    view.scaleScales = at(weight.scaleScales);
    return view;
}

} // namespace vitrine::kernels::testing
