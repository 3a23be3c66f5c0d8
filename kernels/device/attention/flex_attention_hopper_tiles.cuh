// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the Hopper forms of FlexAttention share (sm_90a; head dims 64 and 128, forward 96 as well): tiles by tensor maps
// in chunks of 64 columns, stages of a ring, products of a warpgroup's 64 rows. A block has two consuming warpgroups
// and one that copies.

#include "device/attention/flex_attention_tiles.cuh"
#include "device/lib/wgmma.cuh"

namespace vt {

namespace flex {

inline constexpr int kGroups = 2; ///< consuming warpgroups
inline constexpr int kRows = kGroups * 64;
/// Tiles of 64 columns (128 bytes) side by side; copies fill the last up with zeros.
inline constexpr int kChunks = ceilDiv(kDim, 64);
inline constexpr int kBoxRows = 64; ///< of the tensor maps
/// Of a thread, for each role.
struct Registers {
    int producer, consumer;
};
inline constexpr Registers kFewForProducer{40, 232};

static_assert(kDim == 64 || kDim == 96 || kDim == 128, "other head dims have the portable form");

/// A place in a ring of buffers, and the phase of its barriers.
template <int kSize> struct RingPlace {
    int index = 0;
    u32 phase = 0;
    __device__ __forceinline__ void next() {
        ++index;
        if (index == kSize) {
            index = 0;
            phase ^= 1;
        }
    }
};

/// What the copying warp says of a stage's tile, in shared memory beside its data.
struct Note {
    int begin; ///< first key (or query)
    int head;  ///< of the queries
    int flags;

    static constexpr int kBytes = 8;
    static constexpr int kPartial = 1; ///< the mask decides on its elements
    static constexpr int kLast = 2;    ///< of this piece of work
    static constexpr int kNothing = 4; ///< the piece of work sees nothing: some tile stands for that

    __device__ __forceinline__ bool partial() const { return (flags & kPartial) != 0; }
    __device__ __forceinline__ bool last() const { return (flags & kLast) != 0; }
    __device__ __forceinline__ bool nothing() const { return (flags & kNothing) != 0; }
    /// Before the arrival at the stage's barrier.
    __device__ __forceinline__ void write(u32 to) const {
        asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(begin), "r"(head * 8 + flags) : "memory");
    }
    /// After the wait; the same in all lanes, for the compiler too.
    __device__ __forceinline__ static Note read(u32 from) {
        int begin = 0;
        int rest = 0;
        if (threadIdx.x % 32 == 0) { // the lane that releases the stage
            asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(begin), "=r"(rest) : "r"(from) : "memory");
        }
        begin = __shfl_sync(kAllLanes, begin, 0);
        rest = __shfl_sync(kAllLanes, rest, 0);
        return {begin, rest / 8, rest % 8};
    }
    /// The walk's tile; goes on to the next.
    template <class Walk> __device__ __forceinline__ static Note of(Walk& walk, int head) {
        if (walk.done()) {
            return {0, head, kNothing | kPartial | kLast};
        }
        Note note{walk.begin(), head, walk.partial() ? kPartial : 0};
        walk.next();
        note.flags |= walk.done() ? kLast : 0;
        return note;
    }
};

/// The pieces of work of this block: tiles of rows times heads. Heads whose data share the second-level cache make a
/// section; inside it the first tile (which sees the most) of every head comes before the second. Blocks take pieces in
/// turn, every other round backwards, so that nobody always gets the longest.
class Schedule {
public:
    /// `headBytes`: what all tiles of a head read; `together` heads read the same.
    __device__ __forceinline__ Schedule(int tiles, int heads, i64 headBytes, int together)
        : tiles_(tiles), heads_(heads) {
        constexpr int kCache = 24 << 10; // KiB
        constexpr int kRounds = 4;       // so few pieces for a block would not balance
        const int fit = kCache / max(static_cast<int>(headBytes >> 10), 1) * together;
        const int balanced = ceilDiv(kRounds * static_cast<int>(gridDim.x), tiles);
        const int sections = ceilDiv(heads, max(max(fit, balanced), 1));
        section_ = ceilDiv(ceilDiv(heads, sections), together) * together; // about equal: the last one is not short
    }
    /// The pieces of this block, one after the other.
    __device__ __forceinline__ bool next() {
        const int blocks = static_cast<int>(gridDim.x);
        const int block = static_cast<int>(blockIdx.x);
        const int index = round_ * blocks + (round_ % 2 == 0 ? block : blocks - 1 - block);
        ++round_;
        return open(index);
    }
    /// The piece of this number; false: there are fewer.
    __device__ __forceinline__ bool open(int index) {
        if (index >= tiles_ * heads_) {
            return false;
        }
        const int first = index / (tiles_ * section_) * section_;
        const int heads = heads_ - first < section_ ? heads_ - first : section_;
        const int inside = index - first * tiles_;
        tile_ = inside / heads;
        head_ = first + inside % heads;
        return true;
    }
    __device__ __forceinline__ int tile() const { return tile_; }
    __device__ __forceinline__ int head() const { return head_; } ///< over the batch

private:
    int tiles_, heads_, section_;
    int round_ = 0, tile_ = 0, head_ = 0;
};

