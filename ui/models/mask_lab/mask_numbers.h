// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The numbers beside the map: sparsity, form and metadata, block sizes, documents.

#include <vector>

#include "base/stop.h"
#include "ui/models/mask_lab/mask_map.h"
#include "ui/models/mask_lab/mask_source.h"

namespace vitrine::ui {

/// A mask in blocks of one size.
struct MaskBlockSize {
    std::int64_t block = 0;
    double computedShare = 0;     ///< of all blocks
    double fullShare = 0;         ///< of those computed
    std::uint64_t metadata = 0;   ///< bytes of the runs; 0 with a closed form, which needs none
    std::uint64_t denseBytes = 0; ///< of PyTorch's four forward arrays
};

inline constexpr std::int64_t kBlockSizes[] = {32, 64, 128, 256};

/// kv_num_blocks, kv_indices, full_kv_num_blocks and full_kv_indices as int32.
std::uint64_t denseMaskBytes(const kernels::BlockMaskShape& shape);
MaskBlockSize blockSizeOf(const MaskMap& map);
/// The map's mask in blocks of kBlockSizes and of its own size, ascending. For a worker; throws Cancelled.
std::vector<MaskBlockSize> maskBlockSizes(const MaskMap& map, base::ThreadPool& pool, const base::StopToken& stop);

/// "closed form, no data" or "runs, 342 in 128 rows".
QString maskForm(const MaskMap& map);

/// Rows of the table of documents: number, length, first token, blocks of keys that it touches.
struct MaskDocument {
    std::int64_t length = 0, first = 0, blocks = 0;
};
std::vector<MaskDocument> maskDocuments(const std::vector<std::int64_t>& lengths, std::int64_t block);
/// Index of the document of a position; -1 without documents; the last one after the end.
int documentAt(const std::vector<std::int64_t>& lengths, std::int64_t position);

} // namespace vitrine::ui
