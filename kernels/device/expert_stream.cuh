// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A few rows of x times rows of MXFP4 matrices, near the rate of memory (sm_90 and later).
//
// A unit is sixteen weight rows. One warp brings units with their scales into a ring in shared memory by bulk copies. The
// other warps share the groups of 32 columns: a unit is the A operand of mma.sync, eight rows of x (in shared memory) are
// the B operand; a group's products are multiplied by the rows' scales in float32. The sums of the warps meet in shared memory, and the warps take turns in finishing a unit.
// Weights enter as halves, 2^-14 of their value; a row of x is multiplied by the power of two that brings its largest
// value to 2^14 .. 2^15, so that a half holds every bf16 down to 2^-32 of it. Both factors are powers of two and are
// undone at the end. A row's sums do not depend on the other rows.

#include "device/mma.cuh"
#include "device/mxfp4_half.cuh"
#include "device/pdl.cuh"
#include "device/shared_rows.cuh"

namespace vt::experts {

inline constexpr int kWarps = VT_WARPS; ///< that multiply; one more copies
inline constexpr int kThreads = (kWarps + 1) * 32;
/// Blocks of one token's kernels that must fit into a multiprocessor, so that the next kernel's weights can arrive
/// behind this one's.
#if __CUDA_ARCH__ == 900
inline constexpr int kBlocks = 2;
#else
inline constexpr int kBlocks = 1;
#endif
inline constexpr int kUnitRows = 16;
inline constexpr int kMaxTokens = 64;
inline constexpr int kMaxPairs = 512;

/// Sizes of products over kIn columns.
template <int kIn> struct Shape {
    static_assert(kIn % 64 == 0, "an even number of groups");
    static constexpr int kGroups = kIn / 32;
    /// Rows lie as in the matrix, so that neighbours come in one copy, unless too many would lie in the same banks; padded
    /// rows are an odd number of 16 bytes.
    static constexpr bool kPacked = kIn / 8 % 16 != 0;
    static constexpr int kRowBytes = kPacked ? kIn / 2 : (kGroups | 1) * 16;
    static constexpr int kScalesAt = kUnitRows * kRowBytes;
    static constexpr int kScaleBytes = kUnitRows * kGroups + 16 * 16; ///< with room for segments that begin unaligned
    static constexpr int kSlotBytes = kScalesAt + kScaleBytes;
    static constexpr int kSteps = ceilDiv(kGroups, kWarps); ///< groups of a warp
};

template <int kSlots> struct Ring {
    alignas(8) u64 full[kSlots];
    u64 empty[kSlots];
};

template <int kSlots> struct RingPlace {
    int slot = 0;
    u32 phase = 0;
    int used = 0;
    __device__ __forceinline__ void advance() {
        ++used;
        if (++slot == kSlots) {
            slot = 0;
            phase ^= 1;
        }
    }
};

template <int kSlots> __device__ __forceinline__ void beginRing(Ring<kSlots>& ring) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < kSlots; ++i) {
            barrier::init(sharedAddress(&ring.full[i]), 1);
            barrier::init(sharedAddress(&ring.empty[i]), kWarps);
        }
        barrier::fenceInit();
    }
    __syncthreads();
}

/// What a lane brings of a unit: row r = lane (null: none), and `scaleBytes` of scales to `scalesTo` bytes behind the
/// slot's scales (all multiples of 16; 0: none).
struct UnitPiece {
    const u8* row = nullptr;
    const u8* scales = nullptr;
    u32 scaleBytes = 0, scalesTo = 0;
};

/// Bytes that this lane copies from its row on: the first of neighbouring rows copies them all.
template <int kIn> __device__ __forceinline__ u32 runBytes(const u8* row) {
    constexpr u32 kBytes = kIn / 2;
    if constexpr (!Shape<kIn>::kPacked) {
        return row == nullptr ? 0 : kBytes;
    }
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const u64 address = reinterpret_cast<u64>(row);
    const u64 before = __shfl_up_sync(kAllLanes, address, 1);
    const bool goesOn = row != nullptr && lane > 0 && before != 0 && before + kBytes == address;
    const u32 others = ~__ballot_sync(kAllLanes, goesOn);
    const u32 later = others >> 1 >> lane; // lanes from 16 on have no rows: there is always one
    return row != nullptr && !goesOn ? kBytes * static_cast<u32>(__ffs(static_cast<int>(later))) : 0;
}

/// One unit into the next slot, by the copying warp.
template <int kIn, int kSlots>
__device__ __forceinline__ void copyUnit(Ring<kSlots>& ring, u32 memory, RingPlace<kSlots>& place,
                                         const UnitPiece& piece) {
    using S = Shape<kIn>;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const u32 full = sharedAddress(&ring.full[place.slot]);
    const u32 rowBytes = runBytes<kIn>(piece.row);
    const u32 bytes = __reduce_add_sync(kAllLanes, rowBytes + piece.scaleBytes);
    if (place.used >= kSlots) {
        barrier::wait(sharedAddress(&ring.empty[place.slot]), place.phase ^ 1);
    }
    if (lane == 0) {
        barrier::arriveExpect(full, bytes);
    }
    __syncwarp();
    const u32 to = memory + static_cast<u32>(place.slot * S::kSlotBytes);
    if (rowBytes != 0) {
        copyBulkOnce(to + static_cast<u32>(lane * S::kRowBytes), piece.row, rowBytes, full);
    }
    if (piece.scaleBytes != 0) {
        copyBulkOnce(to + S::kScalesAt + piece.scalesTo, piece.scales, piece.scaleBytes, full);
    }
    place.advance();
}

