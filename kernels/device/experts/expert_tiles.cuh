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
#include "device/formats/mxfp4.cuh"
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

/// A lane's share of one fragment's weights as one load brings it: two blocks of MXFP4, one of BF16; and how a block
/// becomes the A fragments of its four steps.
#if VT_MXFP4

struct RawWeights {
    u32x4 low, high; ///< of slots g and g + 8: 16 elements of an even block, then 16 of its partner
    u32 lowScale, highScale;

    template <int kOdd> __device__ __forceinline__ void expand(u32 (&a)[4][4]) const {
        expandSlot(kOdd ? low.z : low.x, kOdd ? low.w : low.y, mxfp4Factor(lowScale), a, 0);
        expandSlot(kOdd ? high.z : high.x, kOdd ? high.w : high.y, mxfp4Factor(highScale), a, 1);
    }

private:
    static __device__ __forceinline__ void expandSlot(u32 first, u32 second, u32 factor, u32 (&a)[4][4], int slot) {
        u32 pairs[4];
        unpackMxfp4(first, factor, pairs);
        a[0][slot] = pairs[0];
        a[0][slot + 2] = pairs[1];
        a[1][slot] = pairs[2];
        a[1][slot + 2] = pairs[3];
        unpackMxfp4(second, factor, pairs);
        a[2][slot] = pairs[0];
        a[2][slot + 2] = pairs[1];
        a[3][slot] = pairs[2];
        a[3][slot + 2] = pairs[3];
    }
};

#else

struct RawWeights {
    u32x4 low[2], high[2];

    template <int kOdd> __device__ __forceinline__ void expand(u32 (&a)[4][4]) const {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            expandSlot(low[part], a, 2 * part, 0);
            expandSlot(high[part], a, 2 * part, 1);
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
};

#endif

/// Where a lane's share of one fragment lies: in slot g's row and kHighRows further.
class FragmentPlace {
public:
    __device__ __forceinline__ FragmentPlace(const vitrine::kernels::abi::ExpertGemmParams& p, int expert, int group,
                                             int m, int warp, int lane) {
        const int third = lane % 4;
        const i64 row = static_cast<i64>(expert) * kOut + WeightRows(group, warp, lane).row(m, 0);
#if VT_MXFP4
        weights_ = static_cast<const u8*>(p.blocks) + row * (kIn / 2) + third * 16;
        scales_ = static_cast<const u8*>(p.scales) + row * (kIn / 32) + third;
#else
        weights_ = static_cast<const u16*>(p.dense) + row * kIn + third * 32;
#endif
    }

#if VT_MXFP4
    /// An even block and its partner, if it has one.
    __device__ __forceinline__ void load(int block, RawWeights& raw) const {
        constexpr int kHighBytes = kHighRows * (kIn / 2);
        constexpr int kHighScales = kHighRows * (kIn / 32);
        const u8* from = weights_ + block * (kBlock / 2);
        const u8* scales = scales_ + block * (kBlock / 32);
        if (isShort(block)) {
            const int third = laneThird();
            if (firstValue(block, kBlocks, third) >= kIn) {
                raw = RawWeights{};
                return;
            }
            if (!hasPartner(block, kBlocks)) {
                from -= 8 * third;
                scales -= (third + 1) / 2;
                raw.low = loadHalf(from);
                raw.high = loadHalf(from + kHighBytes);
                raw.lowScale = __ldg(scales);
                raw.highScale = __ldg(scales + kHighScales);
                return;
            }
        }
        raw.low = loadPair(from);
        raw.high = loadPair(from + kHighBytes);
        raw.lowScale = __ldg(scales);
        raw.highScale = __ldg(scales + kHighScales);
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

    const u8* weights_; ///< of the lower slot's row
    const u8* scales_;
#else
    __device__ __forceinline__ void load(int block, RawWeights& raw) const {
        const u16* from = weights_ + block / 2 * 2 * kBlock + block % 2 * 16;
        int left = 16; ///< values of the lane inside the axis
        if (isShort(block)) {
            const int third = laneThird();
            left = kIn - firstValue(block, kBlocks, third);
            from -= hasPartner(block, kBlocks) ? 0 : 16 * third;
        }
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            raw.low[part] = raw.high[part] = u32x4{};
            if (left > part * 8) {
                raw.low[part] = loadOnce(from + part * 8);
                raw.high[part] = loadOnce(from + part * 8 + kHighRows * kIn);
            }
        }
    }

private:
    const u16* weights_;
#endif

    /// Whether the axis ends inside of a block and its partner.
    static __device__ __forceinline__ bool isShort(int block) {
        return kIn % (2 * kBlock) != 0 && (block | 1) == ((kBlocks - 1) | 1);
    }
    /// lane % 4, read anew: it is needed once, and a register in the loop is dear.
    static __device__ __forceinline__ int laneThird() {
        int thread;
        asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
        return thread % 4;
    }
};

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
