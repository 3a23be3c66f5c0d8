// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sampling with everything: repetition penalty, forbidden ids, temperature, top-k, top-p, min-p, the draw, and the best
// log-probabilities. A cluster of VT_CLUSTER blocks takes a row; block b holds the b-th slice of its ids, in order.
//
// Candidates are ordered by (value, lower id first), which is a 64-bit key; what remains after top-k, top-p and min-p is
// always a front of that order, so a filter is a least key, found digit by digit from histograms. Weights are counted as
// integers of 2^-44, because integers can be summed in any order: results never depend on timing.
// scratch: for each slot, vocab floats.

#include "device/cluster.cuh"
#include "device/pdl.cuh"
#include "device/philox.cuh"
#include "device/sample.cuh"

namespace vt {

namespace filtered {

inline constexpr int kBlocks = VT_CLUSTER;
using Blocks = Cluster<kBlocks>;
using X = StorageOf<VT_X_DTYPE>;
inline constexpr int kThreads = 512;
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kDigitBits = 11;
inline constexpr int kBins = 1 << kDigitBits;
inline constexpr int kMostTop = 1024; ///< log-probabilities reported

/// Shared memory of a block. What a cluster adds up lies in block 0's.
struct Shared {
    u64 masses[kBins];
    u32 counts[kBins];
    u64 warpKeys[kWarps];
    u64 warpMasses[kWarps];
    float warpSums[kWarps];
    u64 blockKeys[kBlocks];
    u64 blockMasses[kBlocks];
    float blockSums[kBlocks];
    u64 topKeys[kMostTop];
    u32 topCount;
    // What block 0 tells the others of a histogram.
    u64 prefix, wanted;
    int done;
};

struct Slice {
    int begin, end;         ///< ids of this block
    int warpBegin, warpEnd; ///< and of this warp
};

__device__ __forceinline__ Slice sliceOf(int vocab) {
    const int perWarp = ceilDiv(ceilDiv(vocab, kBlocks * kWarps), 32) * 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const auto clip = [&](int id) { return id < vocab ? id : vocab; };
    const int begin = Blocks::rank() * kWarps * perWarp;
    return {clip(begin), clip(begin + kWarps * perWarp), clip(begin + warp * perWarp),
            clip(begin + (warp + 1) * perWarp)};
}

/// The largest key over the cluster; all threads get it.
__device__ __forceinline__ u64 clusterMax(Shared& shared, u64 key) {
    key = warpMax(key);
    if (threadIdx.x % 32 == 0) {
        shared.warpKeys[threadIdx.x / 32] = key;
    }
    __syncthreads();
    if (threadIdx.x < kBlocks) {
        for (const u64 other : shared.warpKeys) {
            key = other > key ? other : key;
        }
        Blocks::at(&shared, static_cast<int>(threadIdx.x))->blockKeys[Blocks::rank()] = key;
    }
    Blocks::sync();
    key = 0;
    for (const u64 other : shared.blockKeys) {
        key = other > key ? other : key;
    }
    Blocks::sync();
    return key;
}

/// The sum over the cluster in a fixed order.
__device__ __forceinline__ float clusterSum(Shared& shared, float sum) {
    sum = warpSum(sum);
    if (threadIdx.x % 32 == 0) {
        shared.warpSums[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x < kBlocks) {
        sum = 0;
        for (const float other : shared.warpSums) {
            sum += other;
        }
        Blocks::at(&shared, static_cast<int>(threadIdx.x))->blockSums[Blocks::rank()] = sum;
    }
    Blocks::sync();
    sum = 0;
    for (const float other : shared.blockSums) {
        sum += other;
    }
    Blocks::sync();
    return sum;
}

__device__ __forceinline__ u64 warpMassSum(u64 mass) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        mass += __shfl_xor_sync(kAllLanes, mass, offset);
    }
    return mass;
}

/// Weight of a value relative to the best, in units of 2^-44.
__device__ __forceinline__ u64 massOf(float value) {
    return static_cast<u64>(static_cast<double>(exponential(value)) * 0x1.0p44);
}

/// body(id, value) over this warp's ids, all lanes together; lanes behind the end get id -1.
template <class Body>
__device__ __forceinline__ void forWarpIds(const Slice& slice, const float* values, const Body& body) {
    for (int begin = slice.warpBegin; begin < slice.warpEnd; begin += 32) {
        const int id = begin + static_cast<int>(threadIdx.x) % 32;
        const bool inside = id < slice.warpEnd;
        body(inside ? id : -1, inside ? values[id] : 0.0F);
    }
}

/// From the highest bin down, the one in which the mass reaches what is wanted. Warp 0 of block 0. Bins before it are
/// taken off `wanted`. False: all bins together do not reach it.
template <bool kCounting> __device__ __forceinline__ bool findBin(const Shared& shared, u64& wanted, int& found) {
    const auto massIn = [&](int bin) { return kCounting ? static_cast<u64>(shared.counts[bin]) : shared.masses[bin]; };
    const int lane = static_cast<int>(threadIdx.x) % 32;
    u64 before = 0;
    for (int high = kBins; high > 0; high -= 32) {
        const int bin = high - 1 - lane;
        u64 sum = massIn(bin);
#pragma unroll
        for (int offset = 1; offset < 32; offset *= 2) {
            const u64 other = __shfl_up_sync(kAllLanes, sum, offset);
            sum += lane >= offset ? other : 0;
        }
        const u32 reached = __ballot_sync(kAllLanes, before + sum >= wanted);
        if (reached != 0) {
            const int first = __ffs(static_cast<int>(reached)) - 1;
            const u64 inclusive = __shfl_sync(kAllLanes, sum, first);
            found = high - 1 - first;
            wanted -= before + inclusive - massIn(found);
            return true;
        }
        before += __shfl_sync(kAllLanes, sum, 31);
    }
    return false;
}

/// The least key of the shortest front of the order whose mass is at least `wanted`, among keys of at least `least`:
/// candidates are kept while the mass before them is below `wanted`. Mass 1 each when kCounting, else their weight.
template <bool kCounting>
__device__ __forceinline__ u64 leastKey(Shared& shared, const Slice& slice, const float* values, u64 least,
                                        u64 wanted) {
    u64 prefix = 0;
    int shift = 64;
    while (shift > 0) {
        const int bits = shift < kDigitBits ? shift : kDigitBits;
        const int above = shift;
        shift -= bits;
        for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += kThreads) {
            shared.masses[bin] = 0;
            shared.counts[bin] = 0;
        }
        Blocks::sync();
        forWarpIds(slice, values, [&](int id, float value) {
            const u64 key = id < 0 ? 0 : rankKey(value, id);
            if (id >= 0 && key >= least && (above == 64 || key >> above == prefix)) {
                const int bin = static_cast<int>(key >> shift) & ((1 << bits) - 1);
                atomicAdd(&shared.counts[bin], 1U);
                if constexpr (!kCounting) {
                    atomicAdd(&shared.masses[bin], massOf(value));
                }
            }
        });
        __syncthreads();
        if (Blocks::rank() != 0) {
            Shared* first = Blocks::at(&shared, 0);
            for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += kThreads) {
                if (shared.counts[bin] != 0) {
                    atomicAdd(&first->counts[bin], shared.counts[bin]);
                    if constexpr (!kCounting) {
                        atomicAdd(&first->masses[bin], shared.masses[bin]);
                    }
                }
            }
        }
        Blocks::sync();
        if (Blocks::rank() == 0 && threadIdx.x < 32) {
            int bin = 0;
            const bool reached = findBin<kCounting>(shared, wanted, bin);
            if (threadIdx.x < kBlocks) {
                Shared* other = Blocks::at(&shared, static_cast<int>(threadIdx.x));
                other->prefix = prefix << bits | static_cast<u64>(bin);
                other->wanted = wanted;
                // A bin of one candidate, or one that is wanted whole, needs no further digits.
                const u64 mass = kCounting ? static_cast<u64>(shared.counts[bin]) : shared.masses[bin];
                other->done = !reached ? 2 : shared.counts[bin] == 1 || mass == wanted ? 1 : 0;
            }
        }
        Blocks::sync();
        prefix = shared.prefix;
        wanted = shared.wanted;
        if (shared.done == 2) {
            return least;
        }
        if (shared.done == 1) {
            break;
        }
    }
    const u64 key = prefix << shift;
    return key > least ? key : least;
}