/// A word of shared memory that is the same for all lanes, for the compiler too.
__device__ __forceinline__ u32 readWord(u32 from) {
    u32 word = 0;
    if (threadIdx.x % 32 == 0) { // the lane that releases what holds it
        asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
    }
    return __shfl_sync(kAllLanes, word, 0);
}

/// The barriers of a ring lie one after the other.
__device__ __forceinline__ void initRing(u32 full, u32 fills, u32 empty, u32 releases, int stages) {
    for (int stage = 0; stage < stages; ++stage) {
        barrier::init(full + static_cast<u32>(stage * 8), fills);
        barrier::init(empty + static_cast<u32>(stage * 8), releases);
    }
}

/// Gives a block's warpgroups their roles, once thread 0 has made the barriers: consume(0), consume(1), produce().
template <const Registers& kRegisters = kFewForProducer, class Produce, class Consume>
__device__ __forceinline__ void divide(Produce produce, Consume consume) {
    __syncthreads();
    pdl::wait();
    pdl::launchDependents();
    const int group = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 128, 0);
    if (group == kGroups) {
        wgmma::giveRegisters<kRegisters.producer>();
        produce();
    } else {
        wgmma::takeRegisters<kRegisters.consumer>();
        consume(group);
    }
}

/// This thread's number in its warpgroup. The compiler does not see what it is: addresses made of it are made where
/// they are used and take no registers around products.
__device__ __forceinline__ int freshThread() {
    u32 thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return static_cast<int>(thread % 128);
}

/// Where a consumer's thread has its first row in the warpgroup's 64; the second is 8 further.
__device__ __forceinline__ int rowOfThread(int thread) {
    return thread / 32 * 16 + thread % 32 / 4;
}

/// kTile rows from `row` on, in chunks one after the other.
template <int kTile>
__device__ __forceinline__ void bring(u32 to, const void* map, int row, int head, int batch, u32 full) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
#pragma unroll
        for (int box = 0; box < kTile / kBoxRows; ++box) {
            copyTile4(to + static_cast<u32>((chunk * kTile + box * kBoxRows) * 128), map, chunk * 64,
                      row + box * kBoxRows, head, batch, full);
        }
    }
}

/// products (64 x kColumns) = A B^T over headDim. A is 64 rows of a tile of kTileRows, B a tile of kColumns rows.
template <int kTileRows, int kColumns>
__device__ __forceinline__ void issueProducts(float (&products)[kColumns / 2], u32 a, u32 b) {
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < kDimSteps; ++k) {
        const u64 left = wgmma::descriptor128(a + static_cast<u32>(k / 4 * kTileRows * 128)) + 2 * (k % 4);
        const u64 right = wgmma::descriptor128(b + static_cast<u32>(k / 4 * kColumns * 128)) + 2 * (k % 4);
        if (k == 0) {
            wgmma::Product<T, kColumns>::first(products, left, right);
        } else {
            wgmma::Product<T, kColumns>::run(products, left, right, 1);
        }
    }
    wgmma::commit();
}

/// A (64 x kColumns) in registers, packed.
template <int kColumns> using Fragments = u32[kColumns / 16][4];

/// sums (64 x headDim) += A B (= where `accumulate` is 0): B is a tile of kColumns rows.
template <int kColumns>
__device__ __forceinline__ void issueSums(float (&sums)[kDim / 2], const Fragments<kColumns>& a, u32 b,
                                          int accumulate) {
    const u64 right = wgmma::descriptor128(b, kColumns * 128);
    wgmma::fence();
#pragma unroll
    for (int k = 0; k < kColumns / 16; ++k) {
        wgmma::Product<T, kDim>::template run<1>(sums, a[k], right + 128 * k, k > 0 ? 1 : accumulate);
    }
    wgmma::commit();
}

/// Into fragments from the kFrom-th on.
template <int kColumns, int kFrom = 0, int kAll>
__device__ __forceinline__ void pack(const float (&values)[kColumns / 2], u32 (&to)[kAll][4]) {
#pragma unroll
    for (int k = 0; k < kColumns / 16; ++k) {
        u32(&word)[4] = to[kFrom + k];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            word[i] = packPair<T>(values[k * 8 + 2 * i], values[k * 8 + 2 * i + 1]);
        }
        // Keeps the compiler from finishing the fragments between the products.
        asm volatile("" : "+r"(word[0]), "+r"(word[1]), "+r"(word[2]), "+r"(word[3])::"memory");
    }
}

/// Arrivals that make a buffer empty: each consuming warp's, when its products have ended.
inline constexpr int kReleases = kGroups * 4;
__device__ __forceinline__ void release(u32 empty) {
    if (threadIdx.x % 32 == 0) {
        barrier::arrive(empty);
    }
}

} // namespace flex

} // namespace vt
