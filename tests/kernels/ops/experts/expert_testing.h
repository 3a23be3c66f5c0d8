// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Random stacks of weights and random choices of experts for tests, with what references need of them.

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/formats/weight_formats.h"
#include "kernels/ops/experts/group_pairs.h"
#include "kernels/ops/linear/linear_view.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels::testing {

/// Stacks in every storage form with values as double (experts, out, in).
struct TestStack {
    TestTensor dense, blocks, scales;
    WeightView view;
    std::vector<double> values;

    /// The view where `at` has the tensors.
    template <class At> WeightView on(At& at) const {
        return view.quantized() ? packedWeight(view.format, at(blocks), at(scales))
                                : kernels::denseWeight(at(dense), view.transposed);
    }
};

inline TestStack denseStack(std::mt19937& random, DType type, std::int64_t experts, std::int64_t out, std::int64_t in,
                            bool transposed) {
    TestStack stack;
    stack.dense = transposed ? TestTensor(type, Shape{experts, in, out}) : TestTensor(type, Shape{experts, out, in});
    stack.dense.fillNormal(random);
    stack.view = kernels::denseWeight(stack.dense, transposed);
    const std::vector<double> stored = stack.dense.values();
    for (std::int64_t e = 0; e < experts; ++e) {
        for (std::int64_t o = 0; o < out; ++o) {
            for (std::int64_t i = 0; i < in; ++i) {
                stack.values.push_back(
                    stored[static_cast<std::size_t>(e * out * in + (transposed ? i * out + o : o * in + i))]);
            }
        }
    }
    return stack;
}

inline TestStack mxfp4Stack(std::mt19937& random, std::int64_t experts, std::int64_t out, std::int64_t in) {
    const double table[8] = {0, .5, 1, 1.5, 2, 3, 4, 6};
    TestStack stack;
    stack.blocks = TestTensor(DType::U8, Shape{experts, out, in / 32, 16});
    stack.scales = TestTensor(DType::U8, Shape{experts, out, in / 32});
    stack.blocks.fillBytes(random, 0, 255);
    stack.scales.fillBytes(random, 122, 128);
    stack.view = packedWeight(WeightFormat::Mxfp4, stack.blocks, stack.scales);
    const std::vector<double> bytes = stack.blocks.values();
    const std::vector<double> scales = stack.scales.values();
    for (std::size_t i = 0; i < static_cast<std::size_t>(experts * out * in); ++i) {
        const auto byte = static_cast<unsigned>(bytes[i / 2]);
        const unsigned nibble = i % 2 == 0 ? byte & 15U : byte >> 4;
        const double sign = (nibble & 8U) != 0 ? -1 : 1;
        stack.values.push_back(sign * table[nibble & 7U] * std::ldexp(1.0, static_cast<int>(scales[i / 32]) - 127));
    }
    return stack;
}

/// k different experts for each token, of the first `used`.
inline TestTensor chooseExperts(std::mt19937& random, std::int64_t tokens, std::int64_t k, std::int64_t used) {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> all(static_cast<std::size_t>(used));
    std::iota(all.begin(), all.end(), 0);
    for (std::int64_t token = 0; token < tokens; ++token) {
        std::shuffle(all.begin(), all.end(), random);
        ids.insert(ids.end(), all.begin(), all.begin() + k);
    }
    TestTensor tensor(DType::I32, Shape{tokens, k});
    tensor.fillInts(ids);
    return tensor;
}

/// Chosen experts and the rows that GroupPairs makes of them.
struct TestGroups {
    TestTensor ids, starts, pairs, places;

    TestGroups(std::mt19937& random, std::int64_t tokens, std::int64_t k, std::int64_t experts, std::int64_t used)
        : ids(chooseExperts(random, tokens, k, used)), starts(DType::I32, Shape{experts + 1}),
          pairs(DType::I32, Shape{tokens * k}), places(DType::I32, Shape{tokens * k}) {
        CpuContext context(1);
        runOp(context, GroupPairs{ids, starts, pairs, places});
    }
    std::int64_t rows() const { return pairs.view().shape[0]; }
    /// The expert of each row.
    std::vector<std::int64_t> expertOfRow() const {
        std::vector<std::int64_t> experts;
        const std::vector<double> first = starts.values();
        for (std::size_t expert = 0; expert + 1 < first.size(); ++expert) {
            experts.insert(experts.end(), static_cast<std::size_t>(first[expert + 1] - first[expert]),
                           static_cast<std::int64_t>(expert));
        }
        return experts;
    }
};

/// A linear of all experts, in any storage form.
struct ExpertStack {
    TestTensor blocks, scales, dense, bias;

    ExpertStack(std::mt19937& random, DType format, std::int64_t experts, std::int64_t out, std::int64_t in,
                bool transposed, DType biasType)
        : transposed_(transposed) {
        if (format == DType::U8) {
            blocks = TestTensor(DType::U8, Shape{experts, out, in / 32, 16});
            scales = TestTensor(DType::U8, Shape{experts, out, in / 32});
            blocks.fillBytes(random, 0, 255);
            scales.fillBytes(random, 119, 125);
        } else {
            dense = TestTensor(format, transposed ? Shape{experts, in, out} : Shape{experts, out, in});
            dense.fillNormal(random, 1 / std::sqrt(static_cast<double>(in)));
        }
        if (biasType != DType::None) {
            bias = TestTensor(biasType, Shape{experts, out});
            bias.fillNormal(random);
        }
    }
    template <class At> LinearView view(At& at) const {
        LinearView out;
        out.weight = dense.view().empty() ? packedWeight(WeightFormat::Mxfp4, at(blocks), at(scales))
                                          : kernels::denseWeight(at(dense), transposed_);
        out.bias = at(bias);
        return out;
    }

private:
    bool transposed_;
};

/// starts of experts with so many rows.
inline TestTensor startsOf(const std::vector<std::int32_t>& rows) {
    std::vector<std::int32_t> starts = {0};
    for (const std::int32_t count : rows) {
        starts.push_back(starts.back() + count);
    }
    TestTensor tensor(DType::I32, Shape{static_cast<std::int64_t>(starts.size())});
    tensor.fillInts(starts);
    return tensor;
}

} // namespace vitrine::kernels::testing
