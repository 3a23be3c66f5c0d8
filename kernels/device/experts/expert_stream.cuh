// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One token's rows of x times rows of MXFP4 matrices, near the rate of memory; see expert_ring.cuh.
//
// The multiplying warps form teams that take the units in turns; the warps of a team share the groups of 32 columns:
// a unit is the A operand of mma.sync, up to eight rows of x (in shared memory) are the B operand; a group's products
// are multiplied by the rows' scales in float32. A block takes most of a multiprocessor's shared memory, so that there
// is one to each.

#include "device/experts/expert_ring.cuh"

namespace vt::experts {

inline constexpr int kTeams = VT_TEAMS;            ///< that take units in turns
inline constexpr int kTeamWarps = VT_WARPS;        ///< that share a unit
inline constexpr int kWarps = kTeams * kTeamWarps; ///< that multiply; one more copies
inline constexpr int kThreads = (kWarps + 1) * 32;

/// Sizes of products over kIn columns.
template <int kIn> struct Shape {
    static_assert(kIn % 64 == 0, "an even number of groups");
    static constexpr int kGroups = kIn / 32;
    /// Rows lie as in the matrix, so that neighbours come in one copy, unless too many would lie in the same banks;
    /// padded rows are an odd number of 16 bytes.
    static constexpr bool kPacked = kIn / 8 % 16 != 0;
    static constexpr int kRowBytes = kPacked ? kIn / 2 : (kGroups | 1) * 16;
    static constexpr int kScalesAt = kUnitRows * kRowBytes;
    static constexpr int kScaleBytes = kUnitRows * kGroups + 16 * 16; ///< with room for segments that begin unaligned
    static constexpr int kSlotBytes = kScalesAt + kScaleBytes;
    static constexpr int kSteps = ceilDiv(kGroups, kTeamWarps); ///< groups of a warp
};

/// Number of this warp's team, and its own in the team.
__device__ __forceinline__ int teamOf() {
    return static_cast<int>(threadIdx.x) / (kTeamWarps * 32);
}
__device__ __forceinline__ int memberOf() {
    return static_cast<int>(threadIdx.x) / 32 % kTeamWarps;
}

template <int kSlots> __device__ __forceinline__ void beginRing(Ring<kSlots>& ring) {
    // So that a slot belongs to one team: a wait cannot distinguish phases that lie two apart.
    static_assert(kSlots % kTeams == 0, "the same number of slots for every team");
    if (threadIdx.x == 0) {
        ring.begin(kTeamWarps);
    }
    __syncthreads();
}

/// What a lane brings of a unit: row r = lane (null: none), and `scaleBytes` of scales to `scalesTo` bytes after the
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

/// Where all multiplying threads wait for each other: an mbarrier, because racecheck loses the order of warps at a
/// named barrier when their teams have met among themselves a different number of times. It does not see __syncwarp
/// either, so every thread arrives for itself.
class Meeting {
public:
    /// By one thread, before beginRing.
    __device__ __forceinline__ static void begin(u64& met) { barrier::init(sharedAddress(&met), kWarps * 32); }

    __device__ __forceinline__ explicit Meeting(u64& met) : met_(sharedAddress(&met)) {}
    __device__ __forceinline__ void wait() {
        barrier::arrive(met_);
        barrier::wait(met_, phase_);
        phase_ ^= 1;
    }

private:
    u32 met_;
    u32 phase_ = 0;
};

/// Rows of x as halves in the order of expandMxfp4, multiplied by a power of two; `factors` gets what undoes it (and
/// the weights' own) for each row.
class HalfRows {
public:
    struct Scratch {
        static constexpr int kRows = 2 * kMostTogether; ///< a round's are read while the next one's are written
        /// Rows of whole 16 bytes: what is read of one holds nothing of another.
        alignas(16) float largest[kRows][ceilDiv(kWarps, 4) * 4];
        alignas(8) u64 met;

        /// By one thread, before beginRing.
        __device__ __forceinline__ void begin() { Meeting::begin(met); }
    };

    __device__ __forceinline__ HalfRows(Scratch& scratch, float* factors)
        : scratch_(scratch), meeting_(scratch.met), factors_(factors) {}
    __device__ __forceinline__ void factorsTo(float* factors) { factors_ = factors; }

