// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Merge-aware training of the weights themselves: a saved model packs what it had packed before, and rounding spoils
// what training made. So the model computes with the values that the saved weights will have, while the optimizer
// changes float32 masters. Gradients pass straight through the rounding.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/model/model.h"
#include "engine/training/trained_state.h"
#include "kernels/ops/linear/adapter_view.h"

namespace vitrine::engine {

/// Rounds trained dense values to the format in which they will be saved. Belongs to the context's thread. The model
/// and the state outlive it.
class RoundedWeights {
public:
    /// `source` says what is saved packed. Throws BadInput where none of the trained tensors is, OutOfMemory. REQUIRES
    /// a dequantized model: unpacked values are BF16 whatever the model computes in, so they have masters.
    RoundedWeights(Model& model, const ModelConfig& source, const TrainedState& state);

    /// Makes the values from the masters as they are now: due when these changed.
    void refresh();

private:
    /// Rows that are rounded together.
    struct Piece {
        kernels::WeightFormat format;
        kernels::TensorView value, master; ///< (rows, in)
        kernels::WeightView zero;          ///< (rows, 1, in)
        kernels::AdapterView adapter;      ///< of zero: the masters
        kernels::WeightView packed;        ///< (rows, 1, in): both merged
        kernels::WeightView packedMatrix;  ///< the same as (rows, in)
    };

    void addPieces(Model& model, const ModelConfig& source, const TrainedState& state);
    void allocate();

    kernels::Context& context_;
    std::vector<Piece> pieces_;
    std::unique_ptr<kernels::Arena> arena_;
    kernels::Tensor zero_, packed_, ones_; ///< pieces take turns in them
};

} // namespace vitrine::engine
