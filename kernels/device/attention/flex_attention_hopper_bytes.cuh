// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tiles of a quantized cache for the forward pass on Hopper over pages. Each of the producing warps brings 32 rows of
// every tile: first their bytes and scales, kAhead tiles ahead, then as floats times their scales, rounded to T, into
// the tile that the consumers read. So a key is the same number here as where a step reads its own tokens as they are.
// A tensor map brings bytes of rows that lie next to one another in a page (VT_PAGE_BOX 32); others are copied row by
// row, with zeros where there is no key. Tiles of the step's own tokens come by tensor maps too.

#include "device/attention/flex_attention_hopper_stages.cuh"
#include "device/attention/flex_attention_pages.cuh"

namespace vt {

namespace flex {

/// What a producing warp has in shared memory for bytes: kAhead slots for keys and as many for values, and their
/// barriers.
struct ByteSlots {
    static constexpr int kAhead = kDim == 64 ? 2 : 1;  ///< tiles whose bytes are under way or wait
    static constexpr int kSlotBytes = 32 * (kDim + 4); ///< rows of bytes, after them their scales
    static constexpr int kWarpBytes = 2 * kAhead * kSlotBytes;
    static constexpr int kWarpBarriers = 2 * kAhead * 8;
    static_assert(kSlotBytes % 128 == 0, "copies begin there");

    u32 slots, barriers; ///< of the first warp
    int next = 0;        ///< the place of the next tile's bytes
    u32 phases = 0;      ///< of the slots' barriers, a bit each

    static __device__ __forceinline__ int number(int place, bool isValue) { return place * 2 + (isValue ? 1 : 0); }
    __device__ __forceinline__ u32 at(int place, bool isValue) const {
        return slots + static_cast<u32>(freshThread() / 32 * kWarpBytes + number(place, isValue) * kSlotBytes);
    }
    __device__ __forceinline__ u32 full(int place, bool isValue) const {
        return barriers + static_cast<u32>(freshThread() / 32 * kWarpBarriers + number(place, isValue) * 8);
    }
};

/// One warp's rows of the tiles of a piece of work.
class ByteTiles {
public:
    /// `scene` lies in shared memory, because registers are short.
    __device__ __forceinline__ ByteTiles(const Params& p, const Scene& scene, ByteSlots& slots)
        : p_(p), scene_(scene), slots_(slots) {}

    /// Looks up where the bytes of the tile at `begin` lie that fetch() is to bring; -1: there is no such tile.
    __device__ __forceinline__ void lookUp(int begin) {
        way_ = begin < 0 || isNew(begin) ? Way::None : isRun(begin) ? Way::Run : Way::Rows;
        if (way_ != Way::None) {
            const int row = begin + warpRow() + (way_ == Way::Run ? 0 : lane());
            const SequenceKeys::Place place = isBeside(row) ? SequenceKeys::nowhere() : scene_.keys.locateKept(row);
            page_ = static_cast<int>(place.page);
            at_ = place.at;
        }
    }
    /// Starts copying what was looked up.
    __device__ __forceinline__ void fetch(int place, bool isValue) const {
        if (way_ == Way::Run) {
            fetchRun(slots_.at(place, isValue), slots_.full(place, isValue), isValue);
        } else if (way_ == Way::Rows) {
            fetchRows(slots_.at(place, isValue), isValue);
        }
    }
    /// The tile at `begin` into `to`, its bytes from the place that they were fetched to. `full` completes when all
    /// threads have brought their part.
    __device__ __forceinline__ void bring(int begin, int place, u32 to, bool isValue, u32 full) const {
        if (isNew(begin)) {
            bringNew(begin, to, isValue, full);
            return;
        }
        if (isRun(begin)) {
            const int number = ByteSlots::number(place, isValue);
            barrier::wait(slots_.full(place, isValue), slots_.phases >> number & 1);
            slots_.phases ^= 1U << number;
        } else {
            copyAsyncWait<0>();
        }
        __syncwarp(); // scales that other lanes have cleared or copied
        convert(slots_.at(place, isValue), to);
        if (isBeside(min(begin + kKeys - 1, scene_.keys.last()))) {
            __syncwarp(); // zeros lie where those rows go
            addNewRows(begin + warpRow(), to, isValue);
        }
        fenceAsyncProxy();
        barrier::arrive(full);
        __syncwarp(); // the place has been read
    }

private:
    using Cache = StorageOf<VT_CACHE_DTYPE>;
    enum class Way { None, Run, Rows };