/// The same piece into the second-level cache only.
template <int kIn> __device__ __forceinline__ void prefetchUnit(const UnitPiece& piece) {
    const u32 rowBytes = runBytes<kIn>(piece.row);
    if (rowBytes != 0) {
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(piece.row), "r"(rowBytes) : "memory");
    }
    if (piece.scaleBytes != 0) {
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(piece.scales), "r"(piece.scaleBytes) : "memory");
    }
}

/// Rows of x as halves in the order of expandMxfp4, multiplied by a power of two; `factors` gets what undoes it (and the
/// weights' own) for each row.
struct HalfRows {
    static constexpr bool kMeasures = true;
    float* factors;

    __device__ __forceinline__ float measure(float most, const u32x4& v) const {
        return fmaxf(fmaxf(fmaxf(fmaxf(most, larger(v.x)), larger(v.y)), larger(v.z)), larger(v.w));
    }
    __device__ __forceinline__ float join(float a, float b) const { return fmaxf(a, b); }
    __device__ __forceinline__ u32x4 store(int row, float most, int at, int, const u32x4& v) const {
        // 2^power brings the largest to 2^14 .. 2^15. Powers stay normal floats whatever x holds.
        int power = 14 + 127 - static_cast<int>(__float_as_uint(most) >> 23);
        power = power > 126 ? 126 : power;
        const float up = __uint_as_float(static_cast<u32>(power + 127) << 23);
        if (at == 0) {
            factors[row] = __uint_as_float(static_cast<u32>(kMxfp4HalfExponent - power + 127) << 23);
        }
        // (e0, e4), (e2, e6), (e1, e5), (e3, e7)
        return {packPair<f16>(lowBf16(v.x) * up, lowBf16(v.z) * up), packPair<f16>(lowBf16(v.y) * up, lowBf16(v.w) * up),
                packPair<f16>(highBf16(v.x) * up, highBf16(v.z) * up),
                packPair<f16>(highBf16(v.y) * up, highBf16(v.w) * up)};
    }

private:
    __device__ __forceinline__ static float larger(u32 pair) {
        return fmaxf(fabsf(lowBf16(pair)), fabsf(highBf16(pair)));
    }
};

__device__ __forceinline__ u32 loadWord(u32 address) {
    u32 out;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(out) : "r"(address));
    return out;
}
__device__ __forceinline__ u32 loadByte(u32 address) {
    u32 out;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(out) : "r"(address));
    return out;
}

/// The sums of the next unit over this warp's groups, as mma16816's C, for `rows` rows that lie at `x` (SharedRows).
/// `low` and `high` are where the scales of rows g and g + 8 lie behind the slot's scales.
template <int kIn, int kTiles, int kSlots>
__device__ __forceinline__ void multiplyUnit(Ring<kSlots>& ring, u32 memory, u32 x, int rows, RingPlace<kSlots>& place,
                                             int low, int high, float (&c)[kTiles][4]) {
    using S = Shape<kIn>;
    constexpr u32 kStride = SharedRows<kIn, kWarps * 32>::kStride;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int g = lane / 4;
    const int t = lane % 4;
    const u32 slot = memory + static_cast<u32>(place.slot * S::kSlotBytes);
    const u32 words = slot + static_cast<u32>(g * S::kRowBytes + t * 4);
    const u32 scales = slot + S::kScalesAt;
    const u32 own = x + static_cast<u32>(g) * kStride + static_cast<u32>(t * 16);
    barrier::wait(sharedAddress(&ring.full[place.slot]), place.phase);
#pragma unroll
    for (int step = 0; step < S::kSteps; ++step) {
        const int group = warp + step * kWarps;
        if ((step + 1) * kWarps <= S::kGroups || group < S::kGroups) {
            const u32 at = static_cast<u32>(group);
            u32 first[4];
            u32 second[4];
            expandMxfp4(loadWord(words + at * 16), first);
            expandMxfp4(loadWord(words + 8 * S::kRowBytes + at * 16), second);
            const float scaleLow = e8m0(loadByte(scales + static_cast<u32>(low) + at));
            const float scaleHigh = e8m0(loadByte(scales + static_cast<u32>(high) + at));
            const u32 a[4] = {first[0], second[0], first[1], second[1]};
            const u32 b[4] = {first[2], second[2], first[3], second[3]};
#pragma unroll
            for (int tile = 0; tile < kTiles; ++tile) {
                const u32x4 v = g + tile * 8 < rows
                                    ? loadShared16(own + static_cast<u32>(tile * 8) * kStride + at * 64)
                                    : u32x4{0, 0, 0, 0};
                float d[4] = {};
                mma16816<f16>(d, a, v.x, v.y);
                mma16816<f16>(d, b, v.z, v.w);
                c[tile][0] += scaleLow * d[0];
                c[tile][1] += scaleLow * d[1];
                c[tile][2] += scaleHigh * d[2];
                c[tile][3] += scaleHigh * d[3];
            }
        }
    }
    __syncwarp();
    if (lane == 0) {
        barrier::arrive(sharedAddress(&ring.empty[place.slot]));
    }
    place.advance();
}

