// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Up to 64 rows of x times a large BF16 matrix, near the rate of memory (sm_90a): weight_stream.cuh's task for more
// rows.
//
// A cluster of four blocks takes a tile of kColumns of the matrix's rows; each of its blocks has a fourth of the
// contracted axis. So a block holds only its columns of x (64 rows of all columns would not fit), and reads them once.
// One warp brings blocks of 64 columns of the tile's rows into a ring by tensor maps, beginning before pdl::wait(); a
// warpgroup multiplies them with x from shared memory. The sums of rows 16 r .. 16 r + 15 of x, which are those of its
// warp r, go to shared memory of the cluster's block r, whose warps add the four parts in order and write. A norm's
// weight is put on x on the way to shared memory, its factor on the sums. A row's sums do not depend on the other rows,
// nor on their number.

#include "device/lib/async.cuh"
#include "device/lib/cluster.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/shared_rows.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"
#include "device/lib/wgmma.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace vt::split {

inline constexpr int kRanks = 4; ///< blocks of a cluster
inline constexpr int kMultiplying = 4;
inline constexpr int kWarps = 16; ///< bring x and finish; the first four multiply, the last one copies weights
inline constexpr int kThreads = kWarps * 32;
inline constexpr int kTokens = VT_TOKENS; ///< rows of x at most: 16, 32, 48 or 64
inline constexpr int kDim = VT_DIM;
inline constexpr int kColumns = VT_COLUMNS; ///< of the result, in a tile
inline constexpr int kStages = VT_STAGES;
inline constexpr int kBlock = 64; ///< columns of x
inline constexpr int kBlocks = kDim / kBlock;
inline constexpr int kMostBlocks = ceilDiv(kBlocks, kRanks); ///< of a rank
inline constexpr int kStageBytes = kColumns * kBlock * 2;
inline constexpr int kBlockBytes = kTokens * kBlock * 2; ///< of x
inline constexpr int kRowsOfWarp = kTokens / kWarps;
inline constexpr int kPieces = ceilDiv(kMostBlocks * kBlock, 256); ///< of 16 bytes, that a lane has of a row
inline constexpr bool kNormed = VT_FORM != 3;
/// Rows that a warp has under way: four of many columns would take more registers beside the norm's weights than there
/// are.
inline constexpr int kTogether =
    kRowsOfWarp == 4 && kPieces * (4 + (kNormed ? static_cast<int>(sizeof(StorageOf<VT_NORM_DTYPE>)) / 2 : 0)) > 16
        ? 2
        : kRowsOfWarp;
static_assert(kDim % kBlock == 0 && kTokens % 16 == 0 && kTokens <= 16 * kRanks && kColumns % 8 == 0, "whole tiles");
static_assert(kStageBytes % 1024 == 0 && kBlockBytes % 1024 == 0, "the swizzle's unit");

/// Dynamic shared memory: the ring, x, the parts of the sums. A product reads 64 rows of x whatever their number: what
/// lies after x is memory of the block too, and nobody looks at the sums of such rows.
inline constexpr int kRowsAt = kStages * kStageBytes;
inline constexpr int kSumsAt = kRowsAt + kMostBlocks * kBlockBytes;
inline constexpr int kPartBytes = 16 * kColumns * 4; ///< of a rank
static_assert(kRanks * kPartBytes >= (64 - kTokens) * kBlock * 2, "rows after the last lie in the block's memory");

struct Fixed {
    alignas(8) u64 full[kStages];
    u64 empty[kStages];
    u64 summed;                ///< all ranks' parts for this block's rows have come
    float squares[kRanks][16]; ///< parts of the sums of squares of this block's rows
};

// --- between the cluster's blocks

using Blocks = Cluster<kRanks>;

/// The address of a shared variable in another block.
__device__ __forceinline__ u32 remote(u32 address, int rank) {
    u32 out;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(address), "r"(rank));
    return out;
}
__device__ __forceinline__ void arriveRemote(u32 barrier) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Waits for what other blocks wrote before they arrived.
__device__ __forceinline__ void waitForCluster(u32 barrier, u32 parity) {
    u32 done = 0;
    while (done == 0) {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    }
}

