// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reads which tiles of 64 keys a row sees. attention_tiles.cuh writes that for masks whose rows are not intervals. A
// sequence's tiles are counted from a multiple of 128 positions, so that tiles of 128 keys have two bits of one word.

#include "device/abi/attention.h"
#include "device/lib/types.cuh"
#include "device/lib/warp.cuh"

namespace vt {

namespace seen {

using vitrine::kernels::abi::AttentionParams;
using vitrine::kernels::abi::AttentionTiles;

inline constexpr int kKeys = 64;
inline constexpr int kTilesOfWord = 32;

/// Number of the tile that the first bit of a sequence's first word stands for.
__device__ __forceinline__ int firstTile(int firstKey) {
    return firstKey / (2 * kKeys) * 2;
}

/// One row's; after pdl::wait(). What was not looked at may all be seen.
__device__ __forceinline__ AttentionTiles word(const AttentionParams& p, int row, int head, int index) {
    if (index >= p.tileWords) {
        return {~0U, 0U};
    }
    const i64 entry = static_cast<i64>(row) * p.tileHeads + (p.tileHeads == 1 ? 0 : head);
    const uint2 both = __ldcg(reinterpret_cast<const uint2*>(p.tiles + entry * p.tileWords + index));
    return {both.x, both.y};
}

/// A tile, and whether every key of it is seen.
struct Tile {
    int number;
    bool whole;
};

/// The tiles that heads [headBegin, headBegin + heads) of a row see together, in order. A warp together: each lane
/// holds a word.
class RowTiles {
public:
    /// `low` and `high` are the ends of what the row sees; none when low > high.
    __device__ __forceinline__ RowTiles(const AttentionParams& p, int row, int headBegin, int heads, int firstKey,
                                        int low, int high)
        : p_(p), row_(row), headBegin_(headBegin), heads_(p.tileHeads == 1 ? 1 : heads), base_(firstTile(firstKey)),
          firstTile_(low / kKeys - base_), lastTile_(high / kKeys - base_), begin_(firstTile_ / kTilesOfWord),
          end_(low > high ? begin_ : lastTile_ / kTilesOfWord + 1) {}

    __device__ __forceinline__ int count() {
        int sum = 0;
        for (int chunk = begin_; chunk < end_; chunk += 32) {
            load(chunk);
            sum += __popc(mine_.some);
        }
        return static_cast<int>(__reduce_add_sync(kAllLanes, static_cast<u32>(sum)));
    }
    /// The next take() gives the `ordinal`-th tile. After count().
    __device__ __forceinline__ void seek(int ordinal) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        for (int chunk = begin_; chunk < end_; chunk += 32) {
            if (chunk != chunk_) {
                load(chunk);
            }
            int sum = __popc(mine_.some);
#pragma unroll
            for (int offset = 1; offset < 32; offset *= 2) {
                const int other = __shfl_up_sync(kAllLanes, sum, offset);
                sum += lane >= offset ? other : 0;
            }
            const u32 past = __ballot_sync(kAllLanes, sum > ordinal);
            if (past != 0) {
                open(__ffs(static_cast<int>(past)) - 1);
                const int before = __shfl_sync(kAllLanes, sum, lane_) - __popc(some_);
                for (int i = before; i < ordinal; ++i) {
                    some_ &= some_ - 1;
                }
                return;
            }
            ordinal -= __shfl_sync(kAllLanes, sum, 31);
        }
    }
    /// Of count() tiles that are there.
    __device__ __forceinline__ Tile take() {
        if (some_ == 0) {
            u32 later = __ballot_sync(kAllLanes, mine_.some != 0) & ~1U << lane_;
            while (later == 0 && chunk_ + 32 < end_) {
                load(chunk_ + 32);
                later = __ballot_sync(kAllLanes, mine_.some != 0);
            }
            open(__ffs(static_cast<int>(later)) - 1);
        }
        const int bit = __ffs(static_cast<int>(some_)) - 1;
        some_ &= some_ - 1;
        return {base_ + (chunk_ + lane_) * kTilesOfWord + bit, (whole_ >> bit & 1) != 0};
    }

private:
    __device__ __forceinline__ void load(int chunk) {
        const int index = chunk + static_cast<int>(threadIdx.x) % 32;
        chunk_ = chunk;
        mine_ = {0, 0};
        if (index < end_) {
            mine_ = word(p_, row_, headBegin_, index);
            for (int head = 1; head < heads_; ++head) {
                const AttentionTiles other = word(p_, row_, headBegin_ + head, index);
                mine_.some |= other.some;
                mine_.whole &= other.whole;
            }
            const int from = max(firstTile_ - index * kTilesOfWord, 0);
            const int to = min(lastTile_ - index * kTilesOfWord, kTilesOfWord - 1);
            mine_.some &= ~0U << from & ~0U >> (kTilesOfWord - 1 - to);
        }
    }
    __device__ __forceinline__ void open(int lane) {
        lane_ = lane;
        some_ = __shfl_sync(kAllLanes, mine_.some, lane);
        whole_ = __shfl_sync(kAllLanes, mine_.whole, lane);
    }

    const AttentionParams& p_;
    int row_, headBegin_, heads_;
    int base_;                 ///< number of the first word's first tile
    int firstTile_, lastTile_; ///< from there on
    int begin_, end_;          ///< words
    int chunk_ = -1;           ///< the first lane's word
    AttentionTiles mine_{0, 0};
    int lane_ = 0;             ///< whose word is open
    u32 some_ = 0, whole_ = 0; ///< what is left of it
};

} // namespace seen

} // namespace vt