/// The sums of all warps: part[warp][tile][row][column]. A warp stores its own; after the barrier `sum` adds them.
template <int kTiles> struct Partials {
    static constexpr int kWarpFloats = kTiles * kUnitRows * 8;
    static constexpr int kFloats = kWarps * kWarpFloats;

    __device__ __forceinline__ static void store(float* part, const float (&c)[kTiles][4]) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        float* to = part + static_cast<int>(threadIdx.x) / 32 * kWarpFloats + lane / 4 * 8 + lane % 4 * 2;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
            *reinterpret_cast<float2*>(to + tile * 128) = float2{c[tile][0], c[tile][1]};
            *reinterpret_cast<float2*>(to + tile * 128 + 64) = float2{c[tile][2], c[tile][3]};
        }
    }
    __device__ __forceinline__ static float sum(const float* part, int tile, int row, int column) {
        float out = 0;
#pragma unroll
        for (int i = 0; i < kWarps; ++i) {
            out += part[i * kWarpFloats + tile * 128 + row * 8 + column];
        }
        return out;
    }
};

/// The (expert, up to 8 * kTiles of its pairs) items of a batch, in order of expert and pair. Every block makes the list
/// for itself from the ids.
template <int kTiles> struct ItemList {
    static constexpr int kPairs = 8 * kTiles; ///< of an item at most
    short ids[kMaxPairs];
    int starts[VT_EXPERTS + 1]; ///< items before each expert

    /// All threads of the block, `ids` readable by this kernel.
    __device__ __forceinline__ void make(const int* from, int pairs) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        for (int i = static_cast<int>(threadIdx.x); i < pairs; i += kThreads) {
            int id;
            asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(id) : "l"(from + i));
            ids[i] = static_cast<short>(id);
        }
        __syncthreads();
        for (int expert = static_cast<int>(threadIdx.x) / 32; expert < VT_EXPERTS; expert += kThreads / 32) {
            int count = 0;
            for (int i = 0; i < pairs; i += 32) {
                count += __popc(__ballot_sync(kAllLanes, i + lane < pairs && ids[i + lane] == expert));
            }
            if (lane == 0) {
                starts[expert + 1] = ceilDiv(count, kPairs);
            }
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            int before = 0;
            for (int first = 0; first < VT_EXPERTS; first += 32) {
                int items = first + lane < VT_EXPERTS ? starts[first + lane + 1] : 0;
#pragma unroll
                for (int offset = 1; offset < 32; offset *= 2) {
                    const int other = __shfl_up_sync(kAllLanes, items, offset);
                    items += lane >= offset ? other : 0;
                }
                if (first + lane < VT_EXPERTS) {
                    starts[first + lane + 1] = before + items;
                }
                before += __shfl_sync(kAllLanes, items, 31);
            }
            if (lane == 0) {
                starts[0] = 0;
            }
        }
        __syncthreads();
    }
    __device__ __forceinline__ int count() const { return starts[VT_EXPERTS]; }
    /// By a whole warp.
    __device__ __forceinline__ int expertOf(int item) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        for (int first = 0; first < VT_EXPERTS; first += 32) {
            const int expert = first + lane;
            const bool here = expert < VT_EXPERTS && starts[expert] <= item && item < starts[expert + 1];
            const u32 found = __ballot_sync(kAllLanes, here);
            if (found != 0) {
                return first + __ffs(static_cast<int>(found)) - 1;
            }
        }
        return 0;
    }
    /// By a whole warp: the pairs of an item into `out` (kPairs numbers, -1 where there is none), as this lane sees them
    /// at `out[column]` after a __syncwarp.
    __device__ __forceinline__ void pairsOf(int item, int expert, int pairs, int* out) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        if (lane < kPairs) {
            out[lane] = -1;
        }
        __syncwarp();
        int before = -(item - starts[expert]) * kPairs;
        for (int i = 0; i < pairs; i += 32) {
            const u32 same = __ballot_sync(kAllLanes, i + lane < pairs && ids[i + lane] == expert);
            const int at = before + __popc(same & ((1U << lane) - 1));
            if (((same >> lane) & 1) != 0 && at >= 0 && at < kPairs) {
                out[at] = i + lane;
            }
            before += __popc(same);
        }
        __syncwarp();
    }
};

} // namespace vt::experts
