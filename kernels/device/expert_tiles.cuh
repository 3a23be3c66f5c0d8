// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How the operands of grouped expert products lie, and how a warp gets its weights.
//
// Rows (pairs) come in tiles of 128. A tile is a sequence of blocks of 64 values of the contracted axis, each 128 rows of
// 128 bytes in the swizzle of `swizzled<128>`: a block is one contiguous copy into shared memory. The values are permuted so
// that what a lane needs of a weight row for two blocks, 32 values, are neighbours in memory (16 for a last block without
// a partner): `valueAt`. What is behind the end of the axis is zero.
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
/// 16 j + 8 r + 2 t + h of a row, with piece = 2 j + r and place = 2 t + h, is what half h of the word of lane t, half r of
/// the fragment, step j of the tensor core multiplies.
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

/// The weight rows of a lane, for the four warps that own group `group`: row(m, half) is in slot g + 8 * half of fragment m.
/// Rows behind the last one repeat it; their results are not stored.
class WeightRows {
public:
    __device__ __forceinline__ WeightRows(int group, int warp, int lane)
        : first_(kGated ? valueAt(group, kGroups, warp, lane / 4) : group * 128 + 16 * warp + lane / 4) {}
    __device__ __forceinline__ int feature(int m) const { return first_ + 8 * m; } ///< of a gated product
    __device__ __forceinline__ int row(int m, int half) const {
        if (kGated) {
            const int inside = min(feature(m), kFeatures - 1);
            return VT_HALVES ? inside + half * kFeatures : 2 * inside + half;
        }
        return min(first_ + 64 * m + 8 * half, kOut - 1);
    }

private:
    int first_; ///< fragment 1 holds the values of pieces 4 further: 8 further on the axis
};

/// A lane's share of the weights of one block, as loaded, and how it becomes fragments.
#if VT_MXFP4

struct RawWeights {
    u32x4 low, high; ///< of slots g and g + 8: 16 elements of this block, then 16 of its partner
    u32 lowScale, highScale;
};

class WeightReader {
public:
    __device__ __forceinline__ WeightReader(const vitrine::kernels::abi::ExpertGemmParams& p, int expert, int group,
                                            int warp, int lane)
        : rows_(group, warp, lane), third_(lane % 4) {
        const i64 rows = static_cast<i64>(expert) * kOut;
        blocks_ = static_cast<const u8*>(p.blocks) + rows * (kIn / 2);
        scales_ = static_cast<const u8*>(p.scales) + rows * (kIn / 32);
    }

    /// Fragment m's share of block `block`, and of its partner when that is the next.
    __device__ __forceinline__ void load(int block, int m, RawWeights& raw) const {
        const int first = firstValue(block, kBlocks, third_);
        if (kIn % (2 * kBlock) != 0 && first >= kIn) {
            raw = RawWeights{};
            return;
        }
        const u8* low = blocks_ + (static_cast<u32>(rows_.row(m, 0)) * (kIn / 2) + static_cast<u32>(first / 2));
        const u8* high = blocks_ + (static_cast<u32>(rows_.row(m, 1)) * (kIn / 2) + static_cast<u32>(first / 2));
        if (hasPartner(block, kBlocks)) {
            raw.low = loadPair(low);
            raw.high = loadPair(high);
        } else {
            raw.low = loadHalf(low);
            raw.high = loadHalf(high);
        }
        raw.lowScale = __ldg(scales_ + (static_cast<u32>(rows_.row(m, 0)) * (kIn / 32) + static_cast<u32>(first / 32)));
        raw.highScale =
            __ldg(scales_ + (static_cast<u32>(rows_.row(m, 1)) * (kIn / 32) + static_cast<u32>(first / 32)));
    }

