// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Grouped expert products on Hopper: one persistent block a multiprocessor. A producer thread copies blocks of gathered
// rows into a ring; two warpgroups each multiply 128 weight rows by the tile's rows (as Y^T = W X^T, because only the A
// operand may come from registers). Weights go from global memory to registers one block ahead, become BF16 there, and
// feed the tensor cores while the other fragment's products run.

#include "device/experts/expert_weights.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/warp.cuh"
#include "device/lib/wgmma.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;
using namespace vt::grouped;

constexpr int kStages = VT_STAGES;
constexpr int kConsumers = 2; ///< warpgroups
constexpr int kRegistersOfProducer = 24;
constexpr int kRegistersOfConsumer = 240;
/// INT4 multiplies an odd last block behind the loop, or its registers would not do. The others are faster when the
/// loop has all.
constexpr int kBlocksInLoop = VT_W_FORMAT == VT_FORMAT_INT4 ? kBlocks / 2 * 2 : kBlocks;
constexpr int kGroupTiles = (kGroups + kConsumers - 1) / kConsumers;

/// Shared memory: the ring, a piece for each consumer's results, barriers.
constexpr int kResultsAt = kStages * kBlockBytes;
constexpr int kBarriersAt = kResultsAt + kConsumers * kBlockBytes;

struct Ring {
    u32 base;
    int stage = 0;
    u32 phase = 0;

    __device__ __forceinline__ u32 data() const { return base + static_cast<u32>(stage * kBlockBytes); }
    __device__ __forceinline__ u32 full() const { return base + static_cast<u32>(kBarriersAt + 8 * stage); }
    __device__ __forceinline__ u32 empty() const { return full() + 8 * kStages; }
    __device__ __forceinline__ u32 emptyBefore() const {
        return base + static_cast<u32>(kBarriersAt + 8 * kStages + 8 * (stage == 0 ? kStages - 1 : stage - 1));
    }
    __device__ __forceinline__ void next() {
        ++stage;
        if (stage == kStages) {
            stage = 0;
            phase ^= 1;
        }
    }
};

struct Place {
    int tile, rows, expert, group;

    static __device__ __forceinline__ int lane() { return thread() % 32; }
    static __device__ __forceinline__ int warp() { return thread() / 32 % 4; } ///< inside the warpgroup
    /// This warpgroup's piece of shared memory, and its named barrier.
    static __device__ __forceinline__ u32 results(const Ring& ring) {
        return ring.base + static_cast<u32>(kResultsAt + thread() / 128 * kBlockBytes);
    }
    static __device__ __forceinline__ int barrier() { return 1 + thread() / 128; }

private:
    /// Read anew each time: a register in the loop is dear.
    static __device__ __forceinline__ int thread() {
        int out;
        asm volatile("mov.u32 %0, %%tid.x;" : "=r"(out));
        return out;
    }
};

__device__ __forceinline__ int paddedRows(int rows) {
    return (rows + 31) / 32 * 32;
}

__device__ void produce(const abi::ExpertGemmParams& p, Ring ring) {
    const int count = *p.tileCount * kGroupTiles;
    for (int index = static_cast<int>(blockIdx.x); index < count; index += static_cast<int>(gridDim.x)) {
        const int tile = index / kGroupTiles;
        const u32 bytes = static_cast<u32>(paddedRows(p.tiles[2 * tile + 1]) * kBlock * 2);
        const u8* from = static_cast<const u8*>(p.x) + static_cast<i64>(tile) * kBlocks * kBlockBytes;
        for (int block = 0; block < kBlocks; ++block, from += kBlockBytes) {
            barrier::wait(ring.empty(), ring.phase ^ 1);
            barrier::arriveExpect(ring.full(), bytes);
            copyBulk(ring.data(), from, bytes, ring.full());
            ring.next();
        }
    }
}

/// The weights of both fragments, block after block. ptxas lets all loads of a loop count on one scoreboard, so waiting
/// for the oldest is waiting for the newest: they go out together, as early as there is room.
class WeightStream {
public:
    __device__ __forceinline__ WeightStream(const abi::ExpertGemmParams& p, const Place& at)
        : places_{FragmentPlace(p, at.expert, at.group, 0, at.warp(), at.lane()),
                  FragmentPlace(p, at.expert, at.group, 1, at.warp(), at.lane())} {
        places_[0].load(0, raw_[0]);
        places_[1].load(0, raw_[1]);
        raw_[0].settle();
        raw_[1].settle();
    }

    /// In order of blocks, m 0 before 1; kOdd is block % 2.
    template <int kOdd> __device__ __forceinline__ void next(int block, int m, u32 (&a)[4][4]) {
        raw_[m].template expand<kOdd>(a);
        if (kLoadBlocks > 1) { // two blocks share a load, which goes out two blocks ahead
            if (kOdd == 0 && m == 0 && block + 2 < kBlocks) {
                places_[0].load(block + 2, ahead_[0]);
                places_[1].load(block + 2, ahead_[1]);
            } else if (kOdd != 0 && m == 1) {
                raw_[0] = ahead_[0];
                raw_[1] = ahead_[1];
                raw_[0].settle();
                raw_[1].settle();
            }
        } else if (block + 1 < kBlocks) {
            places_[m].load(block + 1, raw_[m]);
        }
    }

private:
    FragmentPlace places_[2];
    RawWeights raw_[2], ahead_[2];
};

