// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sample's scratch: a few slots that rows share in turn, so that it does not grow with the batch.

#include <algorithm>
#include <cstdint>

#include "kernels/ops/sample.h"
#include "kernels/ops/scratch_layout.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kSampleSlots = 8;

struct SampleScratch {
    SampleScratch(const Sample& op, ScratchLayout layout)
        : slots(std::min(kSampleSlots, op.logits.shape[0])),
          values(layout.take(DType::F32, Shape{slots, op.logits.shape[1]})),
          ids(layout.take(DType::I32, Shape{slots, op.logits.shape[1]})), bytes(layout.bytes()) {}

    std::int64_t slots;
    TensorView values; ///< (slots, vocab) F32: a row's logits as they are changed
    TensorView ids;    ///< (slots, vocab) I32: candidates
    std::uint64_t bytes;
};

} // namespace vitrine::kernels
