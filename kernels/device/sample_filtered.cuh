// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sampling with everything: repetition penalty, forbidden ids, temperature, top-k, top-p, min-p, the draw, and the best
// log-probabilities. A cluster of VT_CLUSTER blocks takes a row; block b holds the b-th slice of its ids, in order, in
// shared memory (VT_SHARED_VALUES) or in scratch.
//
// Candidates are ordered by (value, lower id first), which is a 64-bit key; what remains after top-k, top-p and min-p is
// always a front of that order, whose end is found digit by digit from histograms. Weights are counted as
// integers of 2^-41, because integers can be summed in any order: results never depend on timing.
// scratch: for each slot, vocab floats. A vocabulary has at most 2^18 ids: sums of the parts of weights stay in 32 bits.

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

inline constexpr int kParts = 3; ///< of a weight: 14, 14 and 14 bits, because shared memory adds 32 bits at a time
inline constexpr int kPartBits = 14;

/// Shared memory of a block. What a cluster adds up lies in block 0's.
struct Shared {
    u32 masses[kParts][kBins];
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

/// Weight of a value relative to the best, in units of 2^-41: a float below 1 or 1, cut off to an integer.
__device__ __forceinline__ u64 massOf(float value) {
    const u32 bits = __float_as_uint(exponential(value));
    const u64 digits = (bits & 0x7FFFFFU) | 0x800000U;
    const int shift = static_cast<int>(bits >> 23) - 127 - 23 + 41;
    return shift >= 0 ? digits << shift : shift > -24 ? digits >> -shift : 0;
}

/// The values of a block's slice, by id.
struct Values {
    float* data;
    int begin;

    __device__ __forceinline__ float& operator[](int id) const { return data[id - begin]; }
};

/// The row as it came.
struct Source {
    const X* logits;

    __device__ __forceinline__ float operator[](int id) const { return comparable(toFloat(logits[id])); }
};

/// body(id, value) over this warp's ids, all lanes together; lanes behind the end get id -1.
template <class From, class Body>
__device__ __forceinline__ void forWarpIds(const Slice& slice, const From& values, const Body& body) {
    constexpr int kBatch = VT_SHARED_VALUES != 0 ? 8 : 4; ///< loads under way
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int begin = slice.warpBegin; begin < slice.warpEnd; begin += 32 * kBatch) {
        float batch[kBatch];
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
            const int id = begin + i * 32 + lane;
            batch[i] = id < slice.warpEnd ? values[id] : 0.0F;
        }
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
            const int id = begin + i * 32 + lane;
            body(id < slice.warpEnd ? id : -1, batch[i]);
        }
    }
}

/// What a histogram holds in a bin: candidates, or their weight.
template <bool kCounting> __device__ __forceinline__ u64 massAt(const Shared& shared, int bin) {
    if constexpr (kCounting) {
        return shared.counts[bin];
    } else {
        u64 sum = 0;
        for (int part = 0; part < kParts; ++part) {
            sum += static_cast<u64>(shared.masses[part][bin]) << (part * kPartBits);
        }
        return sum;
    }
}

/// From the highest bin down, the one in which the mass reaches what is wanted. Warp 0 of block 0. Bins before it are
/// taken off `wanted`. False: all bins together do not reach it.
template <bool kCounting> __device__ __forceinline__ bool findBin(const Shared& shared, u64& wanted, int& found) {
    const auto massIn = [&](int bin) { return massAt<kCounting>(shared, bin); };
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

/// A bin of 1/64 for values up to 32 below the maximum: the first histogram spreads what the digits of keys would put
/// into a few bins, whose additions would wait for each other.
__device__ __forceinline__ int linearBin(float value, float maximum) {
    const float below = (maximum - value) * 64.0F;
    return kBins - 1 - (below < static_cast<float>(kBins - 1) ? static_cast<int>(below) : kBins - 1);
}

/// A front of the order: everything in better linear bins than `bin`, and from `key` on in that bin.
struct Front {
    int bin = 0;
    u64 key = 0;

    __device__ __forceinline__ bool holds(int valueBin, u64 valueKey) const {
        return valueBin > bin || (valueBin == bin && valueKey >= key);
    }
};

/// Adds the histograms of the cluster's blocks into block 0's.
template <bool kCounting> __device__ __forceinline__ void gatherBins(Shared& shared) {
    if (Blocks::rank() == 0) {
        return;
    }
    Shared* first = Blocks::at(&shared, 0);
    for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += kThreads) {
        if (shared.counts[bin] == 0) {
            continue;
        }
        atomicAdd(&first->counts[bin], shared.counts[bin]);
        if constexpr (!kCounting) {
            for (int part = 0; part < kParts; ++part) {
                atomicAdd(&first->masses[part][bin], shared.masses[part][bin]);
            }
        }
    }
}

