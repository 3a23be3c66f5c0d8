// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Merge-aware training: where an adapter is trained beside a packed weight, the model computes with the weight that a
// merged checkpoint will have, the sum of both packed again. So training sees what rounding takes away, and merging the
// adapter changes nothing. Gradients pass straight through the rounding (linear_backward.h).

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/training/adapter.h"

namespace vitrine::engine {

/// Packed copies of the adapted packed weights. While it lives, the model computes with them; linears whose weights are
/// not packed keep the adapter beside them. Belongs to the context's thread. The model and the adapter outlive it.
class MergedWeights {
public:
    /// Their values come with refresh(). Throws BadInput when the adapter is beside no packed weight, OutOfMemory.
    MergedWeights(Model& model, Adapter& adapter);
    ~MergedWeights();
    MergedWeights(const MergedWeights&) = delete; // the model has views of it
    MergedWeights& operator=(const MergedWeights&) = delete;

    /// Makes the copies from the adapter as it is now: due when its values changed.
    void refresh();
    /// Gives the model the copies, or puts the whole adapter beside the weights for a while.
    void attach(bool attached);

private:
    struct Copy {
        std::size_t part; ///< of the adapter
        kernels::WeightView weight, merged;
    };

    void allocate();

    Model& model_;
    Adapter& adapter_;
    std::unique_ptr<kernels::Arena> arena_;
    std::vector<kernels::Tensor> tensors_;
    std::vector<Copy> copies_;
};

} // namespace vitrine::engine
