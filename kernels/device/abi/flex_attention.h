// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/program.h"
#include "device/abi/tensor_map.h"

namespace vitrine::kernels::abi {

constexpr int kFlexAttentionAbi = 1;
constexpr int kFlexCaptureAbi = 1;
constexpr int kFlexCaptureGradients = 16;

/// A tensor (batch, heads, rows, headDim); rows are contiguous, strides in elements.
struct FlexTensor {
    void* data;
    long long batchStride, headStride, rowStride;
};

/// Neighbouring blocks of one kind.
struct FlexRun {
    int first;
    int count; ///< negative: that many partial blocks; positive: full ones
};

/// kernels/ops/attention/flex_attention.h, forward and backward; what a kernel does not use is null.
struct FlexAttentionParams {
    /// headDim in chunks of 64, rows, heads, batch; boxes of 64 rows (hopper forms only).
    TensorMap queryMap, keyMap, valueMap, gradOutMap;
    FlexTensor q, k, v, out, gradOut, dq, dk, dv;
    const void* sinks;              ///< (heads) or null
    float* lse;                     ///< (batch, heads, queries), natural logarithm
    float* delta;                   ///< (batch, heads, paddedQueries): sums of out * gradOut over a row
    float* offsets;                 ///< (batch, heads, paddedQueries): lse in base 2, as the backward passes use it
    float* dSinks;                  ///< (heads)
    const long long* rowOffsets;    ///< (maskBatch * maskHeads * queryBlocks + 1) into rowRuns
    const FlexRun* rowRuns;         ///< ascending
    const long long* columnOffsets; ///< (maskBatch * maskHeads * keyBlocks + 1) into columnRuns
    const FlexRun* columnRuns;
    int batch, heads, kvHeads, queries, keys;
    int paddedQueries;        ///< a multiple of 128
    int maskBatch, maskHeads; ///< 1: the same for all
    int queryBlock, keyBlock; ///< rows and keys of a mask block; multiples of the kernel's tiles
    float scale;              ///< scores are q.k * scale before the score program
    int captureBits;          ///< a capture gradient's largest term counts 2^captureBits
    unsigned* captureLargest; ///< (capture gradients): bits of the largest term, 0 at the start
    unsigned long long* captureSums[kFlexCaptureGradients]; ///< 64-bit integers, one for each element, 0 at the start
    ProgramCaptures scoreCaptures, maskCaptures;
    float* sums;          ///< tiles of sums of dq, dk and dv (flex_attention_backward_work.cuh)
    int* sumTurns;        ///< parts added to each tile, 0 at the start
    int* workCounter;     ///< pieces of work that have been taken, 0 at the start
    const int* tileOrder; ///< forward with blocks: tiles of 128 queries, the longest first
    int headsInside; ///< 1: backward takes a tile of all heads of a piece of work before the next tile; they have one
                     ///< mask
    int groupParts;  ///< pieces that the heads of a key head are divided into; a divisor of their number
};

/// One captured tensor's gradient from the sums of the loads that read it.
struct FlexCaptureParams {
    const unsigned long long* sums[kFlexCaptureGradients];
    const unsigned* largest[kFlexCaptureGradients]; ///< bits of each load's largest term
    void* out;                                      ///< (count) float or double
    long long count;
    int loads, bits, isDouble;
};

} // namespace vitrine::kernels::abi
