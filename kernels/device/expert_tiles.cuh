// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How the operands of grouped expert products lie, and how a warp gets its weights.
//
// Rows (pairs) come in tiles of 128. A tile is a sequence of blocks of 64 values of the contracted axis, each 128 rows of
// 128 bytes in the swizzle of `swizzled<128>`: a block is one contiguous copy into shared memory. Inside a block the values
// are permuted so that the 16 values that a lane needs of a weight row are neighbours in memory: position
// 16 j + 8 r + 2 t + h of a block holds value 16 t + 8 (j / 2) + 2 (j % 2) + r + 4 h (j 0..3 the step of the tensor core, t the
// lane % 4, r and h 0..1: which half of the fragment, which half of the word). What is behind the end of the axis is zero.
//
// Weights stay as they are stored. Four warps own 128 rows of them, warp w and m = 0..1 the two slots g and g + 8 of
// 16-row fragments (g = lane / 4). Which weight row a slot holds is free, and is chosen for the epilogue: with a gated
// activation the two slots are the gate and the up row of one feature, and the eight g are the features of one 16-byte
// piece of the tiles that the next product reads.

#include "device/abi/expert_gemm.h"
#include "device/abi/expert_sort.h"
#include "device/activation.cuh"
#include "device/mxfp4.cuh"

namespace vt::grouped {

inline constexpr int kTileRows = vitrine::kernels::abi::kExpertTile;
inline constexpr int kBlock = 64; ///< values of the contracted axis in a block
inline constexpr int kBlockBytes = kTileRows * kBlock * 2;

constexpr __device__ __forceinline__ int blocksOf(int values) {
    return (values + kBlock - 1) / kBlock;
}

/// The value of the contracted axis, inside its block, that `place` (0..7) of 16-byte piece `piece` (0..7) holds.
__device__ __forceinline__ int valueAt(int piece, int place) {
    return 16 * (place / 2) + 4 * (place % 2) + 8 * (piece / 4) + piece % 4;
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

/// The weight row of slot g + 8 * half of fragment m, for the four warps that own group `group`; rows behind the last one
/// repeat it (their results are not stored).
__device__ __forceinline__ int weightRow(int group, int warp, int m, int g, int half) {
    if (kGated) {
        const int feature = min(group * 64 + valueAt(4 * m + warp, g), kFeatures - 1);
        return VT_HALVES ? feature + half * kFeatures : 2 * feature + half;
    }
    return min(group * 128 + 64 * m + 16 * warp + g + 8 * half, kOut - 1);
}

/// A lane's share of the weights of one block, as loaded, and how it becomes fragments.
#if VT_MXFP4

struct RawWeights {
    u32x2 low, high; ///< 16 elements of slot g, of slot g + 8
    u32 lowScale, highScale;
};

__device__ __forceinline__ u32x2 loadWeights8(const void* address) {
    u32x2 out;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v2.u32 {%0, %1}, [%2];"
                 : "=r"(out.x), "=r"(out.y)
                 : "l"(address));
    return out;
}

class WeightReader {
public:
    __device__ __forceinline__ WeightReader(const vitrine::kernels::abi::ExpertGemmParams& p, int expert, int group,
                                            int warp, int lane)
        : third_(lane % 4) {
        const i64 rows = static_cast<i64>(expert) * kOut;
        blocks_ = static_cast<const u8*>(p.blocks) + rows * (kIn / 2) + third_ * 8;
        scales_ = static_cast<const u8*>(p.scales) + rows * (kIn / 32) + third_ / 2;
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                rows_[m][half] = static_cast<u32>(weightRow(group, warp, m, lane / 4, half));
            }
        }
    }

    /// Fragment m's share of block `block`.
    __device__ __forceinline__ void load(int block, int m, RawWeights& raw) const {
        if (kIn % kBlock != 0 && block * kBlock + third_ * 16 >= kIn) {
            raw = RawWeights{};
            return;
        }
        raw.low = loadWeights8(blocks_ + (rows_[m][0] * (kIn / 2) + static_cast<u32>(block * 32)));
        raw.high = loadWeights8(blocks_ + (rows_[m][1] * (kIn / 2) + static_cast<u32>(block * 32)));
        raw.lowScale = __ldg(scales_ + (rows_[m][0] * (kIn / 32) + static_cast<u32>(block * 2)));
        raw.highScale = __ldg(scales_ + (rows_[m][1] * (kIn / 32) + static_cast<u32>(block * 2)));
    }

    /// The A fragments of the block's four steps.
    static __device__ __forceinline__ void expand(const RawWeights& raw, u32 (&a)[4][4]) {
        expandSlot(raw.low, mxfp4Factor(raw.lowScale), a, 0);
        expandSlot(raw.high, mxfp4Factor(raw.highScale), a, 1);
        if (__any_sync(0xFFFFFFFFU, max(raw.lowScale, raw.highScale) > 128)) {
            const u32 low = mxfp4SecondFactor(raw.lowScale);
            const u32 high = mxfp4SecondFactor(raw.highScale);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                a[j][0] = multiplyBf16x2(a[j][0], low);
                a[j][1] = multiplyBf16x2(a[j][1], high);
                a[j][2] = multiplyBf16x2(a[j][2], low);
                a[j][3] = multiplyBf16x2(a[j][3], high);
            }
        }
    }