/// Activated features, one 16-byte piece a warp and fragment, as a block of the next product's tile.
__device__ __forceinline__ void storeTile(const abi::ExpertGemmParams& p, const Place& at, u32 results,
                                          const float (&sums)[2][64]) {
    const WeightRows rows(at.group, at.warp(), at.lane());
#pragma unroll
    for (int m = 0; m < 2; ++m) {
        const int piece = 4 * m + at.warp();
        const bool inside = rows.feature(m) < kFeatures;
        const float gateBias = biasOf(p, at.expert, rows.row(m, 0));
        const float upBias = biasOf(p, at.expert, rows.row(m, 1));
#pragma unroll
        for (int part = 0; part < kTileRows / 32; ++part) {
            if (part * 32 >= at.rows) {
                break;
            }
            u32 words[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float* c = sums[m] + 16 * part + 4 * i;
                const float first = activate(p, fmaf(c[0], kUndo, gateBias), fmaf(c[2], kUndo, upBias));
                const float second = activate(p, fmaf(c[1], kUndo, gateBias), fmaf(c[3], kUndo, upBias));
                words[i] = inside ? packBf16(first, second) : 0;
            }
            storeMatrix4Transposed(results + swizzled<128>(32 * part + at.lane(), piece * 16), words[0], words[1],
                                   words[2], words[3]);
        }
    }
    fenceAsyncProxy();
    namedBarrier(at.barrier(), 128);
    if (at.warp() == 0 && at.lane() == 0) {
        const i64 block = static_cast<i64>(at.tile) * blocksOf(kFeatures) + at.group;
        storeBulk(static_cast<u8*>(p.result) + block * kBlockBytes, results,
                  static_cast<u32>(paddedRows(at.rows) * kBlock * 2));
        storeBulkCommit();
    }
}

__device__ __forceinline__ u32 biased(float first, float second, float bias) {
    return packBf16(fmaf(first, kUndo, bias), fmaf(second, kUndo, bias));
}

/// Rows of the result, one fragment (64 features) after the other.
__device__ __forceinline__ void storeRows(const abi::ExpertGemmParams& p, const Place& at, u32 results,
                                          const float (&sums)[2][64]) {
    const int thread = at.warp() * 32 + at.lane();
    const WeightRows rows(at.group, at.warp(), at.lane());
#pragma unroll
    for (int m = 0; m < 2; ++m) {
        const float lowBias = biasOf(p, at.expert, rows.row(m, 0));
        const float highBias = biasOf(p, at.expert, rows.row(m, 1));
#pragma unroll
        for (int part = 0; part < kTileRows / 16; ++part) {
            if (part * 16 >= at.rows) {
                break;
            }
            const float* c = sums[m] + 8 * part;
            const int row = 16 * part + at.lane() % 8 + at.lane() / 16 * 8;
            const int piece = 2 * at.warp() + at.lane() / 8 % 2;
            storeMatrix4Transposed(results + swizzled<128>(row, piece * 16), biased(c[0], c[1], lowBias),
                                   biased(c[2], c[3], highBias), biased(c[4], c[5], lowBias),
                                   biased(c[6], c[7], highBias));
        }
        namedBarrier(at.barrier(), 128);
        const int feature = at.group * 128 + 64 * m + thread % 8 * 8;
#pragma unroll
        for (int part = 0; part < kTileRows / 16; ++part) {
            const int row = 16 * part + thread / 8;
            const int pair = p.slots[at.tile * kTileRows + row];
            if (pair >= 0 && feature < kFeatures) {
                u32x4 words;
                asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                             : "r"(results + swizzled<128>(row, thread % 8 * 16)));
                *reinterpret_cast<u32x4*>(static_cast<u16*>(p.result) + pair * p.resultStride + feature) = words;
            }
        }
        if (m == 0) {
            namedBarrier(at.barrier(), 128);
        }
    }
}

/// Keeps the compiler from finishing the fragments between the products.
__device__ __forceinline__ void pin(u32 (&a)[4][4]) {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
        asm volatile("" : "+r"(a[step][0]), "+r"(a[step][1]), "+r"(a[step][2]), "+r"(a[step][3])::"memory");
    }
}