/// The shortest front of `front` whose mass is at least `wanted`: candidates are kept while the mass before them is below
/// that. Mass 1 each when kCounting, else their weight.
template <bool kCounting>
__device__ __forceinline__ Front shorten(Shared& shared, const Slice& slice, const Values& values, float maximum,
                                         const Front& front, u64 wanted) {
    u64 prefix = 0;
    int linear = -1; ///< bin of the first histogram, once found
    int shift = 64;
    int above = 64;
    while (true) {
        for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += kThreads) {
            shared.counts[bin] = 0;
            for (int part = 0; part < kParts; ++part) {
                shared.masses[part][bin] = 0;
            }
        }
        Blocks::sync();
        forWarpIds(slice, values, [&](int id, float value) {
            const u64 key = id < 0 ? 0 : rankKey(value, id);
            int bin = linearBin(value, maximum);
            bool counts = id >= 0 && front.holds(bin, key);
            if (linear >= 0) {
                counts = counts && bin == linear && (above == 64 || key >> above == prefix);
                bin = static_cast<int>(key >> shift) & ((1 << (above - shift)) - 1);
            }
            if (counts) {
                atomicAdd(&shared.counts[bin], 1U);
                if constexpr (!kCounting) {
                    const u64 mass = massOf(value);
#pragma unroll
                    for (int part = 0; part < kParts; ++part) {
                        const u32 bits = static_cast<u32>(mass >> (part * kPartBits)) & ((1U << kPartBits) - 1);
                        if (bits != 0) {
                            atomicAdd(&shared.masses[part][bin], bits);
                        }
                    }
                }
            }
        });
        __syncthreads();
        gatherBins<kCounting>(shared);
        Blocks::sync();
        if (Blocks::rank() == 0 && threadIdx.x < 32) {
            int bin = 0;
            const bool reached = findBin<kCounting>(shared, wanted, bin);
            if (threadIdx.x < kBlocks) {
                Shared* other = Blocks::at(&shared, static_cast<int>(threadIdx.x));
                other->prefix = static_cast<u64>(bin);
                other->wanted = wanted;
                // A bin of one candidate, or one that is wanted whole, needs no further digits.
                const bool whole = shared.counts[bin] == 1 || massAt<kCounting>(shared, bin) == wanted;
                other->done = !reached ? 2 : whole ? 1 : 0;
            }
        }
        Blocks::sync();
        wanted = shared.wanted;
        if (shared.done == 2) {
            return front;
        }
        if (linear < 0) {
            linear = static_cast<int>(shared.prefix);
        } else {
            prefix = prefix << (above - shift) | shared.prefix;
            if (shared.done == 1 || shift == 0) {
                break;
            }
        }
        above = shift;
        shift -= shift < kDigitBits ? shift : kDigitBits;
    }
    const u64 key = prefix << shift;
    return {linear, linear == front.bin && key < front.key ? front.key : key};
}