/// The best `wanted` keys of the row, sorted, with their log-probabilities.
__device__ __forceinline__ void writeTop(const SampleParams& p, Shared& shared, const Slice& slice, const float* values,
                                         int row, float logOfSum) {
    const u64 least = leastKey<true>(shared, slice, values, 0, static_cast<u64>(p.topLogprobs));
    if (threadIdx.x == 0) {
        shared.topCount = 0;
    }
    Blocks::sync();
    Shared* first = Blocks::at(&shared, 0);
    forWarpIds(slice, values, [&](int id, float value) {
        if (id >= 0 && rankKey(value, id) >= least) {
            first->topKeys[atomicAdd(&first->topCount, 1U)] = rankKey(value, id);
        }
    });
    Blocks::sync();
    if (Blocks::rank() == 0) {
        for (int i = static_cast<int>(threadIdx.x); i < p.topLogprobs; i += kThreads) {
            const u64 key = shared.topKeys[i];
            int place = 0;
            for (int j = 0; j < p.topLogprobs; ++j) {
                place += shared.topKeys[j] > key ? 1 : 0;
            }
            const int id = rankNumber(key);
            p.topIds[static_cast<i64>(row) * p.topLogprobs + place] = id;
            p.topLogprobValues[static_cast<i64>(row) * p.topLogprobs + place] = values[id] - logOfSum;
        }
    }
    Blocks::sync();
}

