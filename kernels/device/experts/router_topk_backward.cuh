// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The gradient of the router's logits, a warp a token. With p the softmax over all experts, g the gradient of p and a
// that of the chosen experts' probabilities: p (g + a - sum p (g + a)). Where the softmax is over the chosen logits
// only, its gradient is added to theirs. The chosen may be given ones, which need not be the largest.

#include "device/abi/grouped_matmul.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

using Logit = StorageOf<VT_X_DTYPE>;
using Result = StorageOf<VT_OUT_DTYPE>;

__device__ __forceinline__ float sumOf(float value) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_xor_sync(kAllLanes, value, offset);
    }
    return value;
}

} // namespace

extern "C" __global__ void __launch_bounds__(128)
    router_topk_backward(const __grid_constant__ abi::RouterTopKBackwardParams p) {
    pdl::wait();
    pdl::launchDependents();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int token = static_cast<int>(blockIdx.x) * 4 + static_cast<int>(threadIdx.x) / 32;
    if (token >= p.tokens) {
        return;
    }
    const Logit* logits = static_cast<const Logit*>(p.logits) + token * p.logitsStride;
    const int* ids = p.ids + static_cast<i64>(token) * p.k;
    const float* byWeight = p.gradWeights + static_cast<i64>(token) * p.k;
    float most = __uint_as_float(0xFF800000U); // -infinity
    for (int e = lane; e < p.experts; e += 32) {
        most = fmaxf(most, toFloat(logits[e]));
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, offset));
    }
    float all = 0;
    float mean = 0; // of g
    for (int e = lane; e < p.experts; e += 32) {
        const float weight = expf(toFloat(logits[e]) - most);
        all += weight;
        mean += p.gradProbabilities == nullptr ? 0.0F : weight * p.gradProbabilities[e];
    }
    all = sumOf(all);
    mean = sumOf(mean) / all;
    // Of the chosen: every lane computes the same few numbers.
    float chosen = 0; // sum of their weights, before they are divided by `all`
    float chosenMean = 0;
    for (int j = 0; j < p.k; ++j) {
        const float weight = expf(toFloat(logits[ids[j]]) - most);
        chosen += weight;
        chosenMean += weight * byWeight[j];
    }
    const bool overChosen = p.topKFirst != 0 || p.normalize != 0;
    float top = most;                    // what the chosen weights are relative to
    if (overChosen && chosen < 1e-20F) { // given experts, far less probable than the best ones
        top = __uint_as_float(0xFF800000U);
        for (int j = 0; j < p.k; ++j) {
            top = fmaxf(top, toFloat(logits[ids[j]]));
        }
        chosen = 0;
        chosenMean = 0;
        for (int j = 0; j < p.k; ++j) {
            const float weight = expf(toFloat(logits[ids[j]]) - top);
            chosen += weight;
            chosenMean += weight * byWeight[j];
        }
    }
    // With a softmax over the chosen, or normalised weights, both are the same function of the chosen logits.
    const float chosenAverage = overChosen ? chosenMean / chosen : 0.0F;
    if (!overChosen) {
        mean += chosenMean / all;
    }
    Result* out = static_cast<Result*>(p.gradLogits) + token * p.gradStride;
    for (int e = lane; e < p.experts; e += 32) {
        const float weight = expf(toFloat(logits[e]) - most);
        float gradient = p.gradProbabilities == nullptr ? 0.0F : p.gradProbabilities[e];
        float own = 0;
        for (int j = 0; j < p.k; ++j) {
            if (ids[j] == e) {
                const float mine = expf(toFloat(logits[e]) - top);
                own = overChosen ? mine / chosen * (byWeight[j] - chosenAverage) : 0.0F;
                gradient += overChosen ? 0.0F : byWeight[j];
            }
        }
        out[e] = fromFloat<Result>(weight / all * (gradient - mean) + own);
    }
}