private:
    static __device__ __forceinline__ void expandSlot(u32x2 words, u32 factor, u32 (&a)[4][4], int slot) {
        u32 pairs[4];
        unpackMxfp4(words.x, factor, pairs);
        a[0][slot] = pairs[0];
        a[0][slot + 2] = pairs[1];
        a[1][slot] = pairs[2];
        a[1][slot + 2] = pairs[3];
        unpackMxfp4(words.y, factor, pairs);
        a[2][slot] = pairs[0];
        a[2][slot + 2] = pairs[1];
        a[3][slot] = pairs[2];
        a[3][slot + 2] = pairs[3];
    }

    const u8* blocks_;
    const u8* scales_;
    u32 rows_[2][2];
    int third_;
};

#else

struct RawWeights {
    u32x4 low[2], high[2];
};

class WeightReader {
public:
    __device__ __forceinline__ WeightReader(const vitrine::kernels::abi::ExpertGemmParams& p, int expert, int group,
                                            int warp, int lane)
        : third_(lane % 4) {
        dense_ = static_cast<const u16*>(p.dense) + static_cast<i64>(expert) * kOut * kIn + third_ * 16;
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                rows_[m][half] = static_cast<u32>(weightRow(group, warp, m, lane / 4, half));
            }
        }
    }

    __device__ __forceinline__ void load(int block, int m, RawWeights& raw) const {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            if (kIn % kBlock != 0 && block * kBlock + third_ * 16 + part * 8 >= kIn) {
                raw.low[part] = raw.high[part] = u32x4{};
                continue;
            }
            raw.low[part] = loadOnce(dense_ + (rows_[m][0] * kIn + static_cast<u32>(block * kBlock + part * 8)));
            raw.high[part] = loadOnce(dense_ + (rows_[m][1] * kIn + static_cast<u32>(block * kBlock + part * 8)));
        }
    }

    static __device__ __forceinline__ void expand(const RawWeights& raw, u32 (&a)[4][4]) {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            expandSlot(raw.low[part], a, 2 * part, 0);
            expandSlot(raw.high[part], a, 2 * part, 1);
        }
    }

private:
    /// Values i and i + 4 of eight neighbours make a word.
    static __device__ __forceinline__ void expandSlot(u32x4 words, u32 (&a)[4][4], int step, int slot) {
        a[step][slot] = __byte_perm(words.x, words.z, 0x5410);
        a[step][slot + 2] = __byte_perm(words.x, words.z, 0x7632);
        a[step + 1][slot] = __byte_perm(words.y, words.w, 0x5410);
        a[step + 1][slot + 2] = __byte_perm(words.y, words.w, 0x7632);
    }

    const u16* dense_;
    u32 rows_[2][2];
    int third_;
};

#endif

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
