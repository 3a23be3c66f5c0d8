// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Up to 8 * VT_TILES rows of x times rows of MXFP4 matrices, near the rate of memory; see expert_ring.cuh.
//
// The multiplying warps share the groups of 32 columns of every unit. A warp holds its columns of all rows of x in
// registers, so that shared memory serves the weights alone. The rows come through the same ring as the units, in front
// of the first unit that they multiply: they wait only for weights that have to be multiplied before. The
// warps' sums go through a few buffers to finishing warps, which add them and write: nobody waits for a result. All
// lanes arrive for themselves: tools that look for races do not see that a __syncwarp orders what the others did before
// one lane's arrival, and one arrival of a warp costs as much.

#include "device/experts/expert_ring.cuh"
#include "device/formats/mxfp4.cuh"
#if VT_TILES > 1
#include "device/lib/wgmma.cuh"
#endif

namespace vt::experts {

inline constexpr int kTiles = VT_TILES;         ///< of eight rows of x
inline constexpr int kWarps = VT_WARPS;         ///< that multiply; the next one copies
inline constexpr int kFinishers = VT_FINISHERS; ///< warps that finish units in turns
inline constexpr int kBuffers = VT_BUFFERS;     ///< of sums
inline constexpr int kThreads = (kWarps + 1 + kFinishers) * 32;
static_assert(kFinishers <= kBuffers, "a wait cannot distinguish phases that lie two apart");

// Two tiles need more registers than sixteen warps have each (sm_90a): the multiplying warps take what the others
// leave. Each is called once, by all warps of its branch.
inline constexpr int kMoreRegisters = 152;
static_assert(kWarps % 4 == 0 && (kTiles == 1 || (kWarps == 12 && kThreads == 512)), "whole groups of four warps");
__device__ __forceinline__ void takeRegisters() {
#if VT_TILES > 1
    wgmma::takeRegisters<kMoreRegisters>();
#endif
}
__device__ __forceinline__ void leaveRegisters() {
#if VT_TILES > 1
    wgmma::giveRegisters<512 - 3 * kMoreRegisters>();
#endif
}

/// Until the phase with this parity is over; the warp sleeps meanwhile instead of asking.
__device__ __forceinline__ void sleepUntil(u32 barrier, u32 parity) {
    constexpr u32 kNanoseconds = 10'000'000; // at most; it wakes when the phase ends
    u32 done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2, %3;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity), "r"(kNanoseconds)
                     : "memory");
    } while (done == 0);
}

/// Number of this multiplying warp.
__device__ __forceinline__ int memberOf() {
    return static_cast<int>(threadIdx.x) / 32;
}

/// How sixteen rows of kIn columns, or a few rows of x, lie in a slot of the ring.
template <int kIn> struct Slot {
    static_assert(kIn % 64 == 0, "an even number of groups");
    static constexpr int kGroups = kIn / 32;
    static constexpr int kRowBytes = kIn / 2;
    /// Rows that lie as in the matrix; after them 16 bytes are left free, so that eight rows lie in different banks.
    static constexpr int kRun = kRowBytes % 128 == 0 ? 1 : kRowBytes % 64 == 0 ? 2 : 4;
    static constexpr int kRuns = kUnitRows / kRun;
    static constexpr int kRunBytes = kRun * kRowBytes;
    static constexpr int kRunStride = kRunBytes + 16;
    static constexpr int kScalesAt = kRuns * kRunStride;
    static constexpr int kBytes = kScalesAt + kUnitRows * kGroups;
    static constexpr int kSteps = ceilDiv(kGroups, kWarps); ///< groups of a warp at most
    static constexpr int kXStride = SharedRows<kIn, 32>::kStride;
    static constexpr int kXRows = kBytes / kXStride < 8 ? kBytes / kXStride : 8; ///< rows of x in a slot
    static_assert(kXRows > 0 && kTiles * kSteps <= 16, "x fits a slot, a warp's columns its registers");

    __device__ __forceinline__ static u32 rowAt(int r) {
        return static_cast<u32>(r / kRun * kRunStride + r % kRun * kRowBytes);
    }
    /// Whether this warp has a group in a step; known to the compiler for all but the last.
    __device__ __forceinline__ static bool isGroup(int step) {
        return (step + 1) * kWarps <= kGroups || memberOf() + step * kWarps < kGroups;
    }
};

/// A unit's words for a lane: rows lane / 4 and + 8 of two steps each.
template <int kIn> struct UnitWords {
    u32 words[ceilDiv(Slot<kIn>::kSteps, 2)][4];

    /// `from` is this lane's row for loadMatrix4: row lane % 16 of the warp's first group, lanes from 16 on of the
    /// second. What a last step reads after its row is not used.
    __device__ __forceinline__ void load(u32 from) {
#pragma unroll
        for (int step = 0; step < Slot<kIn>::kSteps; step += 2) {
            loadMatrix4(words[step / 2], from + static_cast<u32>(step * kWarps * 16));
        }
    }
};

