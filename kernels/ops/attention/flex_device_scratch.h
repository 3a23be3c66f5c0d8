// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Scratch of FlexAttention on a GPU: the block mask's runs, and for the backward pass what each row needs and the sums
// of captured tensors' gradients.

#include <cstdint>
#include <vector>

#include "kernels/core/device_traits.h"
#include "kernels/ops/attention/flex_attention.h"
#include "kernels/ops/common/scratch_layout.h"

namespace vitrine::kernels {

/// Runs of one direction: (first, count) pairs after their offsets.
struct FlexDeviceRuns {
    FlexDeviceRuns(ScratchLayout& layout, const std::vector<std::int64_t>& from, std::size_t runs)
        : offsets(layout.take(DType::I64, Shape{static_cast<std::int64_t>(from.size())})),
          pairs(layout.take(DType::I32, Shape{static_cast<std::int64_t>(runs), 2})) {}
    FlexDeviceRuns() = default;

    TensorView offsets, pairs;
};

inline constexpr std::int64_t kFlexTileRows = 128; ///< of the kernels: mask blocks are multiples of it

struct FlexForwardScratch {
    FlexForwardScratch(const FlexAttention& op, void* memory) {
        ScratchLayout layout = memory == nullptr ? ScratchLayout() : ScratchLayout(memory);
        if (op.blocks != nullptr) {
            rows = FlexDeviceRuns(layout, op.blocks->rowOffsets, op.blocks->rowRuns.size());
            work = layout.take(DType::I32, Shape{1 + (op.q.shape[2] + kFlexTileRows - 1) / kFlexTileRows});
        }
        bytes = layout.bytes();
    }

    FlexDeviceRuns rows;
    TensorView work; ///< a counter of work that has been taken, then the order of tiles
    std::uint64_t bytes = 0;
};

/// Whether the Hopper forms (wgmma and tensor maps) take this op on a GPU of that major version, backward.
inline bool hasHopperForm(int major, const FlexAttention& op) {
    const std::int64_t headDim = op.q.shape[3];
    return major == 9 && op.q.dtype != DType::F32 && (headDim == 64 || headDim == 128);
}

struct FlexBackwardScratch {
    /// `hopper`: for the form that adds up dq in memory.
    FlexBackwardScratch(const FlexAttentionBackward& op, bool hopper, void* memory) {
        const FlexAttention& forward = op.forward;
        const Shape& q = forward.q.shape;
        ScratchLayout layout = memory == nullptr ? ScratchLayout() : ScratchLayout(memory);
        if (forward.blocks != nullptr) {
            rows = FlexDeviceRuns(layout, forward.blocks->rowOffsets, forward.blocks->rowRuns.size());
            columns = FlexDeviceRuns(layout, forward.blocks->columnOffsets, forward.blocks->columnRuns.size());
        }
        paddedQueries = (q[2] + kFlexTileRows - 1) / kFlexTileRows * kFlexTileRows;
        delta = layout.take(DType::F32, Shape{q[0], q[1], paddedQueries});
        offsets = layout.take(DType::F32, Shape{q[0], q[1], paddedQueries});
        if (hopper) {
            constexpr std::int64_t kTileElements = 2 * 64 * 64;
            const std::int64_t heads = forward.k.shape[1];
            queryTiles = q[0] * q[1] * paddedQueries * q[3] / kTileElements;
            keyTiles = (forward.k.shape[2] + kFlexTileRows - 1) / kFlexTileRows;
            keySumTiles = heads == q[1] ? 0 : q[0] * heads * keyTiles * 2 * q[3] / 64;
            sums = layout.take(DType::F32, Shape{queryTiles + keySumTiles, kTileElements});
        }
        // A load's sums each: how many loads a capture has is the program's business, as many as nodes read it.
        zeroed = layout.bytes();
        if (!forward.score.empty()) {
            const Program& program = *forward.score.program;
            for (const ProgramNode& node : program.nodes) {
                const bool reads = node.op == ProgramOp::Load || node.op == ProgramOp::Scalar;
                const auto capture = static_cast<std::size_t>(reads ? node.capture : 0);
                if (reads && capture < op.dCaptures.size() && !op.dCaptures[capture].empty()) {
                    captureSums.push_back(layout.take(DType::U64, Shape{op.dCaptures[capture].shape.count()}));
                }
            }
        }
        largest = layout.take(DType::U32, Shape{static_cast<std::int64_t>(captureSums.size()) + 1});
        if (hopper) {
            sumTurns = layout.take(DType::I32, Shape{queryTiles + keySumTiles});
            workCounters = layout.take(DType::I32, Shape{2});
        }
        bytes = layout.bytes();
    }

    FlexDeviceRuns rows, columns;
    std::int64_t paddedQueries = 0;
    TensorView delta, offsets;
    std::vector<TensorView> captureSums; ///< at least one for each gradient of FlexSource
    TensorView largest;
    // The Hopper form's; FlexAttentionParams says what they are. Sums of dk and dv are there when heads share keys.
    std::int64_t queryTiles = 0, keyTiles = 0, keySumTiles = 0;
    TensorView sums, sumTurns, workCounters; ///< a counter for each pass
    std::uint64_t zeroed = 0;                ///< from here on scratch starts as zeros
    std::uint64_t bytes = 0;
};

} // namespace vitrine::kernels