/// Inverse of the cumulative distribution over the candidates in ascending order of id.
__device__ __forceinline__ int draw(Shared& shared, const Slice& slice, const float* values, u64 least,
                                    float leastValue, const SampleRow& parameters, int best) {
    const auto mass = [&](int id, float value) {
        return id >= 0 && value >= leastValue && rankKey(value, id) >= least ? massOf(value) : 0;
    };
    u64 mine = 0;
    forWarpIds(slice, values, [&](int id, float value) { mine += mass(id, value); });
    mine = warpMassSum(mine);
    if (threadIdx.x % 32 == 0) {
        shared.warpMasses[threadIdx.x / 32] = mine;
    }
    __syncthreads();
    u64 before = 0;
    u64 ofBlock = 0;
    for (int i = 0; i < kWarps; ++i) {
        before += i < static_cast<int>(threadIdx.x) / 32 ? shared.warpMasses[i] : 0;
        ofBlock += shared.warpMasses[i];
    }
    if (threadIdx.x < kBlocks) {
        Blocks::at(&shared, static_cast<int>(threadIdx.x))->blockMasses[Blocks::rank()] = ofBlock;
    }
    if (threadIdx.x == 0) {
        shared.prefix = static_cast<u64>(best);
    }
    Blocks::sync();
    u64 total = 0;
    for (int i = 0; i < kBlocks; ++i) {
        before += i < Blocks::rank() ? shared.blockMasses[i] : 0;
        total += shared.blockMasses[i];
    }
    const u64 position = static_cast<u64>(parameters.positionHigh) << 32 | parameters.positionLow;
    const u32x4 random = philox4x32(parameters.seed, parameters.request, position, 0);
    const double uniform = (static_cast<double>(random.x) * 0x1.0p32 + static_cast<double>(random.y) + 0.5) * 0x1.0p-64;
    const double target = uniform * static_cast<double>(total);
    // Exactly one warp holds the first candidate whose sum passes the target.
    if (static_cast<double>(before) <= target && static_cast<double>(before + mine) > target) {
        bool found = false;
        forWarpIds(slice, values, [&](int id, float value) {
            u64 sum = mass(id, value);
            const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
            for (int offset = 1; offset < 32; offset *= 2) {
                const u64 other = __shfl_up_sync(kAllLanes, sum, offset);
                sum += lane >= offset ? other : 0;
            }
            const u32 passed = __ballot_sync(kAllLanes, static_cast<double>(before + sum) > target);
            if (!found && passed != 0) {
                found = true;
                if (lane == __ffs(static_cast<int>(passed)) - 1) {
                    Blocks::at(&shared, 0)->prefix = static_cast<u64>(id);
                }
            }
            before += __shfl_sync(kAllLanes, sum, 31);
        });
    }
    Blocks::sync();
    const int chosen = static_cast<int>(Blocks::at(&shared, 0)->prefix);
    Blocks::sync();
    return chosen;
}

/// Penalties and forbidden ids change `values`; a token that occurs several times is penalised once.
__device__ __forceinline__ void changeValues(const SampleParams& p, const SampleRow& parameters, const X* logits,
                                             float* values) {
    const int* words = reinterpret_cast<const int*>(p.parameters);
    const int thread = Blocks::rank() * kThreads + static_cast<int>(threadIdx.x);
    if (parameters.repetitionPenalty != 1.0F) {
        for (int i = thread; i < parameters.historyLength; i += kBlocks * kThreads) {
            const int id = words[parameters.historyBegin + i];
            if (id >= 0 && id < p.vocab) {
                const float value = comparable(toFloat(logits[id]));
                values[id] = value < 0 ? value * parameters.repetitionPenalty : value / parameters.repetitionPenalty;
            }
        }
        __threadfence();
        Blocks::sync();
    }
    for (int i = thread; i < parameters.forbiddenLength; i += kBlocks * kThreads) {
        const int id = words[parameters.forbiddenBegin + i];
        if (id >= 0 && id < p.vocab) {
            values[id] = __int_as_float(0xFF800000);
        }
    }
    __threadfence();
    Blocks::sync();
}