/// Blocks of 64 columns that a rank contracts.
struct Share {
    int first, count;
    __device__ __forceinline__ explicit Share(int rank)
        : first(kBlocks * rank / kRanks), count(kBlocks * (rank + 1) / kRanks - first) {}
};

// --- rows of x

/// The norm's weights of a lane's pieces of a row. Loaded before pdl::wait().
class NormWeights {
public:
    using Weight = StorageOf<VT_NORM_DTYPE>;

    __device__ __forceinline__ NormWeights(const void* from, const Share& share) {
        if constexpr (kNormed) {
#pragma unroll
            for (int i = 0; i < kPieces; ++i) {
                const int at = (i * 32 + static_cast<int>(threadIdx.x) % 32) * 8;
                if (at < share.count * kBlock) {
                    const auto* words =
                        reinterpret_cast<const u32x4*>(static_cast<const Weight*>(from) + share.first * kBlock + at);
#pragma unroll
                    for (int word = 0; word < kWords; ++word) {
                        weights_[i][word] = words[word];
                    }
                }
            }
        }
    }
    /// Eight values of x times piece i.
    __device__ __forceinline__ u32x4 scale(int i, const u32x4& x) const {
        if constexpr (VT_NORM_DTYPE == VT_BF16 && VT_FORM != 2) { // exact products, rounded once
            const u32x4& w = weights_[i][0];
            return {product(x.x, w.x), product(x.y, w.y), product(x.z, w.z), product(x.w, w.w)};
        } else {
            const auto* w = reinterpret_cast<const Weight*>(weights_[i]);
            return {scaled(x.x, w[0], w[1]), scaled(x.y, w[2], w[3]), scaled(x.z, w[4], w[5]), scaled(x.w, w[6], w[7])};
        }
    }

private:
    static constexpr int kWords = 8 * static_cast<int>(sizeof(Weight)) / 16;

    static __device__ __forceinline__ u32 product(u32 a, u32 b) {
        u32 out;
        asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
        return out;
    }
    static __device__ __forceinline__ u32 scaled(u32 pair, Weight w0, Weight w1) {
        constexpr float kOne = VT_FORM == 2 ? 1.0F : 0.0F;
        return packBf16(lowBf16(pair) * (kOne + toFloat(w0)), highBf16(pair) * (kOne + toFloat(w1)));
    }

    u32x4 weights_[kNormed ? kPieces : 1][kWords];
};

__device__ __forceinline__ float squareSum(const u32x4& v) {
    float sum = 0;
    const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (const u32 word : words) {
        sum = fmaf(lowBf16(word), lowBf16(word), sum);
        sum = fmaf(highBf16(word), highBf16(word), sum);
    }
    return sum;
}

/// Sums of four values over the warp: lanes 8 i .. 8 i + 7 get that of values[i].
__device__ __forceinline__ float fourSums(const float (&values)[4]) {
    const bool upper = threadIdx.x % 32 >= 16;
    const bool odd = threadIdx.x % 16 >= 8;
    float a = upper ? values[2] : values[0];
    float b = upper ? values[3] : values[1];
    a += __shfl_xor_sync(kAllLanes, upper ? values[0] : values[2], 16);
    b += __shfl_xor_sync(kAllLanes, upper ? values[1] : values[3], 16);
    float sum = odd ? b : a;
    sum += __shfl_xor_sync(kAllLanes, odd ? a : b, 8);
#pragma unroll
    for (int offset = 4; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(kAllLanes, sum, offset);
    }
    return sum;
}

