// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The order of a row's candidates over a cluster of blocks: sums, histograms, and the front of the order that a filter
// leaves. Part of sample_filtered.cuh, which says what the macros mean.

#include "device/lib/cluster.cuh"
#include "device/sampling/sample.cuh"

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
    // What thread block 0 passes to the others about a histogram.
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

/// body(id, value) over this warp's ids, all lanes together; lanes after the end get id -1.
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

/// The shortest front of `front` whose mass is at least `wanted`: candidates are kept while the mass before them is
/// below that. Mass 1 each when kCounting, else their weight.
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

} // namespace filtered

} // namespace vt
