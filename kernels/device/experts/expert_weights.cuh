// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The weights of grouped expert products: how a lane loads its share of them as they are stored (expert_tiles.cuh says
// which share), and how that becomes fragments.

#include "device/abi/weight_format.h"
#include "device/experts/expert_tiles.cuh"
#include "device/formats/fp8_words.cuh"
#include "device/formats/int4_words.cuh"
#include "device/formats/mxfp4.cuh"

namespace vt::grouped {

/// Blocks that one load brings: two of four bits.
inline constexpr int kLoadBlocks = VT_W_FORMAT == VT_FORMAT_DENSE || VT_W_FORMAT == VT_FORMAT_FP8 ? 1 : 2;

#if VT_W_FORMAT == VT_FORMAT_INT4

/// What a sum over expanded weights is multiplied by.
inline constexpr float kUndo = kInt4WeightUndo;
/// Inputs that have one scale: all, or some that go together with the 128 inputs of two blocks.
inline constexpr int kGroup = VT_GROUP >= kIn ? ceilDiv(kIn, 128) * 128 : VT_GROUP;
static_assert(kGroup % 32 == 0 && (128 % kGroup == 0 || kGroup % 128 == 0), "a lane's 32 values have one scale");

/// A group's numbers as they are stored: nothing is computed when they are loaded, so that nothing waits for them then.
struct GroupNumbers {
#if VT_SCALE_DTYPE == VT_F32
    using ScaleBits = u32;
#else
    using ScaleBits = u16;
#endif
    u32 scale; ///< its bits; once settled those of a BF16, and above them the zero
    u32 zero;

    /// One register instead of two, once they are there.
    __device__ __forceinline__ void settle() {
#if VT_SCALE_DTYPE == VT_F32
        scale = packBf16(__uint_as_float(scale), 0);
#elif VT_SCALE_DTYPE == VT_F16
        scale = packBf16(toFloat(f16{static_cast<u16>(scale)}), 0);
#endif
        scale |= VT_ZEROS ? zero << 16 : 0;
    }
    __device__ __forceinline__ Int4WordFactor<VT_ZEROS != 0> factor() const {
        return {__uint_as_float(scale << 16), scale >> 16};
    }
};

/// Group \p at over all rows, and the one kFurther later.
template <int kFurther>
__device__ __forceinline__ void loadGroups(const vitrine::kernels::abi::ExpertGemmParams& p, u32 at, GroupNumbers& low,
                                           GroupNumbers& high) {
    const auto* scales = static_cast<const GroupNumbers::ScaleBits*>(p.scales) + at;
    low.scale = __ldg(scales);
    high.scale = __ldg(scales + kFurther);
    if (VT_ZEROS) {
        const u8* zeros = p.zeros + at;
        low.zero = __ldg(zeros);
        high.zero = __ldg(zeros + kFurther);
    }
}

#elif VT_W_FORMAT == VT_FORMAT_MXFP4

inline constexpr float kUndo = kMxfp4Undo;
inline constexpr int kGroup = 32;

struct Mxfp4Factor {
    u32 scale;

    __device__ __forceinline__ void unpack(u32 word, u32 (&out)[4]) const { unpackMxfp4(word, scale, out); }
};

struct GroupNumbers {
    u32 scale;

    __device__ __forceinline__ void settle() {}
    __device__ __forceinline__ Mxfp4Factor factor() const { return {mxfp4Factor(scale)}; }
};

#elif VT_W_FORMAT == VT_FORMAT_FP8

/// Keeps weights of all scales that checkpoints have far from the ends of BF16.
inline constexpr float kUndo = 0x1.0p16F;
/// Inputs that have one scale, which the 128 inputs of two blocks share.
inline constexpr int kGroup = VT_GROUP >= kIn ? ceilDiv(kIn, 128) * 128 : VT_GROUP;
static_assert(kGroup % 128 == 0, "a lane's 32 values have one scale");

#else

inline constexpr float kUndo = 1;

#endif

/// A lane's share of one fragment's weights as one load brings it, of slots g and g + 8; and how a block becomes the A
/// fragments of its four steps.
#if VT_W_FORMAT == VT_FORMAT_DENSE

struct RawWeights {
    u32x4 low[2], high[2];

    __device__ __forceinline__ void settle() {}
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

#elif VT_W_FORMAT == VT_FORMAT_FP8

struct RawWeights {
    u32x4 low, high; ///< 16 elements
    float lowScale, highScale;

