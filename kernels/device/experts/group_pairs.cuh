// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Stable counting sort of pairs by expert in three launches: each warp counts a chunk of the pairs, one block turns
// counts into first rows, and each warp places its chunk in order.

#include "device/abi/group_pairs.h"
#include "device/lib/pdl.cuh"
#include "device/lib/warp.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

constexpr int kWarps = 2;

struct Chunk {
    int index, begin, end, lane;

    __device__ __forceinline__ explicit Chunk(const abi::GroupPairsParams& p)
        : index(static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32),
          begin(index * abi::kGroupChunk), end(min(begin + abi::kGroupChunk, p.count)),
          lane(static_cast<int>(threadIdx.x) % 32) {}
};

/// For each pair in order: `visit(pair, expert, rank)`, with its rank among the 32 that are visited together and have
/// the same expert; then one of these adds their number to counts[expert].
template <class Visit>
__device__ __forceinline__ void forPairs(const abi::GroupPairsParams& p, const Chunk& chunk, int* counts,
                                         const Visit& visit) {
    for (int first = chunk.begin; first < chunk.end; first += 32) {
        const int pair = first + chunk.lane;
        const int expert = pair < chunk.end ? p.ids[pair] : -1;
        const unsigned same = __match_any_sync(vt::kAllLanes, expert);
        const int rank = __popc(same & ((1U << chunk.lane) - 1));
        if (expert >= 0) {
            visit(pair, expert, rank);
        }
        __syncwarp();
        if (expert >= 0 && rank == 0) {
            counts[expert] += __popc(same);
        }
        __syncwarp();
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(kWarps * 32)
    group_pairs_count(const __grid_constant__ abi::GroupPairsParams p) {
    extern __shared__ int shared[];
    vt::pdl::wait();
    vt::pdl::launchDependents();
    const Chunk chunk(p);
    if (chunk.index >= p.chunks) {
        return;
    }
    int* counts = shared + static_cast<int>(threadIdx.x) / 32 * p.experts;
    for (int expert = chunk.lane; expert < p.experts; expert += 32) {
        counts[expert] = 0;
    }
    __syncwarp();
    forPairs(p, chunk, counts, [](int, int, int) {});
    for (int expert = chunk.lane; expert < p.experts; expert += 32) {
        p.counts[static_cast<long long>(chunk.index) * p.experts + expert] = counts[expert];
    }
}

/// One block: sums of each expert over the chunks, starts, then first rows.
extern "C" __global__ void __launch_bounds__(1024) group_pairs_scan(const __grid_constant__ abi::GroupPairsParams p) {
    extern __shared__ int shared[]; // of all experts
    vt::pdl::wait();
    vt::pdl::launchDependents();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    for (int expert = warp; expert < p.experts; expert += 32) {
        int before = 0;
        for (int first = 0; first < p.chunks; first += 32) {
            const int chunk = first + lane;
            int* at = p.counts + static_cast<long long>(chunk) * p.experts + expert;
            const int count = chunk < p.chunks ? *at : 0;
            int inclusive = count;
            for (int offset = 1; offset < 32; offset *= 2) {
                const int below = __shfl_up_sync(vt::kAllLanes, inclusive, offset);
                inclusive += lane >= offset ? below : 0;
            }
            if (chunk < p.chunks) {
                *at = before + inclusive - count;
            }
            before += __shfl_sync(vt::kAllLanes, inclusive, 31);
        }
        if (lane == 0) {
            shared[expert] = before;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        int row = 0;
        for (int expert = 0; expert < p.experts; ++expert) {
            p.starts[expert] = row;
            row += shared[expert];
        }
        p.starts[p.experts] = row;
    }
}

extern "C" __global__ void __launch_bounds__(kWarps * 32)
    group_pairs_place(const __grid_constant__ abi::GroupPairsParams p) {
    extern __shared__ int shared[];
    vt::pdl::wait();
    vt::pdl::launchDependents();
    const Chunk chunk(p);
    if (chunk.index >= p.chunks) {
        return;
    }
    int* rows = shared + static_cast<int>(threadIdx.x) / 32 * p.experts;
    for (int expert = chunk.lane; expert < p.experts; expert += 32) {
        rows[expert] = p.starts[expert] + p.counts[static_cast<long long>(chunk.index) * p.experts + expert];
    }
    __syncwarp();
    forPairs(p, chunk, rows, [&](int pair, int expert, int rank) {
        const int row = rows[expert] + rank;
        p.pairs[row] = pair;
        p.places[pair] = row;
    });
}
