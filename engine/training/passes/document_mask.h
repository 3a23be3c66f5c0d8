// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The attention masks of the backward pass. It takes the documents of a batch as one long sequence, so a mask of
// several documents also says that no token sees another document. Layers with equal windows share a mask.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/model/decoder_layer.h"
#include "engine/training/passes/layer_backward.h"
#include "kernels/program/block_mask.h"

namespace vitrine::engine {

/// Makes programs once for all steps, and BlockMasks once for all steps of equal document lengths. Not thread-safe.
class DocumentMasks {
public:
    /// The batch that follows has documents of these lengths.
    void begin(const std::vector<std::int32_t>& lengths);
    /// The mask of `layer`. `starts` (tokens) I32: the first token of each token's document, on the device; empty:
    /// there is one document. The result is valid until the next begin().
    BackwardAttention of(const DecoderLayer& layer, const kernels::TensorView& starts);

private:
    struct Mask {
        std::unique_ptr<kernels::KnownProgram> program; ///< of several documents
        std::unique_ptr<kernels::BlockMask> blocks;
    };

    std::vector<std::int32_t> lengths_;
    std::map<std::int64_t, Mask> masks_; ///< by window
};

/// For each token the first token of its document.
std::vector<std::int32_t> documentStarts(const std::vector<std::int32_t>& lengths);
/// The blocks that the backward pass takes for documents of these lengths. `window` is that of a layer; 0: none.
kernels::BlockMask documentBlocks(const std::vector<std::int32_t>& lengths, std::int64_t window);

} // namespace vitrine::engine
