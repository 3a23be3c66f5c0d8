// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The forward pass on Hopper over ragged batches and pages: its producer and the order of its work. A piece of work is
// as many (row, head) pairs as fill 128 rows. Tiles of keys begin at multiples of their size, so that a row's result
// does not depend on the rows beside it. Tensor maps bring a tile that lies in pages (VT_PAGE_BOX positions at a time,
// which never cross a page; 0: pages have no such pieces) or among the step's own tokens; the few that are neither, and
// values that reach past the sequence's end, are copied row by row with zeros where there is no key. Of a quantized
// cache all warps of the producing group make floats of bytes (flex_attention_hopper_bytes.cuh).

#include "device/attention/flex_attention_hopper_bytes.cuh"
#include "device/attention/flex_attention_hopper_stages.cuh"
#include "device/attention/flex_attention_hopper_walk.cuh"
#include "device/attention/flex_attention_pages.cuh"

namespace vt {

namespace flex {

static_assert(kGroup <= kRows, "a tile holds whole groups");

inline constexpr int kPairs = kRows / kGroup * kGroup;
inline constexpr int kNewBox = 64; ///< rows of a copy of the step's own tokens
/// A consumer reads its piece's record until its results are stored, while the producer may be three pieces ahead.
inline constexpr int kRecords = 4;
/// Of a quantized cache: what each producing warp works on, and its bytes (ByteSlots).
inline constexpr int kScenesAt = kRecordsAt + kRecords * static_cast<int>(sizeof(Work));
inline constexpr int kSceneBytes = 80;
static_assert(sizeof(Scene) == kSceneBytes, "a multiple of 16");
inline constexpr int kLoaders = kBytes ? 4 : 1;           ///< warps that bring tiles
inline constexpr int kFills = kBytes ? 32 * kLoaders : 1; ///< arrivals that make a tile full
inline constexpr int kByteBarriersAt = kScenesAt + kLoaders * kSceneBytes;
inline constexpr int kSlotsAt = ceilDiv(kByteBarriersAt + kLoaders * ByteSlots::kWarpBarriers, 128) * 128;
static_assert(!kBytes || kSlotsAt == (kDim == 64 ? 164608 : 197248), "the manifest says so");
/// Making floats of bytes takes some; at head dim 128 consumers with fewer would wait for each product.
inline constexpr Registers kRegisters = !kBytes       ? kFewForProducer
                                        : kDim == 128 ? Registers{56, 224}
                                                      : Registers{104, 200};

__device__ __forceinline__ Work* recordAt(const Shared& shared, int record) {
    const u32 address = shared.base + kRecordsAt + static_cast<u32>(record * static_cast<int>(sizeof(Work)));
    return static_cast<Work*>(__cvta_shared_to_generic(address));
}

/// Tiles of one sequence's keys or values. All lanes of the producing warp together.
class TileSource {
public:
    __device__ __forceinline__ TileSource(const Params& p, const Work& work, int rowEnd)
        : p_(p), kvHead_(work.kvHead), firstKey_(work.firstKey), lastKey_(work.lastKey),
          keys_(p, KvSequence(p.cache, work.batch), work.rowBegin, rowEnd, work.position),
          boxes_(VT_PAGE_BOX > 0 && (p.cache.ring != 0 || p.cache.first[work.batch] % kPageBox == 0)) {}

    /// Chooses the ways of the tile at `begin` and looks up its places. Keys past the end may be anything, for their
    /// scores do not count; values there must be zeros, for a weight of 0 does not silence a NaN.
    __device__ __forceinline__ void open(int begin) {
        const int last = min(begin + kKeys - 1, lastKey_);
        const bool allNew = keys_.isNew(begin);
        const bool allOld = boxes_ && !keys_.isNew(last);
        keyWay_ = begin < firstKey_ ? Way::Rows : allNew ? Way::New : allOld ? Way::Pages : Way::Rows;
        valueWay_ = last == begin + kKeys - 1 ? keyWay_ : Way::Rows;
        begin_ = begin;
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int box = keyWay_ == Way::New ? kNewBox : kPageBox;
        const int boxes = kKeys / box;
        row_ = lane % boxes * box;
        chunk_ = lane / boxes;
        if (keyWay_ != Way::Rows) {
            place_ = keys_.locate(begin + row_);
        }
    }
    /// Into `to`; `full` completes when it is there.
    __device__ __forceinline__ void bring(u32 to, bool isValue, u32 full) const {
        const bool first = threadIdx.x % 32 == 0;
        const Way way = isValue ? valueWay_ : keyWay_;
        if (way == Way::Rows) {
            copyRows(to, isValue);
            if (first) {
                barrier::arrive(full);
            }
            return;
        }
        if (first) {
            barrier::arriveExpect(full, kTileBytes);
        }
        __syncwarp();
        if (chunk_ < kChunks) {
            const u32 at = to + static_cast<u32>((chunk_ * kKeys + row_) * 128);
            if (way == Way::New) {
                copyTile3(at, isValue ? &p_.newValueMap : &p_.newKeyMap, chunk_ * 64, kvHead_,
                          keys_.newRow(begin_ + row_), full);
            } else {
                copyTile4(at, isValue ? &p_.valueMap : &p_.keyMap, chunk_ * 64, kvHead_, place_.at,
                          static_cast<int>(place_.page), full); // no page: -1, and zeros arrive
            }
        }
    }

private:
    enum class Way { New, Pages, Rows };
    static constexpr int kPageBox = VT_PAGE_BOX > 0 ? VT_PAGE_BOX : kKeys;