    /// Where registers are short what follows from it is made anew.
    static __device__ __forceinline__ int lane() {
        return (kDim == 128 ? freshThread() : static_cast<int>(threadIdx.x)) % 32;
    }
    /// The warp's first in a tile.
    static __device__ __forceinline__ int warpRow() { return freshThread() / 32 * 32; }
    /// All keys of the tile at `begin` are the step's own.
    __device__ __forceinline__ bool isNew(int begin) const {
        return begin >= scene_.keys.first() && scene_.keys.isNew(begin) && begin + kKeys - 1 <= scene_.keys.last();
    }
    /// A key of the step that no page holds: those of a ring do not, all others do.
    __device__ __forceinline__ bool isBeside(int position) const {
        return p_.cache.ring != 0 && scene_.keys.isNew(position);
    }
    /// The warp's rows of the tile lie next to one another in a page (or in a hole), all of them.
    __device__ __forceinline__ bool isRun(int begin) const {
        const int row = begin + warpRow();
        return VT_PAGE_BOX == 32 && row >= scene_.keys.first() && row + 31 <= scene_.keys.last() &&
               !isBeside(row + 31) && (p_.cache.ring != 0 || scene_.keys.kept().first() % 32 == 0);
    }

    __device__ __forceinline__ void fetchRun(u32 to, u32 full, bool isValue) const {
        const int kvHead = scene_.work.kvHead;
        if (page_ < 0) {
            asm volatile("st.shared.f32 [%0], %1;" ::"r"(to + static_cast<u32>(32 * kDim + lane() * 4)), "f"(0.0F)
                         : "memory");
        }
        if (lane() == 0) {
            barrier::arriveExpect(full, static_cast<u32>(page_ < 0 ? 32 * kDim : ByteSlots::kSlotBytes));
            copyTile4(to, isValue ? &p_.valueMap : &p_.keyMap, 0, kvHead, at_, page_, full); // page -1: zeros arrive
            if (page_ >= 0) {
                copyBulk(to + 32 * kDim, SequenceKeys::scale(p_, {page_, at_}, isValue, kvHead), 128, full);
            }
        }
    }
    __device__ __forceinline__ void fetchRows(u32 to, bool isValue) const {
        constexpr int kPiecesOfRow = kDim / 16;
        const SequenceKeys::Place place{page_, at_};
        const int kvHead = scene_.work.kvHead;
        const Cache* own = SequenceKeys::elements<Cache>(p_, place, isValue);
        own = own == nullptr ? nullptr : own + static_cast<i64>(kvHead) * kDim;
#pragma unroll 1
        for (int piece = lane(); piece < 32 * kPiecesOfRow; piece += 32) {
            const int row = piece / kPiecesOfRow;
            const auto* from = reinterpret_cast<const Cache*>(__shfl_sync(kAllLanes, reinterpret_cast<u64>(own), row));
            const bool exists = from != nullptr;
            copyAsync16(to + static_cast<u32>(piece * 16), exists ? from + piece % kPiecesOfRow * 16 : p_.q, exists);
        }
        const float* scale = SequenceKeys::scale(p_, place, isValue, kvHead);
        copyAsyncSmall<4>(to + static_cast<u32>(32 * kDim + lane() * 4), scale == nullptr ? p_.q : scale,
                          scale != nullptr);
        copyAsyncCommit();
    }

