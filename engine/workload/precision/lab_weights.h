// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The matrices of a model that the Precision lab looks at, and one matrix rounded to a format. Stateless; safe from any
// thread.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/quant/matrix_packer.h"
#include "engine/workload/precision/precision_format.h"
#include "engine/workload/precision/precision_result.h"

namespace vitrine::engine {

/// A matrix and where its values are.
struct LabMatrix {
    PackableWeight weight;   ///< that it is, or that it is one expert of
    std::int64_t matrix = 0; ///< number in the weight
    LabWeight lab;           ///< without squaredValues
    bool exact = false;      ///< a router: no format packs it when a model is converted

    MatrixSize size() const { return {lab.out, lab.in}; }
};

/// All linears of the layers, in the order of the model. Embedding, head and norms are not among them.
std::vector<LabMatrix> labMatrices(const ModelConfig& config);

/// Whether the format has whole groups for a matrix of that size.
bool canRound(const PrecisionFormat& format, const MatrixSize& size);

/// Bytes of such a matrix in the format, as its shape says it. REQUIRES canRound().
std::uint64_t packedBytes(const PrecisionFormat& format, const MatrixSize& size);

/// A matrix in a format: rounded to the nearest, as `convert` without calibration does it.
class RoundedMatrix {
public:
    /// `dtype` is the type of the weight, `name` stands in errors. REQUIRES canRound(). Throws BadInput "NAME: what"
    /// for values that are not finite or that the format cannot hold.
    RoundedMatrix(const PrecisionFormat& format, const std::string& name, const MatrixSize& size, kernels::DType dtype,
                  std::span<const float> values, base::ThreadPool& pool);
    ~RoundedMatrix() = default;
    RoundedMatrix(const RoundedMatrix&) = delete; // the view points at its tensors
    RoundedMatrix& operator=(const RoundedMatrix&) = delete;

    const kernels::WeightView& view() const { return view_; }
    std::uint64_t bytes() const { return view_.bytes(); } ///< with scales, zeros and what else unpacks them
    std::vector<float> expanded(base::ThreadPool& pool) const;

private:
    PackedValues packed_;
    kernels::WeightView view_;
};

} // namespace vitrine::engine