    /// 32 rows at a time: a lane looks up one, and all copy its pieces. Waits for the copies.
    __device__ __forceinline__ void copyRows(u32 to, bool isValue) const {
        constexpr int kUnroll = kDim == 96 ? 1 : kPieces; // divisions by 12 take registers
        const int lane = static_cast<int>(threadIdx.x) % 32;
        for (int begin = 0; begin < kKeys; begin += 32) {
            const TileRow mine(p_, keys_.locate(begin_ + begin + lane), isValue, kvHead_);
            mine.bring<kPieces, kUnroll>(p_, [&](int from, int piece) {
                const int row = begin + from;
                const int place = (piece / 8 * kKeys + row) * 128 + (piece % 8 ^ row % 8) * 16; // as tensor maps lay it
                return to + static_cast<u32>(place);
            });
        }
        copyAsyncCommit();
        copyAsyncWait<0>();
        fenceAsyncProxy();
        __syncwarp();
    }

    const Params& p_;
    int kvHead_, firstKey_, lastKey_;
    SequenceKeys keys_;
    bool boxes_;
    Way keyWay_ = Way::Rows, valueWay_ = Way::Rows;
    int begin_ = 0;
    int row_ = 0, chunk_ = 0; ///< of this lane's copy
    SequenceKeys::Place place_{-1, 0};
};

/// A piece of work's tiles, by one warp.
template <class Walk>
__device__ __forceinline__ void bringPiece(const Params& p, const Shared& shared, const Work& work, Walk walk,
                                           Stage& stage) {
    TileSource source(p, work, p.offsets[work.batch + 1]);
    do {
        const Note note = Note::of(walk, work.kvHead);
        source.open(note.begin);
        barrier::wait(shared.keysEmpty(stage.index), stage.phase ^ 1);
        if (threadIdx.x % 32 == 0) {
            note.write(shared.note(stage.index));
        }
        source.bring(shared.keys(stage.index), false, shared.keysFull(stage.index));
        barrier::wait(shared.valuesEmpty(stage.index), stage.phase ^ 1);
        source.bring(shared.values(stage.index), true, shared.valuesFull(stage.index));
        stage.next();
    } while (!walk.done());
}

/// This warp's scene of a piece of work. All lanes together.
__device__ __forceinline__ const Scene* openScene(const Params& p, const Shared& shared, const Work& work) {
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    auto* scene =
        static_cast<Scene*>(__cvta_shared_to_generic(shared.base + kScenesAt + static_cast<u32>(warp * kSceneBytes)));
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        *scene = Scene(p, work, p.cache.blockTable + static_cast<i64>(work.batch) * p.cache.columns);
    }
    __syncwarp();
    return scene;
}

__device__ __forceinline__ void initMore(const Shared& shared) {
    if constexpr (kBytes) {
        for (int i = 0; i < kLoaders * ByteSlots::kWarpBarriers; i += 8) {
            barrier::init(shared.base + kByteBarriersAt + static_cast<u32>(i), 1);
        }
    }
}

/// The producing warps walk alike, the first one says what comes. Blocks take pieces in turn, every other round
/// backwards, so that nobody always gets the longest.
__device__ void produce(const Params& p, const Shared& shared) {
    const bool speaks = !kBytes || threadIdx.x % 128 < 32;
    const bool first = threadIdx.x % (kLoaders * 32) == 0;
    const int blocks = static_cast<int>(gridDim.x);
    const int block = static_cast<int>(blockIdx.x);
    Stage stage;
    [[maybe_unused]] ByteSlots slots{shared.base + kSlotsAt, shared.base + kByteBarriersAt};
    RingPlace<kQueryStages> queries;
    for (int round = 0;; ++round) {
        const Work work = workOf<kPairs>(p, round * blocks + (round % 2 == 0 ? block : blocks - 1 - block));
        const u32 full = shared.queriesFull(queries.index);
        if (speaks) {
            barrier::wait(shared.queriesEmpty(queries.index), queries.phase ^ 1);
        }
        if (first) {
            *recordAt(shared, round % kRecords) = work;
        }
        if (work.batch < 0) {
            if (first) {
                barrier::arrive(full);
            }
            return;
        }
        if (first) {
            barrier::arriveExpect(full, kPairs * kChunks * 128);
#pragma unroll
            for (int chunk = 0; chunk < kChunks; ++chunk) {
                copyTile3(shared.queries(queries.index) + static_cast<u32>(chunk * kRows * 128), &p.queryMap,
                          chunk * 64, work.kvHead * kGroup, work.rowBegin + work.pairBegin / kGroup, full);
            }
        }
        if constexpr (kBytes) {
            const Scene& scene = *openScene(p, shared, work);
            bringBytes(p, shared, scene, walkOf(p, scene.work, walkIntervals(p, scene.work)), stage, slots);
        } else {
            bringPiece(p, shared, work, walkOf(p, work, walkIntervals(p, work)), stage);
        }
        queries.next();
    }
}

/// The pieces of work in a consumer's order.
struct Pieces {
    RingPlace<kQueryStages> queries;
    int record = 0;

    __device__ __forceinline__ explicit Pieces(const Params&) {}
    /// The first; false when there is none. Its queries have arrived then.
    __device__ __forceinline__ bool begin(const Params&, const Shared& shared) { return arrive(shared); }
    __device__ __forceinline__ bool next(const Params&, const Shared& shared) {
        queries.next();
        record = (record + 1) % kRecords;
        return arrive(shared);
    }
    __device__ __forceinline__ RowPlace rows(const Params&, const Shared& shared, int row) const {
        return {*recordAt(shared, record), row};
    }

private:
    __device__ __forceinline__ bool arrive(const Shared& shared) const {
        barrier::wait(shared.queriesFull(queries.index), queries.phase);
        return __shfl_sync(kAllLanes, recordAt(shared, record)->batch, 0) >= 0;
    }
};

} // namespace flex

} // namespace vt
