// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How the GPU's attention over single rows cuts their keys, and scratch: for the parts' results, and for which tiles of
// keys rows see when the mask's rows are no intervals. Everything here follows from shapes and the device, so that
// planners know it and a captured graph serves growing lengths.

#include <algorithm>
#include <cstdint>

#include "kernels/core/device_traits.h"
#include "kernels/device/abi/attention.h"
#include "kernels/memory/resource.h"
#include "kernels/ops/attention/attention.h"

namespace vitrine::kernels {

/// The most keys of a sequence: that its row of the block table can hold, and the step's own.
inline std::int64_t mostKeys(const Attention& op) {
    return op.cache.blockTable.shape[1] * op.cache.keys.shape[1] + (op.newK.empty() ? 0 : op.q.shape[0]);
}

/// Words of kernels/device/attention/attention_seen.cuh.
struct AttentionTileWords {
    static constexpr std::int64_t kKeysOfWord = 32 * 64;
    static constexpr std::int64_t kFewKeys = 512; ///< up to here a kernel more costs what it saves
    static constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20; ///< beyond, the kernels ask every key

    explicit AttentionTileWords(const Attention& op) {
        if (op.mask.empty() || mostKeys(op) <= kFewKeys) {
            return;
        }
        const AnalysisOf analysis(op.mask);
        const std::int64_t needed = mostKeys(op) / kKeysOfWord + 2; // a sequence may begin and end inside a word
        const std::int64_t ofHeads = analysis->byHead ? op.q.shape[1] : 1;
        const std::uint64_t all =
            static_cast<std::uint64_t>(op.q.shape[0] * ofHeads * needed) * sizeof(abi::AttentionTiles);
        if (!analysis->exact && all <= kMostBytes) {
            words = needed;
            heads = ofHeads;
            bytes = all;
        }
    }

    std::int64_t words = 0; ///< of a row and head; 0: none are needed
    std::int64_t heads = 1; ///< 1: the same for all
    std::uint64_t bytes = 0;
};

struct AttentionSplits {
    static constexpr std::int64_t kTileKeys = 64;         ///< keys that a block takes at a time
    static constexpr std::int64_t kTilesOfSplit = 4;      ///< a part has at least
    static constexpr std::int64_t kWholeTiles = 6;        ///< rows that see no more tiles are not cut
    static constexpr std::int64_t kTilesOfLongSplit = 16; ///< where a row is cut into more than `few` parts
    static constexpr std::int64_t kMaxSplits = 64;
    static constexpr std::int64_t kBusyBlocksPerSm = 16; ///< from here on rows alone fill the device

    AttentionSplits(const Attention& op, const DeviceTraits& traits) {
        if (traits.features.exactRows) {
            return; // where a row is cut depends on how many there are
        }
        const std::int64_t multiprocessors = traits.multiprocessors;
        const std::int64_t tokens = op.q.shape[0];
        const std::int64_t heads = op.q.shape[1];
        const std::int64_t kvHeads = op.cache.keys.shape[2];
        const std::int64_t sequences = op.cache.blockTable.shape[0];
        byRow = tokens <= sequences;
        rows = byRow ? tokens : sequences > 1 ? sequences : 0;
        std::int64_t keys = mostKeys(op);
        if (!op.mask.empty()) {
            const AnalysisOf analysis(op.mask);
            if (analysis->keysBefore && analysis->keysAfter) {
                keys = std::min(keys, *analysis->keysBefore + *analysis->keysAfter + 1 + kTileKeys);
            }
        }
        const std::int64_t tiles = (keys + kTileKeys - 1) / kTileKeys + 1;
        const std::int64_t headTiles = (heads / kvHeads + 15) / 16;
        few = std::clamp<std::int64_t>(multiprocessors / kvHeads, 1, kMaxSplits);
        const bool busy = rows * kvHeads * headTiles >= kBusyBlocksPerSm * multiprocessors;
        if (rows > 0 && tiles > kWholeTiles && !busy) {
            // Bytes and long heads keep a block busy with its tile while memory waits, so that a second block helps.
            const std::int64_t most = op.cache.quantized() || op.q.shape[2] > 64 ? 2 * few : few;
            splits = std::max(std::min(few, (tiles + kTilesOfSplit - 1) / kTilesOfSplit),
                              std::min({most, tiles / kTilesOfLongSplit, kMaxSplits}));
            blocks = rows * kvHeads * headTiles * few >= 2 * multiprocessors ? std::min(few, splits) : splits;
        }
        if (splits > 1) {
            bytes = static_cast<std::uint64_t>(rows * splits * heads * (op.q.shape[2] + 2)) * sizeof(float);
        }
    }

    /// Whether the tensor-core kernels take these types and head dims.
    static bool onTensorCores(const Attention& op) {
        const DType dtype = op.q.dtype;
        const std::int64_t headDim = op.q.shape[2];
        const bool cached =
            op.cache.quantized() ? dtype == DType::BF16 && headDim % 32 == 0 : op.cache.keys.dtype == dtype;
        return (dtype == DType::BF16 || dtype == DType::F16) && cached &&
               (op.newK.empty() || (op.newK.dtype == dtype && op.newV.dtype == dtype)) && headDim % 16 == 0 &&
               headDim <= 256 && op.scale > 0;
    }

    bool byRow = false;      ///< every row of q is one by itself; else the sequences of one row
    std::int64_t rows = 0;   ///< rows or sequences that the single-row kernel visits; 0: it is not needed
    std::int64_t few = 1;    ///< parts that give each multiprocessor a block of one row
    std::int64_t splits = 1; ///< the most parts of a row
    std::int64_t blocks = 1; ///< that share a row's parts
    std::uint64_t bytes = 0;
};

/// Both, one after the other.
struct AttentionScratch {
    AttentionScratch(const Attention& op, const DeviceTraits& traits)
        : tilesAt(AttentionSplits::onTensorCores(op) ? alignedBytes(AttentionSplits(op, traits).bytes) : 0), tiles(op),
          bytes(tilesAt + tiles.bytes) {}

    std::uint64_t tilesAt; ///< where the words begin
    AttentionTileWords tiles;
    std::uint64_t bytes;
};

} // namespace vitrine::kernels
