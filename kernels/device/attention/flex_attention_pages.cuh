// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where the forward pass takes its work from: ragged batches whose keys lie in pages of a cache, and beside it what the
// step adds (kernels/ops/attention/attention.h). Work is a tile of (row, head) pairs of one sequence and key head: the
// heads that share a key head lie side by side. Sequences of one row are attention_decode's.

#include "device/attention/attention_keys.cuh"
#include "device/attention/attention_seen.cuh"
#include "device/attention/flex_attention_tiles.cuh"

namespace vt {

namespace flex {

using Params = vitrine::kernels::abi::AttentionPrefillParams;
using Out = StorageOf<VT_OUT_DTYPE>;
inline constexpr int kGroup = VT_GROUP;
inline constexpr bool kBytes = sizeof(StorageOf<VT_CACHE_DTYPE>) == 1; ///< the cache is quantized

/// A key's or value's row: floats that are copied while others compute, or bytes of a quantized cache, which are made
/// floats on their way.
class TileRow {
public:
    __device__ __forceinline__ TileRow(const Params& p, const SequenceKeys::Place& place, bool isValue, int kvHead) {
        if (!kBytes || SequenceKeys::isNew(place)) {
            const T* row = SequenceKeys::elements<T>(p, place, isValue);
            address_ = row == nullptr ? 0 : reinterpret_cast<u64>(row + static_cast<i64>(kvHead) * kDim);
        } else if (const Cache* row = SequenceKeys::elements<Cache>(p, place, isValue); row != nullptr) {
            address_ = reinterpret_cast<u64>(row + static_cast<i64>(kvHead) * kDim);
            scale_ = *SequenceKeys::scale(p, place, isValue, kvHead);
        }
    }
    /// The warp's 32 rows or a part of them in pieces of 8 elements, kCount for each lane: piece i * 32 + lane of all.
    /// They go to `placeOf(row, piece of the row)` as 16 bytes; zeros where there is no row.
    template <int kCount, int kUnroll = kCount, class PlaceOf>
    __device__ __forceinline__ void bring(const Params& p, const PlaceOf& placeOf) const {
        // Loads that are under way together.
        constexpr int kBatch = !kBytes ? 1 : kCount % 4 == 0 ? 4 : kCount % 2 == 0 ? 2 : 1;
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll kUnroll
        for (int begin = 0; begin < kCount; begin += kBatch) {
            u32x2 words[kBatch];
#pragma unroll
            for (int i = 0; i < kBatch; ++i) {
                const int piece = (begin + i) * 32 + lane;
                words[i] = ofLane(piece / kPieces).fetch(piece % kPieces);
            }
#pragma unroll
            for (int i = 0; i < kBatch; ++i) {
                const int piece = (begin + i) * 32 + lane;
                ofLane(piece / kPieces).put(p, placeOf(piece / kPieces, piece % kPieces), piece % kPieces, words[i]);
            }
        }
    }

private:
    using Cache = StorageOf<VT_CACHE_DTYPE>;
    static constexpr float kFloats = -1; ///< no scale of a row: the row is floats

    TileRow() = default;
    __device__ __forceinline__ TileRow ofLane(int lane) const {
        TileRow row;
        row.address_ = __shfl_sync(kAllLanes, address_, lane);
        if constexpr (kBytes) {
            row.scale_ = __shfl_sync(kAllLanes, scale_, lane);
        }
        return row;
    }
    __device__ __forceinline__ bool isBytes() const { return kBytes && address_ != 0 && scale_ != kFloats; }
    __device__ __forceinline__ u32x2 fetch(int piece) const {
        return isBytes() ? *reinterpret_cast<const u32x2*>(address_ + static_cast<u64>(piece * 8)) : u32x2{0, 0};
    }
    __device__ __forceinline__ void put(const Params& p, u32 to, int piece, const u32x2& words) const {
        if (isBytes()) {
            const u32x2 low = bytes::scaled<Cache>(words.x, scale_);
            const u32x2 high = bytes::scaled<Cache>(words.y, scale_);
            asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(low.x), "r"(low.y), "r"(high.x),
                         "r"(high.y)
                         : "memory");
            return;
        }
        const bool valid = address_ != 0;
        copyAsync16(to, valid ? reinterpret_cast<const T*>(address_) + piece * 8 : static_cast<const T*>(p.q), valid);
    }

    u64 address_ = 0; ///< or 0: there is no such row
    float scale_ = kFloats;
};

struct Work {
    int batch; ///< the sequence; -1: there is no work
    int kvHead;
    int pairBegin, pairEnd; ///< of the sequence's pairs; those from pairEnd on are not its own
    int rowBegin;           ///< of q: the sequence's first
    int position;           ///< and where that lies
    int firstKey, lastKey;  ///< that exist
};

/// What a row of a tile is (and the one 8 further, `half` 1), and where its results go.
struct RowPlace {
    const Work* work; ///< in shared memory, because registers are short
    int pair;