__device__ __forceinline__ u32 largerBf16x2(u32 a, u32 b) {
    u32 out;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
    return out;
}

/// This warp's columns of the rows of x, as B operands.
template <int kIn> class HeldRows {
    using S = Slot<kIn>;

public:
    /// Tile `tile` from shared memory; `row` is the address of row lane / 4 of the tile, or 0.
    __device__ __forceinline__ void load(int tile, u32 row) {
        const u32 from = row + static_cast<u32>(memberOf() * 64 + static_cast<int>(threadIdx.x) % 4 * 16);
#pragma unroll
        for (int step = 0; step < S::kSteps; ++step) {
            columns_[tile][step] = {0, 0, 0, 0};
            if (row != 0 && S::isGroup(step)) {
                columns_[tile][step] = loadShared16(from + static_cast<u32>(step * kWarps * 64));
            }
        }
    }

    /// To halves in the order of expandMxfp4, times a power of two.
    __device__ __forceinline__ void convert(int tile) {
        u32 pair = 0;
#pragma unroll
        for (const u32x4& v : columns_[tile]) {
            constexpr u32 kNoSigns = 0x7FFF7FFFU;
            pair = largerBf16x2(pair, largerBf16x2(largerBf16x2(v.x & kNoSigns, v.y & kNoSigns),
                                                   largerBf16x2(v.z & kNoSigns, v.w & kNoSigns)));
        }
        // Four lanes hold a row.
        float most = fmaxf(lowBf16(pair), highBf16(pair));
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
        const int power = powerFor(most);
        const float factor = undoing(power);
        const int column = static_cast<int>(threadIdx.x) % 4 * 2; // of C, that is a row of x
        factors_[tile][0] = __shfl_sync(kAllLanes, factor, column * 4);
        factors_[tile][1] = __shfl_sync(kAllLanes, factor, column * 4 + 4);
        const u32 up = packBf16(powerOfTwo(power), powerOfTwo(power));
#pragma unroll
        for (u32x4& v : columns_[tile]) {
            v = {multiplyBf16x2(v.x, up), multiplyBf16x2(v.y, up), multiplyBf16x2(v.z, up), multiplyBf16x2(v.w, up)};
            // (e0, e4), (e2, e6), (e1, e5), (e3, e7)
            v = {packPair<f16>(lowBf16(v.x), lowBf16(v.z)), packPair<f16>(lowBf16(v.y), lowBf16(v.w)),
                 packPair<f16>(highBf16(v.x), highBf16(v.z)), packPair<f16>(highBf16(v.y), highBf16(v.w))};
        }
    }

    /// The sums of a unit over this warp's groups, as mma16816's C, for the first kUsed tiles. `scales` is the address
    /// of the scale of row lane / 4 in the warp's first group. `early` is called in the middle, `done` when the unit
    /// has been read: it may load the words of the next one.
    template <int kUsed, class Early, class Done>
    __device__ __forceinline__ void multiply(UnitWords<kIn>& unit, u32 scales, float (&c)[kUsed][4], const Early& early,
                                             const Done& done) const {
        constexpr int kWhole = S::kGroups / kWarps; // steps that every warp has
        // A group's products are scaled while the next one's run.
        float d[2][kUsed][4];
        u32 scale[2][2];
#pragma unroll
        for (int step = 0; step < S::kSteps; ++step) {
            if (step == kWhole / 2) {
                early();
            }
            if (step < kWhole || S::isGroup(step)) {
                scale[step % 2][0] = loadByte(scales + static_cast<u32>(step * kWarps));
                scale[step % 2][1] = loadByte(scales + static_cast<u32>(step * kWarps + kHalfUnit * S::kGroups));
                product<kUsed>(unit.words[step / 2], step, d[step % 2]);
                if (step > 0) {
                    add<kUsed>(scale[(step + 1) % 2], d[(step + 1) % 2], c);
                }
                if (step >= kWhole) {
                    add<kUsed>(scale[step % 2], d[step % 2], c);
                }
            } else if (step > 0) {
                add<kUsed>(scale[(step + 1) % 2], d[(step + 1) % 2], c);
            }
        }
        done();
        if constexpr (kWhole == S::kSteps) {
            add<kUsed>(scale[(kWhole + 1) % 2], d[(kWhole + 1) % 2], c);
        }
#pragma unroll
        for (int tile = 0; tile < kUsed; ++tile) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                c[tile][i] *= factors_[tile][i % 2];
            }
        }
    }

