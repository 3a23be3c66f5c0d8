// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sample's scratch: a few slots that rows share in turn, so that it grows little with the batch. On the GPU both pieces
// are slots of values, or the partial results of greedy rows.

#include <algorithm>
#include <cstdint>

#include "kernels/ops/common/scratch_layout.h"
#include "kernels/ops/sampling/sample.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kSampleSlots = 8;
inline constexpr std::int64_t kGreedyPiece = 2048;      ///< logits of a warp of sample_greedy.cuh
inline constexpr std::int64_t kGreedyPartialBytes = 16; ///< its result
inline constexpr std::int64_t kGreedyRows = 8192;       ///< rows of a launch

struct SampleScratch {
    SampleScratch(const Sample& op, ScratchLayout layout)
        : slots(std::min(kSampleSlots, op.logits.shape[0])),
          values(layout.take(DType::F32, Shape{slots, op.logits.shape[1]})),
          ids(layout.take(DType::I32, Shape{slots, op.logits.shape[1]})),
          bytes(std::max<std::uint64_t>(layout.bytes(), greedyBytes(op))) {}

    static std::uint64_t greedyBytes(const Sample& op) {
        const std::int64_t pieces = (op.logits.shape[1] + kGreedyPiece - 1) / kGreedyPiece;
        return static_cast<std::uint64_t>(std::min(kGreedyRows, op.logits.shape[0]) * pieces) * kGreedyPartialBytes;
    }

    std::int64_t slots;
    TensorView values; ///< (slots, vocab) F32: a row's logits as they are changed
    TensorView ids;    ///< (slots, vocab) I32: candidates
    std::uint64_t bytes;
};

} // namespace vitrine::kernels