    __device__ __forceinline__ RowPlace(const Work& of, int row) : work(&of), pair(of.pairBegin + row) {}
    __device__ __forceinline__ int batch() const { return work->batch; }
    __device__ __forceinline__ int head(int half) const { return work->kvHead * kGroup + (pair + half * 8) % kGroup; }
    __device__ __forceinline__ int query(int half) const { return work->position + (pair + half * 8) / kGroup; }
    __device__ __forceinline__ bool inside(const Params&, int half) const { return pair + half * 8 < work->pairEnd; }
    __device__ __forceinline__ int firstKey(const Params&) const { return work->firstKey; }
    __device__ __forceinline__ int lastKey(const Params&) const { return work->lastKey; }
    __device__ __forceinline__ int row(int half) const { return work->rowBegin + (pair + half * 8) / kGroup; }
    __device__ __forceinline__ Out* out(const Params& p, int half) const {
        return static_cast<Out*>(p.out) + row(half) * p.outStride + static_cast<i64>(head(half)) * kDim;
    }
    __device__ __forceinline__ i64 lseAt(const Params& p, int half) const {
        return static_cast<i64>(head(half)) * p.tokens + row(half);
    }
};

/// The `index`-th piece of work, kPairs pairs each, over all sequences and key heads; within a sequence the last comes
/// first, because it sees the most keys. All lanes of a warp together.
template <int kPairs> __device__ __forceinline__ Work workOf(const Params& p, int index) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int kvHead = index % p.kvHeads;
    int tile = index / p.kvHeads;
    for (int base = 0; base < p.cache.sequences; base += 32) {
        const int sequence = base + lane;
        int begin = 0;
        int end = 0;
        if (sequence < p.cache.sequences) {
            begin = p.offsets[sequence];
            end = p.offsets[sequence + 1];
        }
        int sum = end - begin > 1 || p.byRow != 0 ? ceilDiv((end - begin) * kGroup, kPairs) : 0;
#pragma unroll
        for (int offset = 1; offset < 32; offset *= 2) {
            const int other = __shfl_up_sync(kAllLanes, sum, offset);
            sum += lane >= offset ? other : 0;
        }
        const u32 past = __ballot_sync(kAllLanes, sum > tile);
        if (past == 0) {
            tile -= __shfl_sync(kAllLanes, sum, 31);
            continue;
        }
        const int found = __ffs(static_cast<int>(past)) - 1;
        Work work;
        work.batch = base + found;
        work.kvHead = kvHead;
        work.rowBegin = __shfl_sync(kAllLanes, begin, found);
        const int pairs = (__shfl_sync(kAllLanes, end, found) - work.rowBegin) * kGroup;
        work.pairBegin = (__shfl_sync(kAllLanes, sum, found) - 1 - tile) * kPairs;
        work.pairEnd = min(work.pairBegin + kPairs, pairs);
        work.position = p.positions[work.rowBegin];
        const SequenceKeys keys(p, work.batch, work.rowBegin, work.rowBegin + pairs / kGroup);
        work.firstKey = keys.first();
        work.lastKey = keys.last();
        return work;
    }
    return {-1, 0, 0, 0, 0, 0, 0, -1};
}

#if VT_MASK == 3
/// Of an interval's tiles those of which some row of the piece sees something. A warp together: each lane holds a word
/// of what all of the piece's rows see.
template <class Interval> class SeenWalk {
public:
    __device__ __forceinline__ SeenWalk(const Params& p, const Work& work, const Interval& interval)
        : p_(p), work_(work), interval_(interval), firstKey_(seen::firstTile(work.firstKey) * seen::kKeys) {
        settle();
    }
    __device__ __forceinline__ bool done() const { return interval_.done(); }
    __device__ __forceinline__ int begin() const { return interval_.begin(); }
    __device__ __forceinline__ bool partial() const { return !whole_ || interval_.partial(); }
    __device__ __forceinline__ void next() {
        interval_.skip(1);
        settle();
    }

private:
    static constexpr int kKeysOfWord = seen::kTilesOfWord * seen::kKeys;
    static constexpr u32 kBits = Interval::kKeys > seen::kKeys ? 3 : 1; ///< of one of the interval's tiles
    static_assert(Interval::kKeys == 2 * seen::kKeys || seen::kKeys % Interval::kKeys == 0, "in one word");

    /// On to a tile that is seen.
    __device__ __forceinline__ void settle() {
        while (!interval_.done()) {
            const int key = interval_.begin() - firstKey_;
            const int index = key / kKeysOfWord;
            if (index / 32 != chunk_) {
                load(index / 32);
            }
            const int bit = key / seen::kKeys % seen::kTilesOfWord;
            const u32 some = __shfl_sync(kAllLanes, some_, index % 32);
            if ((some >> bit & kBits) != 0) {
                whole_ = (__shfl_sync(kAllLanes, allWhole_, index % 32) >> bit & kBits) == kBits;
                return;
            }
            const int inWord = key % kKeysOfWord / Interval::kKeys;
            const int left = Interval::kStep > 0 ? kKeysOfWord / Interval::kKeys - inWord : inWord + 1;
            interval_.skip(some == 0 ? left : 1);
        }
    }
    __device__ __forceinline__ void load(int chunk) {
        constexpr int kTogether = kBytes ? 1 : 4; // where bytes are made floats registers are short
        const int index = chunk * 32 + static_cast<int>(threadIdx.x) % 32;
        chunk_ = chunk;
        some_ = 0;
        allWhole_ = ~0U;
#pragma unroll kTogether
        for (int pair = work_.pairBegin; pair < work_.pairEnd;
             pair = p_.tileHeads == 1 ? (pair / kGroup + 1) * kGroup : pair + 1) {
            const auto word =
                seen::word(p_, work_.rowBegin + pair / kGroup, work_.kvHead * kGroup + pair % kGroup, index);
            some_ |= word.some;
            allWhole_ &= word.whole;
        }
    }

    const Params& p_;
    const Work& work_;
    Interval interval_;
    int firstKey_;   ///< of the first word
    int chunk_ = -1; ///< the lanes' 32 words
    u32 some_ = 0, allWhole_ = 0;
    bool whole_ = false;
};

