// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How the operands of grouped expert products lie, and how a warp gets its weights.
//
// Rows (pairs) come in tiles of 128. A tile is a sequence of blocks of 64 values of the contracted axis, each 128 rows
// of 128 bytes in the swizzle of `swizzled<128>`: a block is one contiguous copy into shared memory. The values are
// permuted so that what a lane needs of a weight row for two blocks, 32 values, are neighbours in memory (16 for a last
// block without a partner): `valueAt`. What is after the end of the axis is zero.
//
// Weights stay as they are stored. Four warps own 128 rows of them, warp w and m = 0..1 the two slots g and g + 8 of
// 16-row fragments (g = lane / 4). Which weight row a slot holds is free, and is chosen for the epilogue: with a gated
// activation the two slots are the gate and the up row of one feature, and the eight g are the features of one 16-byte
// piece of the tiles that the next product reads.

#include "device/abi/expert_gemm.h"
#include "device/abi/expert_sort.h"
#include "device/lib/types.cuh"
#include "device/rowwise/activation.cuh"

namespace vt::grouped {

inline constexpr int kTileRows = vitrine::kernels::abi::kExpertTile;
inline constexpr int kBlock = 64; ///< values of the contracted axis in a block
inline constexpr int kBlockBytes = kTileRows * kBlock * 2;

constexpr __device__ __forceinline__ int blocksOf(int values) {
    return (values + kBlock - 1) / kBlock;
}

/// Whether block `block` of `blocks` is one of two that share their values.
constexpr __device__ __forceinline__ bool hasPartner(int block, int blocks) {
    return (block | 1) < blocks;
}

/// The first of the 16 neighbours of the axis that lane % 4 = `third` needs for a block.
constexpr __device__ __forceinline__ int firstValue(int block, int blocks, int third) {
    return hasPartner(block, blocks) ? (block / 2 * 2) * kBlock + 32 * third + block % 2 * 16
                                     : block * kBlock + 16 * third;
}

/// The value of the axis that `place` (0..7) of 16-byte piece `piece` (0..7) of a block holds: position
/// 16 j + 8 r + 2 t + h of a row, with piece = 2 j + r and place = 2 t + h, is what half h of the word of lane t, half
/// r of the fragment, step j of the tensor core multiplies.
constexpr __device__ __forceinline__ int valueAt(int block, int blocks, int piece, int place) {
    return firstValue(block, blocks, place / 2) + 4 * (place % 2) + 8 * (piece / 4) + piece % 4;
}

#ifdef VT_GATED // a product: the specialisation's macros are there

inline constexpr int kIn = VT_IN;
inline constexpr int kOut = VT_OUT; ///< rows of the weight
inline constexpr int kBlocks = blocksOf(kIn);
inline constexpr bool kGated = VT_GATED != 0;
inline constexpr int kFeatures = kGated ? kOut / 2 : kOut; ///< values of a result row
/// Result values that four warps make.
inline constexpr int kGroupFeatures = kGated ? 64 : 128;
inline constexpr int kGroups = (kFeatures + kGroupFeatures - 1) / kGroupFeatures;

/// The weight rows of a lane, for the four warps that own group `group`: row(m, half) is in slot g + 8 * half of
/// fragment m, row(m, 1) always kHighRows after row(m, 0). After the last row earlier ones are repeated; their results
/// are not stored.
inline constexpr int kHighRows = !kGated ? 8 : VT_HALVES ? kFeatures : 1;

class WeightRows {
public:
    __device__ __forceinline__ WeightRows(int group, int warp, int lane)
        : first_(kGated ? valueAt(group, kGroups, warp, lane / 4) : group * 128 + 16 * warp), slot_(lane / 4) {}
    __device__ __forceinline__ int feature(int m) const { return first_ + 8 * m; } ///< of a gated product
    __device__ __forceinline__ int row(int m, int half) const {
        if (kGated) {
            const int inside = min(feature(m), kFeatures - 1);
            return (VT_HALVES ? inside : 2 * inside) + half * kHighRows;
        }
        return min(first_ + 64 * m, kOut - 16) + slot_ + half * kHighRows;
    }

private:
    int first_; ///< fragment 1 holds the values of pieces 4 further: 8 further on the axis
    int slot_;
};

/// bias of weight row `row`, 0 without one.
__device__ __forceinline__ float biasOf(const vitrine::kernels::abi::ExpertGemmParams& p, int expert, int row) {
#if VT_BIAS_DTYPE
    return toFloat(static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p.bias)[expert * p.biasStride + row]);
#else
    return 0;
#endif
}

__device__ __forceinline__ float activate(const vitrine::kernels::abi::ExpertGemmParams& p, float gate, float up) {
    return gatedActivation<VT_ACTIVATION>(gate, up, p.alpha, p.limit);
}

#endif

} // namespace vt::grouped
