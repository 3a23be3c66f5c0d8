// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Dropout of the inputs of adapters while they are trained. The model's linears have none: a pass works with copies of
// the views that have it. What is dropped depends on the seed, the linear and the token, so that a layer that is
// computed again, or in tiles, drops the same.

#include <cstdint>

#include "engine/model/decoder_layer.h"

namespace vitrine::engine {

struct LayerDropout {
    double probability = 0; ///< 0: none
    std::uint64_t seed = 0; ///< another for each micro-batch of each step

    /// `layer` with the dropout of layer `index`; `firstRow` is the first token that passes.
    DecoderLayer applied(const DecoderLayer& layer, std::int64_t index, std::int64_t firstRow) const;
    /// The same of the head.
    kernels::LinearView appliedToHead(const kernels::LinearView& head, std::int64_t firstRow) const;
};

/// A seed for one micro-batch: another for each step and each place in it.
std::uint64_t dropoutSeed(std::uint64_t seed, std::int64_t step, std::int64_t microBatch);

} // namespace vitrine::engine