    template <int kCount> __device__ __forceinline__ void begin(int row, const u32x4 (&pieces)[kCount]) const {
        float most = 0;
#pragma unroll
        for (const u32x4& v : pieces) {
            most = fmaxf(fmaxf(fmaxf(fmaxf(most, larger(v.x)), larger(v.y)), larger(v.z)), larger(v.w));
        }
        most = warpMax(most);
        if (threadIdx.x % 32 == 0) {
            scratch_.largest[row % Scratch::kRows][threadIdx.x / 32] = most;
        }
    }
    /// Of all multiplying threads, the caller's too.
    __device__ __forceinline__ void meet() { meeting_.wait(); }
    __device__ __forceinline__ void open(int row) {
        float most = 0;
#pragma unroll
        for (int i = 0; i < kWarps; ++i) {
            most = fmaxf(most, scratch_.largest[row % Scratch::kRows][i]);
        }
        const int power = powerFor(most);
        up_ = powerOfTwo(power);
        if (threadIdx.x == 0) {
            factors_[row] = undoing(power);
        }
    }
    __device__ __forceinline__ u32x4 take(int, const u32x4& v) const {
        // (e0, e4), (e2, e6), (e1, e5), (e3, e7)
        return {packPair<f16>(lowBf16(v.x) * up_, lowBf16(v.z) * up_),
                packPair<f16>(lowBf16(v.y) * up_, lowBf16(v.w) * up_),
                packPair<f16>(highBf16(v.x) * up_, highBf16(v.z) * up_),
                packPair<f16>(highBf16(v.y) * up_, highBf16(v.w) * up_)};
    }

private:
    __device__ __forceinline__ static float larger(u32 pair) {
        return fmaxf(fabsf(lowBf16(pair)), fabsf(highBf16(pair)));
    }

    Scratch& scratch_;
    Meeting meeting_;
    float* factors_;
    float up_ = 1;
};

/// Whether a warp has a group in its step `step`; known to the compiler for all but the last step.
template <class S> __device__ __forceinline__ bool isGroup(int step, int group) {
    return step < S::kSteps && ((step + 1) * kTeamWarps <= S::kGroups || group < S::kGroups);
}

/// Steps whose loads go ahead together.
inline constexpr int kTogether = VT_TOGETHER;

/// The sums of the unit at `place` over this warp's groups, as mma16816's C, for `rows` rows that lie at `x`
/// (SharedRows). `low` and `high` are where the scales of rows g and g + 8 lie after the slot's scales.
template <int kIn, int kSlots>
__device__ __forceinline__ void multiplyUnit(Ring<kSlots>& ring, u32 memory, u32 x, int rows,
                                             const RingPlace<kSlots>& place, int low, int high, float (&c)[4]) {
    using S = Shape<kIn>;
    const int member = memberOf();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const u32 slot = memory + static_cast<u32>(place.slot * S::kSlotBytes);
    const u32 words = slot + static_cast<u32>(lane / 4 * S::kRowBytes + lane % 4 * 4);
    const u32 scales = slot + S::kScalesAt;
    // Rows that are not there repeat the last one: nobody reads their sums.
    const int row = lane / 4 < rows ? lane / 4 : rows - 1;
    const u32 own = x + static_cast<u32>(row * SharedRows<kIn, kWarps * 32>::kStride + lane % 4 * 16);
    barrier::wait(sharedAddress(&ring.full[place.slot]), place.phase);
    // Loads of a few steps go ahead of their products: the steps do not wait for each other.
#pragma unroll
    for (int first = 0; first < S::kSteps; first += kTogether) {
        u32 lowWords[kTogether];
        u32 highWords[kTogether];
        u32 lowScales[kTogether];
        u32 highScales[kTogether];
        u32x4 columns[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            const int group = member + (first + i) * kTeamWarps;
            if (isGroup<S>(first + i, group)) {
                const u32 at = static_cast<u32>(group);
                lowWords[i] = loadWord(words + at * 16);
                highWords[i] = loadWord(words + 8 * S::kRowBytes + at * 16);
                lowScales[i] = loadByte(scales + static_cast<u32>(low) + at);
                highScales[i] = loadByte(scales + static_cast<u32>(high) + at);
                columns[i] = loadShared16(own + at * 64);
            }
        }
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            if (isGroup<S>(first + i, member + (first + i) * kTeamWarps)) {
                u32 lowPairs[4];
                u32 highPairs[4];
                expandMxfp4(lowWords[i], lowPairs);
                expandMxfp4(highWords[i], highPairs);
                const float lowScale = e8m0(lowScales[i]);
                const float highScale = e8m0(highScales[i]);
                const u32 a[4] = {lowPairs[0], highPairs[0], lowPairs[1], highPairs[1]};
                const u32 b[4] = {lowPairs[2], highPairs[2], lowPairs[3], highPairs[3]};
                const u32x4& v = columns[i];
                float d[4] = {};
                mma16816<f16>(d, a, v.x, v.y);
                mma16816<f16>(d, b, v.z, v.w);
                c[0] += lowScale * d[0];
                c[1] += lowScale * d[1];
                c[2] += highScale * d[2];
                c[3] += highScale * d[3];
            }
        }
    }
    __syncwarp();
    if (lane == 0) {
        barrier::arrive(sharedAddress(&ring.empty[place.slot]));
    }
}

} // namespace vt::experts