    /// The A fragments of the block's four steps.
    static __device__ __forceinline__ void expand(const RawWeights& raw, u32 (&a)[4][4]) {
        expandSlot(raw.low, mxfp4Factor(raw.lowScale), a, 0);
        expandSlot(raw.high, mxfp4Factor(raw.highScale), a, 1);
    }

private:
    /// 64 bytes a row: the rest of a line is wanted soon, so it may stay in the caches.
    static __device__ __forceinline__ u32x4 loadPair(const void* address) {
        u32x4 out;
        asm volatile("ld.global.nc.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
                     : "l"(address));
        return out;
    }
    static __device__ __forceinline__ u32x4 loadHalf(const void* address) {
        u32x4 out{};
        asm volatile("ld.global.nc.L2::128B.v2.u32 {%0, %1}, [%2];" : "=r"(out.x), "=r"(out.y) : "l"(address));
        return out;
    }
    static __device__ __forceinline__ void expandSlot(u32x4 words, u32 factor, u32 (&a)[4][4], int slot) {
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
    WeightRows rows_;
    int third_; ///< lane % 4
};

/// The fragments of all blocks, with the loads two blocks ahead. ptxas lets all loads of a loop count on one scoreboard, so
/// waiting for the oldest is waiting for the newest: they go out together, as early as there is room.
class WeightStream {
public:
    static constexpr bool kTellsOdd = true;
    __device__ __forceinline__ explicit WeightStream(const WeightReader& reader) : reader_(reader) {
        reader_.load(0, 0, raw_[0]);
        reader_.load(0, 1, raw_[1]);
    }
    /// In order of blocks, m 0 before 1; kOdd is block % 2.
    template <int kOdd> __device__ __forceinline__ void next(int block, int m, u32 (&a)[4][4]) {
        WeightReader::expand(raw_[m], a);
        if (kOdd == 0) {
            raw_[m].low = {raw_[m].low.z, raw_[m].low.w, 0, 0};
            raw_[m].high = {raw_[m].high.z, raw_[m].high.w, 0, 0};
            if (m == 0 && block + 2 < kBlocks) {
                reader_.load(block + 2, 0, ahead_[0]);
                reader_.load(block + 2, 1, ahead_[1]);
            }
        } else if (m == 1) {
            raw_[0] = ahead_[0];
            raw_[1] = ahead_[1];
        }
    }

private:
    const WeightReader reader_;
    RawWeights raw_[2], ahead_[2];
};

#else

struct RawWeights {
    u32x4 low[2], high[2];
};

class WeightReader {
public:
    __device__ __forceinline__ WeightReader(const vitrine::kernels::abi::ExpertGemmParams& p, int expert, int group,
                                            int warp, int lane)
        : rows_(group, warp, lane), third_(lane % 4) {
        dense_ = static_cast<const u16*>(p.dense) + static_cast<i64>(expert) * kOut * kIn;
    }

    __device__ __forceinline__ void load(int block, int m, RawWeights& raw) const {
        const int first = firstValue(block, kBlocks, third_);
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            if (kIn % (2 * kBlock) != 0 && first + part * 8 >= kIn) {
                raw.low[part] = raw.high[part] = u32x4{};
                continue;
            }
            raw.low[part] =
                loadOnce(dense_ + (static_cast<u32>(rows_.row(m, 0)) * kIn + static_cast<u32>(first + part * 8)));
            raw.high[part] =
                loadOnce(dense_ + (static_cast<u32>(rows_.row(m, 1)) * kIn + static_cast<u32>(first + part * 8)));
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
    WeightRows rows_;
    int third_; ///< lane % 4
};

/// The fragments of all blocks, with the loads one block ahead.
class WeightStream {
public:
    static constexpr bool kTellsOdd = false; ///< next() does the same for all blocks
    __device__ __forceinline__ explicit WeightStream(const WeightReader& reader) : reader_(reader) {
        reader_.load(0, 0, raw_[0]);
        reader_.load(0, 1, raw_[1]);
    }
    /// In order of blocks, m 0 before 1; kOdd is block % 2.
    template <int kOdd> __device__ __forceinline__ void next(int block, int m, u32 (&a)[4][4]) {
        WeightReader::expand(raw_[m], a);
        reader_.load(min(block + 1, kBlocks - 1), m, raw_[m]);
    }

private:
    const WeightReader reader_;
    RawWeights raw_[2];
};

#endif

/// What a sum over expanded weights is multiplied by.
#if VT_MXFP4
inline constexpr float kUndo = kMxfp4Undo;
#else
inline constexpr float kUndo = 1;
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
