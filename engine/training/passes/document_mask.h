// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The attention masks of training. The backward pass takes the documents of a batch as one long sequence, so a mask of
// several documents also says that no token sees another document. Where documents share prompts, the forward pass
// takes them so too, and a token also sees the prefix of its document. Layers with equal windows share a mask. A window
// counts positions: those of a document go on from its prefix.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/model/decoder_layer.h"
#include "engine/model/flat_attention.h"
#include "kernels/program/block_mask.h"

namespace vitrine::engine {

/// The documents of a batch; see TrainingBatch.
struct DocumentLayout {
    std::vector<std::int32_t> lengths;
    std::vector<std::int32_t> prefixes; ///< or empty

    bool operator==(const DocumentLayout&) const = default;
};

/// What the masks of a batch capture: (tokens) I32 each, on the device.
struct DocumentPlaces {
    kernels::TensorView starts; ///< the first token of each token's document. Empty: there is one document
    /// The first token of its document's prefix, and the one after the last; 0 and 0 where there is none. Empty: no
    /// document has one.
    kernels::TensorView prefixStarts, prefixEnds;
};

/// Makes programs once for all steps, and BlockMasks once for all steps of equal document lengths and prefixes. Not
/// thread-safe.
class DocumentMasks {
public:
    /// The batch that follows has these documents.
    void begin(const std::vector<std::int32_t>& lengths, const std::vector<std::int32_t>& prefixes);
    /// The mask of `layer`. The result is valid until the next begin().
    const FlatAttention& of(const DecoderLayer& layer, const DocumentPlaces& places);

private:
    struct Mask {
        std::unique_ptr<kernels::KnownProgram> separate; ///< of several documents
        std::unique_ptr<kernels::KnownProgram> shared;   ///< of documents with prefixes
        std::unique_ptr<kernels::BlockMask> blocks;
        FlatAttention attention;
    };

    DocumentLayout layout_;
    std::map<std::int64_t, Mask> masks_; ///< by window
};

/// For each token the first token of its document.
std::vector<std::int32_t> documentStarts(const std::vector<std::int32_t>& lengths);
/// For each token the first token of its document's prefix; 0 where there is none.
std::vector<std::int32_t> prefixStarts(const DocumentLayout& layout);
/// For each token the one after the last token of its document's prefix; 0 where there is none.
std::vector<std::int32_t> prefixEnds(const DocumentLayout& layout);
/// What a query sees of documents with prefixes. Captures in this order: document_start, prefix_start and
/// prefix_end, see DocumentPlaces. `window` is that of a layer; 0: none.
kernels::Program sharedPromptMask(std::int64_t window);
/// The blocks that attention takes for documents of these lengths. `window` as above.
kernels::BlockMask documentBlocks(const std::vector<std::int32_t>& lengths, std::int64_t window);
/// The same of documents with prefixes: the blocks of sharedPromptMask().
kernels::BlockMask sharedPromptBlocks(const DocumentLayout& layout, std::int64_t window);

} // namespace vitrine::engine