template <class Interval>
__device__ __forceinline__ SeenWalk<Interval> walkOf(const Params& p, const Work& work, const Interval& interval) {
    return {p, work, interval};
}
#else
/// All of them.
template <class Interval>
__device__ __forceinline__ Interval walkOf(const Params&, const Work&, const Interval& interval) {
    return interval;
}
#endif

inline constexpr int kTableInShared = 512; ///< entries of a block table

/// What a block of the portable form reads.
struct Scene {
    Work work;
    SequenceKeys keys;

    __device__ __forceinline__ Scene(const Params& p, const Work& item, const int* table)
        : work(item), keys(p, KvSequence(p.cache, table, p.cache.first[item.batch], p.cache.lengths[item.batch]),
                           item.rowBegin, p.offsets[item.batch + 1], item.position) {}
    __device__ __forceinline__ bool exists() const { return work.batch >= 0; }

    template <int kRows, int kThreads> __device__ __forceinline__ void loadQueries(const Params& p, u32 to) const {
        for (int piece = static_cast<int>(threadIdx.x); piece < kRows * kPieces; piece += kThreads) {
            const int r = piece / kPieces;
            const int pair = work.pairBegin + r;
            const bool inside = pair < work.pairEnd;
            const T* from = static_cast<const T*>(p.q);
            if (inside) {
                from += (work.rowBegin + pair / kGroup) * p.qStride +
                        static_cast<i64>(work.kvHead * kGroup + pair % kGroup) * kDim + piece % kPieces * 8;
            }
            copyAsync16(to + static_cast<u32>(r * kPitch + piece % kPieces * 16), from, inside);
        }
    }

    /// Keys and after them values: a warp brings its share of the rows, a lane looks up one. Rows without a key are
    /// zeros.
    template <int kKeys, int kThreads>
    __device__ __forceinline__ void loadKeys(const Params& p, int begin, u32 to) const {
        constexpr int kShare = kKeys / (kThreads / 32);
        static_assert(2 * kShare <= 32, "a lane has one row");
        static_assert(2 * kShare * kPieces % 32 == 0, "lanes have equal shares");
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int rowBegin = static_cast<int>(threadIdx.x) / 32 * kShare;
        const SequenceKeys::Place place = keys.locate(begin + rowBegin + lane % kShare);
        const TileRow mine(p, place, lane >= kShare, work.kvHead);
        mine.bring<2 * kShare * kPieces / 32>(p, [&](int from, int piece) {
            const int row = from < kShare ? rowBegin + from : kKeys + rowBegin + from - kShare;
            return to + static_cast<u32>(row * kPitch + piece * 16);
        });
    }
};

template <int kRows, int kThreads> __device__ __forceinline__ const Scene& sceneOf(const Params& p) {
    __shared__ __align__(16) unsigned char place[sizeof(Scene)];
    __shared__ int table[kTableInShared];
    const Work work = workOf<kRows>(p, static_cast<int>(blockIdx.x));
    const int* whole = p.cache.blockTable + static_cast<i64>(work.batch < 0 ? 0 : work.batch) * p.cache.columns;
    const bool copied = p.cache.columns <= kTableInShared;
    for (int i = static_cast<int>(threadIdx.x); copied && i < p.cache.columns; i += kThreads) {
        table[i] = whole[i];
    }
    __syncthreads();
    auto* scene = reinterpret_cast<Scene*>(place);
    if (threadIdx.x == 0) {
        if (work.batch >= 0) {
            *scene = Scene(p, work, copied ? table : whole);
        } else {
            scene->work = work;
        }
    }
    __syncthreads();
    return *scene;
}

} // namespace flex

} // namespace vt
