// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Stacks of experts and choices of experts for tests.

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/context/cpu_context.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/ops/linear/linear_view.h"
#include "kernels/ops/linear/weights.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels::testing {

/// Weights of one linear layer of all experts.
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
                                          : denseWeight(at(dense), transposed_);
        out.bias = at(bias);
        return out;
    }

    /// As double, (experts, out, in).
    std::vector<double> values() const {
        if (dense.view().empty()) {
            return packedValues();
        }
        const std::vector<double> stored = dense.values();
        const Shape& shape = dense.view().shape;
        if (!transposed_) {
            return stored;
        }
        std::vector<double> out;
        for (std::int64_t e = 0; e < shape[0]; ++e) {
            for (std::int64_t o = 0; o < shape[2]; ++o) {
                for (std::int64_t i = 0; i < shape[1]; ++i) {
                    out.push_back(stored[static_cast<std::size_t>((e * shape[1] + i) * shape[2] + o)]);
                }
            }
        }
        return out;
    }

private:
    std::vector<double> packedValues() const {
        const WeightView view = packedWeight(WeightFormat::Mxfp4, blocks, scales);
        TestTensor out(DType::F32, view.shape);
        CpuContext context(1);
        Dequantize op{view, out};
        runOp(context, op);
        return out.values();
    }

    bool transposed_;
};

/// k different experts for each token, of the first `used`.
inline TestTensor chooseExperts(std::mt19937& random, std::int64_t tokens, int k, int used) {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> all(static_cast<std::size_t>(used));
    for (int i = 0; i < used; ++i) {
        all[static_cast<std::size_t>(i)] = i;
    }
    for (std::int64_t token = 0; token < tokens; ++token) {
        std::shuffle(all.begin(), all.end(), random);
        ids.insert(ids.end(), all.begin(), all.begin() + k);
    }
    TestTensor tensor(DType::I32, Shape{tokens, k});
    tensor.fillInts(ids);
    return tensor;
}

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