    __device__ __forceinline__ void settle() {}
    template <int kOdd> __device__ __forceinline__ void expand(u32 (&a)[4][4]) const {
        expandSlot(low, lowScale, a, 0);
        expandSlot(high, highScale, a, 1);
    }

private:
    static __device__ __forceinline__ void expandSlot(u32x4 words, float scale, u32 (&a)[4][4], int slot) {
        const float factor = scale * (kFp8PairUndo / kUndo);
        expandEight(words.x, words.y, factor, a, 0, slot);
        expandEight(words.z, words.w, factor, a, 2, slot);
    }
    static __device__ __forceinline__ void expandEight(u32 first, u32 second, float factor, u32 (&a)[4][4], int step,
                                                       int slot) {
        a[step][slot] = fp8Weights<0>(first, second, factor);
        a[step][slot + 2] = fp8Weights<1>(first, second, factor);
        a[step + 1][slot] = fp8Weights<2>(first, second, factor);
        a[step + 1][slot + 2] = fp8Weights<3>(first, second, factor);
    }
};

#else

struct RawWeights {
    u32x4 low, high; ///< 16 elements of an even block, then 16 of its partner
    GroupNumbers lowGroup, highGroup;

    /// What came with a load is there: before its first use.
    __device__ __forceinline__ void settle() {
        lowGroup.settle();
        highGroup.settle();
    }
    template <int kOdd> __device__ __forceinline__ void expand(u32 (&a)[4][4]) const {
        expandSlot(kOdd ? low.z : low.x, kOdd ? low.w : low.y, lowGroup, a, 0);
        expandSlot(kOdd ? high.z : high.x, kOdd ? high.w : high.y, highGroup, a, 1);
    }

private:
    static __device__ __forceinline__ void expandSlot(u32 first, u32 second, GroupNumbers group, u32 (&a)[4][4],
                                                      int slot) {
        const auto factor = group.factor();
        u32 pairs[4];
        factor.unpack(first, pairs);
        a[0][slot] = pairs[0];
        a[0][slot + 2] = pairs[1];
        a[1][slot] = pairs[2];
        a[1][slot + 2] = pairs[3];
        factor.unpack(second, pairs);
        a[2][slot] = pairs[0];
        a[2][slot + 2] = pairs[1];
        a[3][slot] = pairs[2];
        a[3][slot + 2] = pairs[3];
    }
};

#endif

/// What the places of all formats share.
class FragmentEnds {
protected:
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
};

/// Where a lane's share of one fragment lies: in slot g's row and kHighRows further.
#if VT_W_FORMAT == VT_FORMAT_DENSE

class FragmentPlace : FragmentEnds {
public:
    __device__ __forceinline__ FragmentPlace(const vitrine::kernels::abi::ExpertGemmParams& p, int expert, int group,
                                             int m, int warp, int lane)
        : weights_(static_cast<const u16*>(p.weights) +
                   (static_cast<i64>(expert) * kOut + WeightRows(group, warp, lane).row(m, 0)) * kIn + lane % 4 * 32) {}

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
};

#elif VT_W_FORMAT == VT_FORMAT_FP8

class FragmentPlace : FragmentEnds {
public:
    __device__ __forceinline__ FragmentPlace(const vitrine::kernels::abi::ExpertGemmParams& p, int expert, int group,
                                             int m, int warp, int lane)
        : scales_(static_cast<const Scale*>(p.scales)) {
        const int row = WeightRows(group, warp, lane).row(m, 0);
        weights_ = static_cast<const u8*>(p.weights) + (static_cast<i64>(expert) * kOut + row) * kIn + lane % 4 * 32;
        const int scaleRows = ceilDiv(kOut, p.rowGroup);
        low_ = static_cast<u32>(expert * scaleRows + row / p.rowGroup) * kGroupsOfRow;
        high_ = static_cast<u32>(expert * scaleRows + (row + kHighRows) / p.rowGroup) * kGroupsOfRow;
    }

