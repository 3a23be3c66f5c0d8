// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// dq (and dk and dv) from the sums of flex_attention_backward_hopper.cuh, a block for each tile (SumNote says which).
// A tile is two squares of 64 x 64, row after row, in which piece c of eight elements stands at c ^ (row % 8). A tile
// to which nothing was added is 0.

#include "device/attention/flex_attention_backward_work.cuh"
#include "device/lib/vector.cuh"

namespace vt {

namespace flex {

/// Where a square's elements belong.
struct Square {
    T* to;
    i64 stride;
    int row, end; ///< the first row, and how many there are
    float factor;
};

__device__ __forceinline__ Square squareOf(const FlexAttentionParams& p, int tile, int group) {
    const int tiles = p.paddedQueries / kTile;
    const int keyTile = tile - p.batch * p.heads * tiles;
    if (keyTile < 0) {
        const int head = tile / tiles;
        return {rowsOf(p.dq, head / p.heads, head % p.heads) + (kDim == 64 ? 0 : group * 64), p.dq.rowStride,
                tile % tiles * kTile + (kDim == 64 ? group * 64 : 0), p.queries, p.scale};
    }
    constexpr int kParts = kDim / 64;
    const int keyTiles = ceilDiv(p.keys, kRows);
    const int part = keyTile % (2 * kParts);
    const int head = keyTile / (2 * kParts) / keyTiles;
    const bool values = part >= kParts;
    const FlexTensor& tensor = values ? p.dv : p.dk;
    return {rowsOf(tensor, head / p.kvHeads, head % p.kvHeads) + part % kParts * 64, tensor.rowStride,
            keyTile / (2 * kParts) % keyTiles * kRows + group * 64, p.keys, values ? 1.0F : p.scale};
}

} // namespace flex

extern "C" __global__ void __launch_bounds__(256) flex_attention_sums(const __grid_constant__ FlexAttentionParams p) {
    using namespace flex;
    pdl::wait();
    pdl::launchDependents();
    const int tile = static_cast<int>(blockIdx.x);
    const bool added = p.sumTurns[tile] != 0;
    const float4* from = reinterpret_cast<const float4*>(p.sums + static_cast<i64>(tile) * kSumElements);
    float4 values[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int unit = i / 2 * 256 + static_cast<int>(threadIdx.x);
        values[i] = added ? __ldcs(from + unit * 2 + i % 2) : float4{0, 0, 0, 0};
    }
#pragma unroll
    for (int group = 0; group < 2; ++group) {
        const Square square = squareOf(p, tile, group);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int row = i * 32 + static_cast<int>(threadIdx.x) / 8;
            const int column = (static_cast<int>(threadIdx.x) % 8 ^ row % 8) * 8;
            const float4 low = values[group * 4 + i * 2];
            const float4 high = values[group * 4 + i * 2 + 1];
            const float piece[8] = {low.x * square.factor,  low.y * square.factor,  low.z * square.factor,
                                    low.w * square.factor,  high.x * square.factor, high.y * square.factor,
                                    high.z * square.factor, high.w * square.factor};
            if (square.row + row < square.end) {
                storePiece<8>(piece, square.to + (square.row + row) * square.stride + column);
            }
        }
    }
}

} // namespace vt