/// This rank's columns of the rows, times the norm's weights, to tiles that products read; parts of their sums of
/// squares to the blocks that finish them. Warp w has rows w, w + kWarps, ... By all warps.
template <class Address>
__device__ __forceinline__ void loadRows(int rows, const Address& address, const Share& share, int rank,
                                         const NormWeights& norm, Fixed& fixed, u32 to) {
    static_assert(kRowsOfWarp >= 1 && kRowsOfWarp <= 4, "as many as fourSums");
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float squares[4] = {};
#pragma unroll
    for (int first = 0; first < kRowsOfWarp; first += kTogether) {
        u32x4 values[kTogether][kPieces];
#pragma unroll
        for (int r = 0; r < kTogether; ++r) {
            const int row = warp + (first + r) * kWarps;
            const bf16* from = row < rows ? address(row) + share.first * kBlock : nullptr;
#pragma unroll
            for (int i = 0; i < kPieces; ++i) {
                const int at = (i * 32 + lane) * 8;
                const bool inside = row < rows && at < share.count * kBlock;
                values[r][i] = inside ? loadFresh16(from + at) : u32x4{0, 0, 0, 0};
            }
        }
#pragma unroll
        for (int r = 0; r < kTogether; ++r) {
            const int row = warp + (first + r) * kWarps;
#pragma unroll
            for (int i = 0; i < kPieces; ++i) {
                u32x4 v = values[r][i];
                if constexpr (kNormed) {
                    squares[first + r] += squareSum(v);
                    v = norm.scale(i, v);
                }
                const int at = (i * 32 + lane) * 8;
                if (row < rows && at < share.count * kBlock) {
                    const u32 tile = to + static_cast<u32>(at / kBlock * kBlockBytes);
                    asm volatile(
                        "st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(tile + swizzled<128>(row, at % kBlock * 2)),
                        "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                        : "memory");
                }
            }
        }
    }
    if constexpr (kNormed) {
        const float sum = fourSums(squares);
        const int row = warp + lane / 8 * kWarps;
        if (lane % 8 == 0 && row < rows) {
            const u32 slot = sharedAddress(&fixed.squares[rank][row % 16]);
            asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote(slot, row / 16)), "f"(sum) : "memory");
        }
    }
}

// --- weights

/// Blocks first .. last of this rank's share, by one thread. `work.copy(column, to, barrier)` starts the copies of 64
/// columns of the tile's rows, `work.bytes()` is what they bring.
template <class Work>
__device__ __forceinline__ void copyBlocks(const Work& work, const Share& share, int first, int last, Fixed& fixed,
                                           u32 ring) {
    for (int block = first; block < last; ++block) {
        const int slot = block % kStages;
        const u32 full = sharedAddress(&fixed.full[slot]);
        if (block >= kStages) {
            barrier::wait(sharedAddress(&fixed.empty[slot]), static_cast<u32>(block / kStages - 1) % 2);
        }
        barrier::arriveExpect(full, work.bytes());
        work.copy((share.first + block) * kBlock, ring + static_cast<u32>(slot * kStageBytes), full);
    }
}

/// The multiplying warpgroup: the tile's sums over this rank's share, to the blocks that finish them.
__device__ __forceinline__ void multiply(const Share& share, int rank, int rows, Fixed& fixed, u32 memory) {
    const int warp = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 32, 0);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const u64 x = wgmma::descriptor128(memory + kRowsAt);
    float sums[kColumns / 2];
    for (int block = 0; block < share.count; ++block) {
        const int slot = block % kStages;
        barrier::wait(sharedAddress(&fixed.full[slot]), static_cast<u32>(block / kStages) % 2);
        const u64 w = wgmma::descriptor128(memory + static_cast<u32>(slot * kStageBytes));
        const u64 a = wgmma::further(x, static_cast<u32>(block * (kBlockBytes / 16)));
        wgmma::fence();
#pragma unroll
        for (int step = 0; step < kBlock / 16; ++step) {
            wgmma::Product<bf16, kColumns>::run(sums, wgmma::further(a, 2 * step), wgmma::further(w, 2 * step),
                                                block + step);
        }
        wgmma::commit();
        // At once: tensor cores wait for memory, and a slot that is free earlier is a copy more under way.
        wgmma::wait<0>();
        if (lane == 0) {
            barrier::arrive(sharedAddress(&fixed.empty[slot]));
        }
    }
    if (warp * 16 < rows) {
        const u32 part = remote(memory + kSumsAt, warp) + static_cast<u32>(rank * kPartBytes + lane * 16);
#pragma unroll
        for (int j = 0; j < kColumns / 8; ++j) {
            asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(part + j * 512), "f"(sums[4 * j]),
                         "f"(sums[4 * j + 1]), "f"(sums[4 * j + 2]), "f"(sums[4 * j + 3])
                         : "memory");
        }
        arriveRemote(remote(sharedAddress(&fixed.summed), warp));
    }
}