    __device__ __forceinline__ void load(int block, RawWeights& raw) const {
        const u8* from = weights_ + block / 2 * 2 * kBlock + block % 2 * 16;
        bool inside = true;
        if (isShort(block)) {
            const int third = laneThird();
            inside = firstValue(block, kBlocks, third) < kIn;
            from -= hasPartner(block, kBlocks) ? 0 : 16 * third;
        }
        raw.low = raw.high = u32x4{};
        if (inside) {
            raw.low = loadPair(from);
            raw.high = loadPair(from + kHighRows * kIn);
        }
        const u32 at = static_cast<u32>(block * kBlock / kGroup);
        raw.lowScale = toFloat(scales_[low_ + at]);
        raw.highScale = toFloat(scales_[high_ + at]);
    }

private:
    using Scale = StorageOf<VT_SCALE_DTYPE>;
    static constexpr int kGroupsOfRow = ceilDiv(kIn, kGroup);

    const u8* weights_; ///< of the lower slot's row
    const Scale* scales_;
    u32 low_, high_; ///< the first scale of the slots' rows
};

#elif VT_W_FORMAT == VT_FORMAT_MXFP4

class FragmentPlace : FragmentEnds {
public:
    __device__ __forceinline__ FragmentPlace(const vitrine::kernels::abi::ExpertGemmParams& p, int expert, int group,
                                             int m, int warp, int lane) {
        const i64 row = static_cast<i64>(expert) * kOut + WeightRows(group, warp, lane).row(m, 0);
        weights_ = static_cast<const u8*>(p.weights) + row * (kIn / 2) + lane % 4 * 16;
        scales_ = static_cast<const u8*>(p.scales) + row * (kIn / kGroup) + lane % 4;
    }

    /// An even block and its partner, if it has one.
    __device__ __forceinline__ void load(int block, RawWeights& raw) const {
        constexpr int kHighBytes = kHighRows * (kIn / 2);
        const u8* from = weights_ + block * (kBlock / 2);
        const u8* scales = scales_ + block * (kBlock / kGroup);
        if (isShort(block)) {
            const int third = laneThird();
            if (firstValue(block, kBlocks, third) >= kIn) {
                raw = RawWeights{};
                return;
            }
            if (!hasPartner(block, kBlocks)) {
                from -= 8 * third;
                raw.low = loadHalf(from);
                raw.high = loadHalf(from + kHighBytes);
                loadScales(scales - (third + 1) / 2, raw);
                return;
            }
        }
        raw.low = loadPair(from);
        raw.high = loadPair(from + kHighBytes);
        loadScales(scales, raw);
    }

private:
    static __device__ __forceinline__ void loadScales(const u8* scales, RawWeights& raw) {
        raw.lowGroup.scale = __ldg(scales);
        raw.highGroup.scale = __ldg(scales + kHighRows * (kIn / kGroup));
    }

    const u8* weights_; ///< of the lower slot's row
    const u8* scales_;
};

#else

class FragmentPlace : FragmentEnds {
public:
    __device__ __forceinline__ FragmentPlace(const vitrine::kernels::abi::ExpertGemmParams& p, int expert, int group,
                                             int m, int warp, int lane)
        : p_(p), row_(static_cast<u32>(expert * kOut + WeightRows(group, warp, lane).row(m, 0))) {}

    /// An even block and its partner, if it has one. A lane whose values are behind the end takes others of the row: x
    /// is zero there.
    __device__ __forceinline__ void load(int block, RawWeights& raw) const {
        constexpr int kHighBytes = kHighRows * (kIn / 2);
        int first = block * kBlock + 32 * laneThird();
        if (isShort(block)) {
            first = firstValue(block, kBlocks, laneThird());
            first = first < kIn ? first : block * kBlock;
        }
        const u8* from = static_cast<const u8*>(p_.weights) + static_cast<u64>(row_) * (kIn / 2) + first / 2;
        if (!hasPartner(kBlocks - 1, kBlocks) && isShort(block)) {
            raw.low = loadHalf(from);
            raw.high = loadHalf(from + kHighBytes);
        } else {
            raw.low = loadPair(from);
            raw.high = loadPair(from + kHighBytes);
        }
        loadGroups<kHighRows * kGroupsOfRow>(p_, row_ * kGroupsOfRow + static_cast<u32>(first / kGroup), raw.lowGroup,
                                             raw.highGroup);
    }

private:
    static constexpr int kGroupsOfRow = ceilDiv(kIn, kGroup);

    const vitrine::kernels::abi::ExpertGemmParams& p_;
    u32 row_; ///< the lower slot's, over all experts
};

#endif

} // namespace vt::grouped
