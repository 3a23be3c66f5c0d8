// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Scratch of FlexAttentionBackward on the CPU: rowsum(out * gradOut) and LSE of every row, and partial sums of the
// gradients of captured tensors and sinks. The number of partial sums depends on shapes alone, so results do not depend
// on threads.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/ops/attention/flex_attention.h"
#include "kernels/ops/common/scratch_layout.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kFlexRows = 32; ///< rows of one task

struct FlexScratch {
    FlexScratch(const FlexAttentionBackward& op, void* memory) {
        const Shape& q = op.forward.q.shape;
        for (const TensorView& tensor : op.dCaptures) {
            captureOffsets.push_back(elements);
            elements += tensor.empty() ? 0 : tensor.shape.count();
        }
        sinkOffset = elements;
        elements += op.dSinks.empty() ? 0 : q[1];
        const std::int64_t tasks = q[0] * op.forward.k.shape[1] * ((q[2] + kFlexRows - 1) / kFlexRows);
        constexpr std::int64_t kMostParts = 64;
        constexpr std::int64_t kMostElements = std::int64_t{1} << 25; // 256 MiB
        parts = std::clamp<std::int64_t>(kMostElements / std::max<std::int64_t>(1, elements), 1,
                                         std::clamp<std::int64_t>(tasks, 1, kMostParts));
        ScratchLayout layout = memory == nullptr ? ScratchLayout() : ScratchLayout(memory);
        delta = layout.take(DType::F64, Shape{q[0] * q[1], q[2]});
        lse = layout.take(DType::F64, delta.shape);
        sums = layout.take(DType::F64, Shape{parts, elements});
        bytes = layout.bytes();
    }

    std::vector<std::int64_t> captureOffsets; ///< of each capture's gradient in a part
    std::int64_t sinkOffset = 0;
    std::int64_t elements = 0; ///< of a part
    std::int64_t parts = 1;
    TensorView delta; ///< (batch * heads, queries) F64
    TensorView lse;   ///< (batch * heads, queries) F64
    TensorView sums;  ///< (parts, elements) F64
    std::uint64_t bytes = 0;
};

} // namespace vitrine::kernels
