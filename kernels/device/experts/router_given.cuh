// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Given experts in place of the router's choice, a warp a token: their weights are made of their logits as router_topk
// and router_groups make those of a choice, sums in the same order, so that the router's own experts keep their
// weights.

#include "device/abi/router_given.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

namespace router_given_rows {

using Params = vitrine::kernels::abi::RouterGivenParams;
using Logit = StorageOf<VT_X_DTYPE>;

/// What all probabilities are relative to and divided by.
struct Whole {
    float most, all;
};

/// How many given ids are none of the chosen.
__device__ __forceinline__ float countOthers(const int* given, const int* ids, int k) {
    float others = 0;
    for (int j = static_cast<int>(threadIdx.x) % 32; j < k; j += 32) {
        float other = 1;
        for (int i = 0; i < k; ++i) {
            other = ids[i] == given[j] ? 0.0F : other;
        }
        others += other;
    }
    return warpSum(others);
}

__device__ __forceinline__ float mostOfGiven(const Logit* logits, const int* given, int k) {
    float most = -__int_as_float(0x7F800000);
    for (int j = 0; j < k; ++j) {
        most = fmaxf(most, toFloat(logits[given[j]]));
    }
    return most;
}

__device__ __forceinline__ Whole wholeSoftmax(const Logit* logits, int experts) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float most = -__int_as_float(0x7F800000);
    for (int e = lane; e < experts; e += 32) {
        most = fmaxf(most, toFloat(logits[e]));
    }
    most = warpMax(most);
    float all = 0;
    for (int e = lane; e < experts; e += 32) {
        all += expf(toFloat(logits[e]) - most);
    }
    return {most, warpSum(all)};
}

/// An expert's weight before it is divided by a sum.
__device__ __forceinline__ float shareOf(const Params& p, float logit, const Whole& whole) {
    if (p.order == 2) {
        return 1.0F / (1.0F + expf(-logit));
    }
    const float weight = expf(logit - whole.most);
    return p.order == 1 ? weight / whole.all : weight;
}

__device__ __forceinline__ float sumOfGiven(const Params& p, const Logit* logits, const int* given,
                                            const Whole& whole) {
    float sum = 0;
    for (int j = 0; j < p.k; ++j) {
        sum += shareOf(p, toFloat(logits[given[j]]), whole);
    }
    return sum;
}

} // namespace router_given_rows

extern "C" __global__ void __launch_bounds__(128)
    router_given(const __grid_constant__ vitrine::kernels::abi::RouterGivenParams p) {
    using namespace router_given_rows;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const i64 token = static_cast<i64>(blockIdx.x) * 4 + threadIdx.x / 32;
    pdl::wait();
    pdl::launchDependents();
    if (token >= p.tokens) {
        return;
    }
    const int* given = p.given + token * p.k;
    const bool own = given[0] < 0;
    int* ids = p.ids + token * p.k;
    if (p.differing != nullptr) {
        const float others = own ? 0.0F : countOthers(given, ids, p.k);
        if (lane == 0) {
            p.differing[token] = others;
        }
    }
    if (own) {
        return;
    }
    const Logit* logits = static_cast<const Logit*>(p.logits) + token * p.stride;
    Whole whole = {0.0F, 1.0F};
    if (p.order == 0) {
        whole.most = mostOfGiven(logits, given, p.k);
    } else if (p.order == 1) {
        whole = wholeSoftmax(logits, p.experts);
    }
    float sum = sumOfGiven(p, logits, given, whole);
    if (p.order == 1 && p.normalize != 0 && sum < 1e-20F) { // far less probable than the best ones
        whole = {mostOfGiven(logits, given, p.k), 1.0F};
        sum = sumOfGiven(p, logits, given, whole);
    }
    const bool divides = p.order == 0 || p.normalize != 0;
    const float scale = p.scale / (divides ? sum + 1e-20F : 1.0F); // of a sigmoid's weights
    __syncwarp();                                                  // the ids have been read
    float* weights = p.weights + token * p.k;
    for (int j = lane; j < p.k; j += 32) {
        const float share = shareOf(p, toFloat(logits[given[j]]), whole);
        ids[j] = given[j];
        if (p.order == 2) {
            weights[j] = share * scale;
        } else {
            weights[j] = divides ? share / sum : share;
        }
    }
}

} // namespace vt