/// Sums of 8 columns of the tile: of a lane, with g = lane / 4 and t = lane % 4, [0] and [1] row g of the block's 16,
/// columns 2 t and 2 t + 1; [2] and [3] row g + 8.
struct Sums {
    float v[4];
};

/// What the blocks' warps finish: the parts of all ranks, in their order, times the norm's factor.
class Finished {
public:
    /// Waits until all parts have come.
    __device__ __forceinline__ Finished(Fixed& fixed, float eps, u32 memory) : parts_(memory + kSumsAt) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        waitForCluster(sharedAddress(&fixed.summed), 0);
        if constexpr (kNormed) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float squares = 0;
#pragma unroll
                for (int from = 0; from < kRanks; ++from) {
                    squares += fixed.squares[from][lane / 4 + 8 * half];
                }
                factors_[half] = 1.0F / sqrtf(squares / static_cast<float>(kDim) + eps);
            }
        }
    }
    /// Of columns 8 j .. 8 j + 7.
    __device__ __forceinline__ Sums at(int j) const {
        Sums out{};
#pragma unroll
        for (int from = 0; from < kRanks; ++from) {
            const u32 address =
                parts_ + static_cast<u32>(from * kPartBytes + (j * 32 + static_cast<int>(threadIdx.x) % 32) * 16);
            float part[4];
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(part[0]), "=f"(part[1]), "=f"(part[2]), "=f"(part[3])
                         : "r"(address));
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                out.v[i] += part[i];
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            out.v[i] *= factors_[i / 2];
        }
        return out;
    }

private:
    u32 parts_;
    float factors_[2] = {1, 1};
};

/// Row of x of a lane's sums [2 half] and [2 half + 1].
__device__ __forceinline__ int rowOf(int half) {
    return Blocks::rank() * 16 + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * half;
}

/// A whole kernel. x gets the norm of VT_FORM (3: none); `address(token)` is a row of x; `memory` is the dynamic shared
/// memory, at a multiple of 1,024 bytes. A tile has Work::kItems items, each for a warp: `work.request(item)` asks for
/// what its outputs need, `work.finish(item, finished)` makes them. The grid has a cluster for every tile.
template <class Work, class Address>
__device__ __forceinline__ void run(Work work, int rows, const Address& address, const void* normWeight, float eps,
                                    u8* memory) {
    static_assert(Work::kItems <= kWarps, "one for a warp");
    __shared__ Fixed fixed;
    const u32 base = sharedAddress(memory);
    const int warp = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 32, 0);
    const bool copies = threadIdx.x == (kWarps - 1) * 32;
    const int rank = Blocks::rank();
    const Share share(rank);
    const int ahead = share.count < kStages ? share.count : kStages;
    pdl::launchDependents();
    if (copies) {
        for (int i = 0; i < kStages; ++i) {
            barrier::init(sharedAddress(&fixed.full[i]), 1);
            barrier::init(sharedAddress(&fixed.empty[i]), kMultiplying);
        }
        barrier::init(sharedAddress(&fixed.summed), kRanks * 32);
        barrier::fenceInit();
        copyBlocks(work, share, 0, ahead, fixed, base);
    }
    __syncwarp();
    Blocks::arrive();
    const NormWeights norm(normWeight, share);
    Blocks::wait(); // all blocks of the cluster have begun, and their barriers are there
    pdl::wait();
    loadRows(rows, address, share, rank, norm, fixed, base + kRowsAt);
    fenceAsyncProxy();
    __syncthreads();
    // The warps that multiply have the last items, which tiles of few columns lack.
    const int item = (warp + kWarps - kMultiplying) % kWarps;
    if (warp < kMultiplying) {
        multiply(share, rank, rows, fixed, base);
    } else if (copies) {
        copyBlocks(work, share, ahead, share.count, fixed, base);
    }
    __syncwarp();
    if (item < Work::kItems && rank * 16 < rows) {
        work.request(item);
        work.finish(item, Finished(fixed, eps, base));
    }
}

} // namespace vt::split

#endif
