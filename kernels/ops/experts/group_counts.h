// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Scratch of GroupPairs on a GPU: how many pairs of each expert a chunk of the pairs has.

#include "kernels/ops/common/scratch_layout.h"
#include "kernels/ops/experts/group_pairs.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kGroupChunkPairs = 512; ///< as the kernels have it

struct GroupCounts {
    GroupCounts(const GroupPairs& op, ScratchLayout layout)
        : chunks((op.ids.shape.count() + kGroupChunkPairs - 1) / kGroupChunkPairs),
          counts(layout.take(DType::I32, Shape{chunks, op.starts.shape[0] - 1})), bytes(layout.bytes()) {}

    std::int64_t chunks;
    TensorView counts; ///< (chunks, experts) I32
    std::uint64_t bytes;
};

} // namespace vitrine::kernels