/// One block of one fragment, for the first `columns` rows of the tile, rounded up to kLow..kHigh in steps of 32: finer
/// steps cost more by the branches than they save.
template <int kLow, int kHigh>
__device__ __forceinline__ void products(int columns, float (&sums)[64], const u32 (&a)[4][4], u64 rows) {
    if constexpr (kLow == kHigh) {
        wgmma::fence();
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            wgmma::Product<bf16, kLow>::run(sums, a[step], rows + 2 * step, 1);
        }
        wgmma::commit(); // here: after the branches that choose the width it would be a second group
    } else {
        constexpr int kMiddle = (kLow + kHigh) / 64 * 32;
        if (columns > kMiddle) {
            products<kMiddle + 32, kHigh>(columns, sums, a, rows);
        } else {
            products<kLow, kMiddle>(columns, sums, a, rows);
        }
    }
}

/// One block of the contracted axis; kOdd is block % 2.
template <int kOdd>
__device__ __forceinline__ void accumulateBlock(int block, WeightStream& weights, const Place& at, Ring& ring,
                                                u32 (&fragments)[2][4][4], float (&sums)[2][64]) {
    barrier::wait(ring.full(), ring.phase);
    const u64 rows = wgmma::descriptor128(ring.data());
#pragma unroll
    for (int m = 0; m < 2; ++m) {
        wgmma::wait<1>(); // the products that read fragments[m] are done
        if (m == 1 && block > 0 && at.lane() == 0) {
            barrier::arrive(ring.emptyBefore());
        }
        weights.next<kOdd>(block, m, fragments[m]);
        pin(fragments[m]);
        // Inside the loop: a loop for each width would need registers of its own.
        products<32, kTileRows>(at.rows, sums[m], fragments[m], rows);
    }
    ring.next();
}

/// The sums of a tile over the contracted axis.
__device__ __forceinline__ void accumulate(WeightStream& weights, const Place& at, Ring& ring, float (&sums)[2][64]) {
    u32 fragments[2][4][4];
#pragma unroll 1
    for (int block = 0; block < kBlocksInLoop; block += 2) {
        accumulateBlock<0>(block, weights, at, ring, fragments, sums);
        if (block + 1 == kBlocks) {
            break;
        }
        accumulateBlock<1>(block + 1, weights, at, ring, fragments, sums);
    }
    if (kBlocksInLoop < kBlocks) {
        accumulateBlock<0>(kBlocks - 1, weights, at, ring, fragments, sums);
    }
    wgmma::wait<0>();
}

__device__ __forceinline__ void multiply(const abi::ExpertGemmParams& p, Place at, Ring& ring) {
    WeightStream weights(p, at);
    float sums[2][64];
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        sums[0][i] = sums[1][i] = 0;
    }
    accumulate(weights, at, ring, sums);
    if (at.lane() == 0) {
        barrier::arrive(ring.emptyBefore());
    }
    if (at.warp() == 0 && at.lane() == 0) {
        storeBulkWaitRead<0>(); // the results' piece is free again
    }
    namedBarrier(at.barrier(), 128);
    if (kGated) {
        storeTile(p, at, Place::results(ring), sums);
    } else {
        storeRows(p, at, Place::results(ring), sums);
    }
}

__device__ void consume(const abi::ExpertGemmParams& p, Ring ring, int consumer) {
    const int count = __shfl_sync(kAllLanes, *p.tileCount, 0) * kGroupTiles;
    Place at{};
    for (int index = static_cast<int>(blockIdx.x); index < count; index += static_cast<int>(gridDim.x)) {
        at.tile = index / kGroupTiles;
        at.group = index % kGroupTiles * kConsumers + consumer;
        at.expert = __shfl_sync(kAllLanes, p.tiles[2 * at.tile], 0); // the same in all lanes, for the compiler
        at.rows = __shfl_sync(kAllLanes, p.tiles[2 * at.tile + 1], 0);
        if (at.group >= kGroups) {
            for (int block = 0; block < kBlocks; ++block) {
                barrier::wait(ring.full(), ring.phase);
                if (at.lane() == 0) {
                    barrier::arrive(ring.empty());
                }
                ring.next();
            }
        } else {
            multiply(p, at, ring);
        }
    }
    if (at.warp() == 0 && at.lane() == 0) {
        storeBulkWaitRead<0>();
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
    expert_gemm_hopper(const __grid_constant__ abi::ExpertGemmParams p) {
    extern __shared__ __align__(1024) unsigned char shared[];
    Ring ring{sharedAddress(shared)};
    if (threadIdx.x == 0) {
        for (int i = 0; i < kStages; ++i) {
            barrier::init(ring.base + static_cast<u32>(kBarriersAt + 8 * i), 1);
            barrier::init(ring.base + static_cast<u32>(kBarriersAt + 8 * (kStages + i)), kConsumers * 4);
        }
        barrier::fenceInit();
    }
    __syncthreads();
    pdl::wait();
    pdl::launchDependents();
    const int warpgroup = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 128, 0);
    if (warpgroup == kConsumers) {
        wgmma::giveRegisters<kRegistersOfProducer>();
        if (threadIdx.x == kConsumers * 128) {
            produce(p, ring);
        }
    } else {
        wgmma::takeRegisters<kRegistersOfConsumer>();
        consume(p, ring, warpgroup);
    }
}