__device__ __forceinline__ int choose(const SampleParams& p, Shared& shared, const Slice& slice, int row,
                                      const X* logits, float* values) {
    const SampleRow& parameters = p.parameters[row];
    changeValues(p, parameters, logits, values);
    u64 key = 0;
    forWarpIds(slice, values, [&](int id, float value) {
        const u64 other = id < 0 ? 0 : rankKey(value, id);
        key = other > key ? other : key;
    });
    const int best = rankNumber(clusterMax(shared, key));
    const float maximum = values[best];
    if (parameters.temperature == 0 || parameters.topK == 1 || !(maximum > __int_as_float(0xFF800000))) {
        return best;
    }
    Blocks::sync(); // all have read the maximum
    const float inverse = 1.0F / parameters.temperature;
    forWarpIds(slice, values, [&](int id, float value) {
        if (id >= 0) {
            values[id] = __fmul_rn(__fsub_rn(value, maximum), inverse);
        }
    });
    u64 least = 0;
    if (parameters.topK > 0 && parameters.topK < p.vocab) {
        least = leastKey<true>(shared, slice, values, least, static_cast<u64>(parameters.topK));
    }
    if (parameters.topP < 1) {
        u64 mine = 0;
        forWarpIds(slice, values,
                   [&](int id, float value) { mine += id >= 0 && rankKey(value, id) >= least ? massOf(value) : 0; });
        mine = warpMassSum(mine);
        if (threadIdx.x % 32 == 0) {
            shared.warpMasses[threadIdx.x / 32] = mine;
        }
        __syncthreads();
        if (threadIdx.x < kBlocks) {
            u64 sum = 0;
            for (const u64 other : shared.warpMasses) {
                sum += other;
            }
            Blocks::at(&shared, static_cast<int>(threadIdx.x))->blockMasses[Blocks::rank()] = sum;
        }
        Blocks::sync();
        u64 total = 0;
        for (const u64 other : shared.blockMasses) {
            total += other;
        }
        Blocks::sync();
        const u64 wanted = static_cast<u64>(ceil(static_cast<double>(parameters.topP) * static_cast<double>(total)));
        least = leastKey<false>(shared, slice, values, least, wanted > 0 ? wanted : 1);
    }
    return draw(shared, slice, values, least, parameters.least, parameters, best);
}

} // namespace filtered

extern "C" __global__ void __launch_bounds__(filtered::kThreads)
    sample_filtered(const __grid_constant__ SampleParams p) {
    using namespace filtered;
    __shared__ Shared shared;
    const int slot = static_cast<int>(blockIdx.x) / kBlocks;
    const Slice slice = sliceOf(p.vocab);
    float* values = static_cast<float*>(p.scratch) + static_cast<i64>(slot) * p.vocab;
    pdl::wait();
    pdl::launchDependents();
    for (int row = slot; row < p.rows; row += p.slots) {
        const X* logits = static_cast<const X*>(p.logits) + row * p.stride;
        u64 key = 0;
        for (int begin = slice.warpBegin; begin < slice.warpEnd; begin += 32) {
            const int id = begin + static_cast<int>(threadIdx.x) % 32;
            if (id < slice.warpEnd) {
                values[id] = comparable(toFloat(logits[id]));
                const u64 other = rankKey(values[id], id);
                key = other > key ? other : key;
            }
        }
        __threadfence();
        float logOfSum = 0;
        if (p.logprobs != nullptr || p.topLogprobs > 0) {
            const float maximum = values[rankNumber(clusterMax(shared, key))];
            float sum = 0;
            forWarpIds(slice, values, [&](int id, float value) {
                sum += id >= 0 && value > __int_as_float(0xFF800000) ? __expf(value - maximum) : 0.0F;
            });
            logOfSum = logSum(maximum, clusterSum(shared, sum));
            if (p.topLogprobs > 0) {
                writeTop(p, shared, slice, values, row, logOfSum);
            }
        }
        Blocks::sync();
        const int id = choose(p, shared, slice, row, logits, values);
        if (Blocks::rank() == 0 && threadIdx.x == 0) {
            p.ids[row] = id;
            if (p.logprobs != nullptr) {
                p.logprobs[row] = toFloat(logits[id]) - logOfSum;
            }
        }
        Blocks::sync();
    }
}

} // namespace vt
