// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Quantization-aware training of the weights themselves: the model computes with the values that its packed weights
// have, while the optimizer changes float32 masters. Gradients pass straight through the rounding (Bengio and others
// 2013). Masters are quantized once after an update, into packed copies that stay where they are; what reads packed
// weights reads the same bytes, so that fake and real quantization are equal.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/quant/packing.h"
#include "engine/training/trained_state.h"

namespace vitrine::engine {

/// A trained tensor that has a packed copy.
struct PackedTarget {
    std::size_t tensor = 0; ///< of the state; it has a master
    WeightPacking packing;
    kernels::DType type = kernels::DType::F32; ///< what its values are rounded to before (PackWeight)
};

/// The trained tensors that the source's files have packed, with its packings, of float32. Empty: none is.
std::vector<PackedTarget> packedInSource(const ModelConfig& source, const std::vector<TrainedTensor>& tensors);

/// Packed copies of trained tensors. Belongs to the context's thread. The model and the state outlive it.
class PackedCopies {
public:
    /// Throws BadInput "TENSOR: what to do" for a weight that cannot be packed so, OutOfMemory.
    PackedCopies(Model& model, const TrainedState& state, const std::vector<PackedTarget>& targets);

    /// Makes the copies from the masters as they are now, and the values that the model computes with from them: due
    /// when the masters changed.
    void refresh();
    /// The share of the codes of all copies that the last refresh() changed. Waits for it. 0 on Meta.
    double changedShare() const;
    /// Of the target with this number, in memory that stays.
    const kernels::WeightView& copy(std::size_t target) const { return copies_[target].packed; }

private:
    struct Copy {
        kernels::TensorView master, value;
        kernels::WeightView packed;
        kernels::DType type;
        kernels::IntegerRule rule;
    };

    void addCopy(const Model& model, const TrainedState& state, const PackedTarget& target);
    void allocate(const TrainedState& state, const std::vector<PackedTarget>& targets);

    kernels::Context& context_;
    std::vector<Copy> copies_;
    std::unique_ptr<kernels::Arena> arena_;
    std::vector<kernels::Tensor> tensors_;
    kernels::Tensor changed_; ///< (1) I64
};

} // namespace vitrine::engine