    /// Where 8 elements of a row lie, as tensor maps lay them.
    static __device__ __forceinline__ u32 tileOffset(int row, int piece) {
        return static_cast<u32>((piece / 8 * kKeys + row) * 128 + (piece % 8 ^ row % 8) * 16);
    }
    /// A lane takes 16 bytes of a row at a time: in chunks of 64 columns, as tiles have them, rows one after the other.
    __device__ __forceinline__ void convert(u32 from, u32 to) const {
        const u32 rows = to + static_cast<u32>(warpRow() * 128);
#pragma unroll
        for (int chunk = 0; chunk < kChunks; ++chunk) {
            constexpr int kTogether = kDim == 128 ? 1 : 2;      // registers are short
            const int pieces = min(kDim - chunk * 64, 64) / 16; // of a row
            const int row = lane() / pieces;
            const int piece = lane() % pieces;
            const u32 bytesAt = from + static_cast<u32>(row * kDim + chunk * 64 + piece * 16);
            const u32 scalesAt = from + static_cast<u32>(32 * kDim + row * 4);
            const u32 tileAt = rows + tileOffset(row, chunk * 8 + piece * 2); // rows 8 further lie alike
#pragma unroll
            for (int i = 0; i < pieces; i += kTogether) {
                const int step = 32 / pieces; // rows at a time
                u32x4 words[kTogether];
                float scales[kTogether];
#pragma unroll
                for (int k = 0; k < kTogether; ++k) {
                    const int further = (i + k) * step;
                    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(words[k].x), "=r"(words[k].y), "=r"(words[k].z), "=r"(words[k].w)
                                 : "r"(bytesAt + static_cast<u32>(further * kDim))
                                 : "memory");
                    asm volatile("ld.shared.f32 %0, [%1];"
                                 : "=f"(scales[k])
                                 : "r"(scalesAt + static_cast<u32>(further * 4))
                                 : "memory");
                }
#pragma unroll
                for (int k = 0; k < kTogether; ++k) {
                    put(tileAt + static_cast<u32>((i + k) * step * 128), words[k], scales[k]);
                }
            }
        }
    }
    /// 16 bytes become 32, which lie in neighbouring places.
    static __device__ __forceinline__ void put(u32 to, const u32x4& words, float scale) {
        putHalf(to, words.x, words.y, scale);
        putHalf(to ^ 16, words.z, words.w, scale);
    }
    static __device__ __forceinline__ void putHalf(u32 to, u32 first, u32 second, float scale) {
        const u32x2 low = bytes::scaled<Cache>(first, scale);
        const u32x2 high = bytes::scaled<Cache>(second, scale);
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(low.x), "r"(low.y), "r"(high.x),
                     "r"(high.y)
                     : "memory");
    }
    __device__ __forceinline__ void bringNew(int begin, u32 to, bool isValue, u32 full) const {
        if (threadIdx.x % 128 != 0) {
            barrier::arrive(full);
            return;
        }
        barrier::arriveExpect(full, kTileBytes);
#pragma unroll
        for (int chunk = 0; chunk < kChunks; ++chunk) {
            for (int row = 0; row < kKeys; row += kBoxRows) {
                copyTile3(to + static_cast<u32>((chunk * kKeys + row) * 128), isValue ? &p_.newValueMap : &p_.newKeyMap,
                          chunk * 64, scene_.work.kvHead, scene_.keys.newRow(begin + row), full);
            }
        }
    }
    /// The warp's rows from position `begin` on that no page holds. Waits for the copies.
    __device__ __forceinline__ void addNewRows(int begin, u32 to, bool isValue) const {
        constexpr int kRowsAtOnce = 32 / kPieces;
        const T* from = static_cast<const T*>(isValue ? p_.newV : p_.newK) + scene_.work.kvHead * kDim;
        const i64 stride = isValue ? p_.newVStride : p_.newKStride;
        const int piece = lane() % kPieces;
#pragma unroll 1
        for (int row = lane() / kPieces; row < 32; row += kRowsAtOnce) {
            const int position = begin + row;
            if (lane() < kRowsAtOnce * kPieces && position <= scene_.keys.last() && scene_.keys.isNew(position)) {
                copyAsync16(to + tileOffset(warpRow() + row, piece),
                            from + scene_.keys.newRow(position) * stride + piece * 8);
            }
        }
        copyAsyncCommit();
        copyAsyncWait<0>();
    }

    const Params& p_;
    const Scene& scene_;
    ByteSlots& slots_;
    Way way_ = Way::None;    ///< of the tile looked up
    int page_ = -1, at_ = 0; ///< the place of the lane's row, or of the first of a run
};

/// A piece of work's tiles, by all producing warps.
template <class Walk>
__device__ __forceinline__ void bringBytes(const Params& p, const Shared& shared, const Scene& scene, Walk walk,
                                           Stage& stage, ByteSlots& slots) {
    constexpr int kAhead = ByteSlots::kAhead;
    constexpr Note kNone{-1, 0, Note::kLast};
    ByteTiles tiles(p, scene, slots);
    Note notes[kAhead + 1]; // the tile at hand, and those after it
    const auto take = [&](int i) {
        notes[i] = i > 0 && notes[i - 1].last() ? kNone : Note::of(walk, 0);
        tiles.lookUp(notes[i].begin);
    };
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
        take(i);
        tiles.fetch((slots.next + i) % kAhead, false);
        tiles.fetch((slots.next + i) % kAhead, true);
    }
    for (bool more = true; more;) {
        take(kAhead);
        more = !notes[0].last();
        barrier::wait(shared.keysEmpty(stage.index), stage.phase ^ 1);
        if (threadIdx.x % 128 == 0) {
            notes[0].write(shared.note(stage.index));
        }
        tiles.bring(notes[0].begin, slots.next, shared.keys(stage.index), false, shared.keysFull(stage.index));
        tiles.fetch(slots.next, false);
        barrier::wait(shared.valuesEmpty(stage.index), stage.phase ^ 1);
        tiles.bring(notes[0].begin, slots.next, shared.values(stage.index), true, shared.valuesFull(stage.index));
        tiles.fetch(slots.next, true);
        stage.next();
        slots.next = (slots.next + 1) % kAhead;
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            notes[i] = notes[i + 1];
        }
    }
}

} // namespace flex

} // namespace vt