private:
    template <int kUsed>
    __device__ __forceinline__ void product(const u32 (&words)[4], int step, float (&d)[kUsed][4]) const {
        u32 low[4];
        u32 high[4];
        expandMxfp4(words[step % 2 * 2], low);
        expandMxfp4(words[step % 2 * 2 + 1], high);
        const u32 a[4] = {low[0], high[0], low[1], high[1]};
        const u32 b[4] = {low[2], high[2], low[3], high[3]};
#pragma unroll
        for (int tile = 0; tile < kUsed; ++tile) {
            mmaFirst<f16>(d[tile], a, columns_[tile][step].x, columns_[tile][step].y);
        }
#pragma unroll
        for (int tile = 0; tile < kUsed; ++tile) {
            mma16816<f16>(d[tile], b, columns_[tile][step].z, columns_[tile][step].w);
        }
    }
    template <int kUsed>
    __device__ __forceinline__ static void add(const u32 (&scales)[2], const float (&d)[kUsed][4],
                                               float (&c)[kUsed][4]) {
        const float low = e8m0(scales[0]);
        const float high = e8m0(scales[1]);
#pragma unroll
        for (int tile = 0; tile < kUsed; ++tile) {
            c[tile][0] += low * d[tile][0];
            c[tile][1] += low * d[tile][1];
            c[tile][2] += high * d[tile][2];
            c[tile][3] += high * d[tile][3];
        }
    }

    u32x4 columns_[kTiles][S::kSteps];
    float factors_[kTiles][2]; ///< of this lane's two columns of C
};

/// The sums of the multiplying warps on their way to the finishing warps. Units are numbered from 0 in each block.
struct BatchSums {
    static constexpr int kTileBytes = 32 * 16; ///< of a warp
    static constexpr int kWarpBytes = kTiles * kTileBytes;
    static constexpr int kBytes = kBuffers * kWarps * kWarpBytes; ///< of all buffers, in dynamic shared memory
    alignas(8) u64 summed[kBuffers];
    u64 finished[kBuffers];

    /// By one thread, before the block's barrier.
    __device__ __forceinline__ void begin() {
        for (int i = 0; i < kBuffers; ++i) {
            barrier::init(sharedAddress(&summed[i]), kWarps * 32);
            barrier::init(sharedAddress(&finished[i]), 32);
        }
    }
    /// Whether the buffer for a unit is free, without waiting.
    __device__ __forceinline__ bool isFree(u32 unit) const {
        return unit < kBuffers || barrier::test(sharedAddress(&finished[unit % kBuffers]), (unit / kBuffers + 1) % 2);
    }
    /// By a multiplying warp; `to` is this lane's place in the first buffer, `isFree` an earlier answer.
    template <int kUsed>
    __device__ __forceinline__ void put(u32 to, u32 unit, bool isFree, const float (&c)[kUsed][4]) {
        const u32 buffer = unit % kBuffers;
        if (!isFree) {
            sleepUntil(sharedAddress(&finished[buffer]), (unit / kBuffers + 1) % 2);
        }
#pragma unroll
        for (int tile = 0; tile < kUsed; ++tile) {
            asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to + buffer * (kWarps * kWarpBytes) +
                                                                          static_cast<u32>(tile * kTileBytes)),
                         "f"(c[tile][0]), "f"(c[tile][1]), "f"(c[tile][2]), "f"(c[tile][3])
                         : "memory");
        }
        barrier::arrive(sharedAddress(&summed[buffer]));
    }
    /// By a finishing warp: the sums over all warps; `from` is this lane's place in the first warp's part of the first
    /// buffer.
    template <int kUsed> __device__ __forceinline__ void take(u32 from, u32 unit, float (&c)[kUsed][4]) {
        const u32 buffer = unit % kBuffers;
        sleepUntil(sharedAddress(&summed[buffer]), unit / kBuffers % 2);
#pragma unroll(kTiles == 1 ? kWarps : 4) // as far as the registers go
        for (int warp = 0; warp < kWarps; ++warp) {
#pragma unroll
            for (int tile = 0; tile < kUsed; ++tile) {
                const u32x4 v = loadShared16(from + buffer * (kWarps * kWarpBytes) +
                                             static_cast<u32>(warp * kWarpBytes + tile * kTileBytes));
                c[tile][0] += __uint_as_float(v.x);
                c[tile][1] += __uint_as_float(v.y);
                c[tile][2] += __uint_as_float(v.z);
                c[tile][3] += __uint_as_float(v.w);
            }
        }
        barrier::arrive(sharedAddress(&finished[buffer]));
    }
};

} // namespace vt::experts
