// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The techniques that trade time for memory during a training step. They change the memory and the time of a step, and
// its results only by rounding.

#include <cstdint>

namespace vitrine::engine {

/// What a layer's forward pass leaves for its backward pass.
enum class Checkpointing : std::uint8_t {
    None,    ///< every tensor that the backward pass reads
    Layer,   ///< the layer's input; the backward pass computes the rest again
    Offload, ///< the layer's input, in host memory
};

struct MemoryTechniques {
    Checkpointing checkpointing = Checkpointing::Layer;
    /// Tokens whose logits exist at the same time; 0: all of them.
    std::int64_t lossChunk = 0;
    /// Tokens that pass an MLP together, forward and backward; 0: all of them. Fewer than all: the backward pass
    /// computes the MLP again, whatever `checkpointing` says.
    std::int64_t mlpTile = 0;
};

} // namespace vitrine::engine
