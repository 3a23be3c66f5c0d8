// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sampling with everything: repetition penalty, changes of single logits, forbidden ids, temperature, top-k, top-p,
// min-p, the draw, and the best log-probabilities. A cluster of VT_CLUSTER blocks takes a row; block b holds the b-th
// slice of its ids, in order, in shared memory (VT_SHARED_VALUES) or in scratch.
//
// Candidates are ordered by (value, lower id first), which is a 64-bit key; what remains after top-k, top-p and min-p
// is always a front of that order, whose end is found digit by digit from histograms. Weights are counted as integers
// of 2^-41, because integers can be summed in any order: results never depend on timing. scratch: for each slot, vocab
// floats. A vocabulary has at most 2^18 ids: sums of the parts of weights stay in 32 bits.
//
// Without VT_DRAW_LOGPROBS the compiler finds nothing of what drawLogprobs needs.

#include "device/lib/pdl.cuh"
#include "device/lib/philox.cuh"
#include "device/sampling/sample_order.cuh"

namespace vt {

namespace filtered {

/// The best `wanted` keys of the row, sorted, with their log-probabilities. Not inlined: the kernel would spill.
__device__ __noinline__ void writeTop(const SampleParams& p, Shared& shared, const Slice& slice, const Values& values,
                                      int row, float maximum, float logOfSum) {
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

/// Else softmax(logits / temperature) is taken as that of the logits.
__device__ __forceinline__ bool tempers(float temperature) {
    return temperature != 0 && temperature != 1;
}

/// Of a multiprocessor, where log-probabilities of draws are wanted: else the compiler aims at more and spills. 0: it
/// chooses.
inline constexpr int kLeastBlocks = VT_DRAW_LOGPROBS != 0 ? 2 : 0;

/// What thread 0 of a block keeps for a row's drawLogprobs. In shared memory: the kernel would spill such registers.
struct Kept {
    float best;          ///< of the row as it came
    float logOfTempered; ///< temperedLogSum()
    float logOfMass;     ///< log of the sum of the candidates' weights; infinite where nothing is drawn
};

/// Log of the sum of e^((value - maximum) / temperature) over the row.
__device__ __forceinline__ float temperedLogSum(Shared& shared, const Slice& slice, const Values& values, float maximum,
                                                float temperature) {
    const float inverse = 1.0F / temperature;
    float sum = 0;
    forWarpIds(slice, values, [&](int id, float value) {
        sum += id >= 0 ? __expf(__fmul_rn(__fsub_rn(value, maximum), inverse)) : 0.0F;
    });
    return logf(clusterSum(shared, sum));
}

/// Inverse of the cumulative distribution over the candidates in ascending order of id.
__device__ __forceinline__ int draw(Shared& shared, const Slice& slice, const Values& values, const Front& front,
                                    float leastValue, const SampleRow& parameters, int best, Kept& kept) {
    const auto mass = [&](int id, float value) {
        const bool holds = id >= 0 && value >= leastValue && front.holds(linearBin(value, 0), rankKey(value, id));
        return holds ? massOf(value) : 0;
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
    if constexpr (VT_DRAW_LOGPROBS != 0) {
        if (threadIdx.x == 0) {
            kept.logOfMass = logf(static_cast<float>(total) * 0x1.0p-41F);
        }
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

/// Penalties, biases and forbidden ids change `values`; the repetition penalty counts a token of the history once, and
/// the list of changes names each id once.
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
    if (parameters.changesLength > 0) {
        for (int i = thread; i < parameters.changesLength; i += kThreads) {
            const int id = words[parameters.changesBegin + 2 * i];
            if (id >= slice.begin && id < slice.end) {
                values[id] = __fadd_rn(values[id], __int_as_float(words[parameters.changesBegin + 2 * i + 1]));
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
                                      const X* logits, const Values& values, u64 key, Kept& kept) {
    const SampleRow& parameters = p.parameters[row];
    if (parameters.repetitionPenalty != 1.0F || parameters.forbiddenLength > 0 || parameters.changesLength > 0) {
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
    return draw(shared, slice, values, front, parameters.least, parameters, best, kept);
}

} // namespace filtered

extern "C" __global__ void __launch_bounds__(filtered::kThreads, filtered::kLeastBlocks)
    sample_filtered(const __grid_constant__ SampleParams p) {
    using namespace filtered;
    extern __shared__ float sharedValues[];
    __shared__ Shared shared;
    __shared__ Kept kept;
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
        if (p.logprobs != nullptr || p.topLogprobs > 0 || VT_DRAW_LOGPROBS != 0) {
            const float maximum = rankValue(key);
            float sum = 0;
            forWarpIds(slice, values, [&](int id, float value) {
                // A value that is not finite is -inf by now: its difference to itself makes the sum NaN.
                sum += id >= 0 ? __expf(value - maximum) + (value - value) : 0.0F;
            });
            // Plus infinity has become the largest number.
            logOfSum = maximum < 3.402823466e38F ? logSum(maximum, clusterSum(shared, sum))
                                                 : clusterSum(shared, __int_as_float(0x7FC00000));
            if (p.topLogprobs > 0) {
                writeTop(p, shared, slice, values, row, maximum, logOfSum);
            }
            if constexpr (VT_DRAW_LOGPROBS != 0) {
                const float temperature = p.parameters[row].temperature;
                const float logOfTempered =
                    tempers(temperature) ? temperedLogSum(shared, slice, values, maximum, temperature) : 0.0F;
                if (threadIdx.x == 0) {
                    kept = {maximum, logOfTempered, __int_as_float(0x7F800000)};
                }
            }
        }
        Blocks::sync();
        const int id = choose(p, shared, slice, row, logits, values, key, kept);
        if (Blocks::rank() == 0 && threadIdx.x == 0) {
            p.ids[row] = id;
            if (p.logprobs != nullptr) {
                p.logprobs[row] = toFloat(logits[id]) - logOfSum;
            }
        }
        if constexpr (VT_DRAW_LOGPROBS != 0) {
            // The block that has the token.
            if (threadIdx.x == 0 && id >= slice.begin && id < slice.end) {
                const float raw = toFloat(logits[id]);
                const float logprob = raw - logOfSum;
                const float broken = logprob - logprob; // 0 or NaN
                const float temperature = p.parameters[row].temperature;
                const float below = __fmul_rn(__fsub_rn(raw, kept.best), 1.0F / temperature);
                const bool drawn = kept.logOfMass < __int_as_float(0x7F800000);
                p.drawLogprobs[2 * row] = broken + (drawn ? values[id] - kept.logOfMass : 0.0F);
                p.drawLogprobs[2 * row + 1] = broken + (tempers(temperature) ? below - kept.logOfTempered : logprob);
            }
        }
        Blocks::sync();
    }
}

} // namespace vt