/// The best `wanted` keys of the row, sorted, with their log-probabilities.
__device__ __forceinline__ void writeTop(const SampleParams& p, Shared& shared, const Slice& slice,
                                         const Values& values, int row, float maximum, float logOfSum) {
    const Front front = shorten<true>(shared, slice, values, maximum, {}, static_cast<u64>(p.topLogprobs));
    if (threadIdx.x == 0) {
        shared.topCount = 0;
    }
    Blocks::sync();
    Shared* first = Blocks::at(&shared, 0);
    forWarpIds(slice, values, [&](int id, float value) {
        if (id >= 0 && front.holds(linearBin(value, maximum), rankKey(value, id))) {
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
            p.topLogprobValues[static_cast<i64>(row) * p.topLogprobs + place] = rankValue(key) - logOfSum;
        }
    }
    Blocks::sync();
}

/// Inverse of the cumulative distribution over the candidates in ascending order of id.
__device__ __forceinline__ int draw(Shared& shared, const Slice& slice, const Values& values, const Front& front,
                                    float leastValue, const SampleRow& parameters, int best) {
    const auto mass = [&](int id, float value) {
        const bool kept = id >= 0 && value >= leastValue && front.holds(linearBin(value, 0), rankKey(value, id));
        return kept ? massOf(value) : 0;
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
__device__ __forceinline__ void changeValues(const SampleParams& p, const SampleRow& parameters, const Slice& slice,
                                             const X* logits, const Values& values) {
    const int* words = reinterpret_cast<const int*>(p.parameters);
    const int thread = static_cast<int>(threadIdx.x);
    if (parameters.repetitionPenalty != 1.0F) {
        for (int i = thread; i < parameters.historyLength; i += kThreads) {
            const int id = words[parameters.historyBegin + i];
            if (id >= slice.begin && id < slice.end) {
                const float value = comparable(toFloat(logits[id]));
                values[id] = value < 0 ? value * parameters.repetitionPenalty : value / parameters.repetitionPenalty;
            }
        }
        __syncthreads();
    }
    for (int i = thread; i < parameters.forbiddenLength; i += kThreads) {
        const int id = words[parameters.forbiddenBegin + i];
        if (id >= slice.begin && id < slice.end) {
            values[id] = __int_as_float(0xFF800000);
        }
    }
    __syncthreads();
}

/// `key` is the best of the row as it came.
__device__ __forceinline__ int choose(const SampleParams& p, Shared& shared, const Slice& slice, int row,
                                      const X* logits, const Values& values, u64 key) {
    const SampleRow& parameters = p.parameters[row];
    if (parameters.repetitionPenalty != 1.0F || parameters.forbiddenLength > 0) {
        changeValues(p, parameters, slice, logits, values);
        key = 0;
        forWarpIds(slice, values, [&](int id, float value) {
            const u64 other = id < 0 ? 0 : rankKey(value, id);
            key = other > key ? other : key;
        });
        key = clusterMax(shared, key);
    }
    const int best = rankNumber(key);
    const float maximum = rankValue(key);
    if (parameters.temperature == 0 || parameters.topK == 1 || !(maximum > __int_as_float(0xFF800000))) {
        return best;
    }
    const float inverse = 1.0F / parameters.temperature;
    forWarpIds(slice, values, [&](int id, float value) {
        if (id >= 0) {
            values[id] = __fmul_rn(__fsub_rn(value, maximum), inverse);
        }
    });
    Front front;
    if (parameters.topK > 0 && parameters.topK < p.vocab) {
        front = shorten<true>(shared, slice, values, 0, front, static_cast<u64>(parameters.topK));
    }
    if (parameters.topP < 1) {
        u64 mine = 0;
        forWarpIds(slice, values, [&](int id, float value) {
            mine += id >= 0 && front.holds(linearBin(value, 0), rankKey(value, id)) ? massOf(value) : 0;
        });
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
        front = shorten<false>(shared, slice, values, 0, front, wanted > 0 ? wanted : 1);
    }
    return draw(shared, slice, values, front, parameters.least, parameters, best);
}

} // namespace filtered

extern "C" __global__ void __launch_bounds__(filtered::kThreads)
    sample_filtered(const __grid_constant__ SampleParams p) {
    using namespace filtered;
    extern __shared__ float sharedValues[];
    __shared__ Shared shared;
    const int slot = static_cast<int>(blockIdx.x) / kBlocks;
    const Slice slice = sliceOf(p.vocab);
    Values values{sharedValues, slice.begin};
    if constexpr (VT_SHARED_VALUES == 0) {
        values.data = static_cast<float*>(p.scratch) + static_cast<i64>(slot) * p.vocab + slice.begin;
    }
    Blocks::sync(); // no block writes into another that has not begun
    pdl::wait();
    pdl::launchDependents();
    for (int row = slot; row < p.rows; row += p.slots) {
        const X* logits = static_cast<const X*>(p.logits) + row * p.stride;
        u64 key = 0;
        forWarpIds(slice, Source{logits}, [&](int id, float value) {
            if (id >= 0) {
                values[id] = value;
                const u64 other = rankKey(value, id);
                key = other > key ? other : key;
            }
        });
        key = clusterMax(shared, key);
        float logOfSum = 0;
        if (p.logprobs != nullptr || p.topLogprobs > 0) {
            const float maximum = rankValue(key);
            float sum = 0;
            forWarpIds(slice, values, [&](int id, float value) {
                sum += id >= 0 && value > __int_as_float(0xFF800000) ? __expf(value - maximum) : 0.0F;
            });
            logOfSum = logSum(maximum, clusterSum(shared, sum));
            if (p.topLogprobs > 0) {
                writeTop(p, shared, slice, values, row, maximum, logOfSum);
            }
        }
        Blocks::sync();
        const int id = choose(p, shared, slice, row, logits, values, key);
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
