// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The probability of each expert and the choice as zeros and ones, a warp a token.

#include "device/abi/router_shares.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

using Logit = StorageOf<VT_X_DTYPE>;

} // namespace

extern "C" __global__ void __launch_bounds__(128) router_shares(const __grid_constant__ abi::RouterSharesParams p) {
    pdl::wait();
    pdl::launchDependents();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int token = static_cast<int>(blockIdx.x) * 4 + static_cast<int>(threadIdx.x) / 32;
    if (token >= p.tokens) {
        return;
    }
    const Logit* logits = static_cast<const Logit*>(p.logits) + token * p.logitsStride;
    const int* ids = p.ids + static_cast<i64>(token) * p.k;
    float most = __uint_as_float(0xFF800000U); // -infinity
    for (int e = lane; e < p.experts; e += 32) {
        most = fmaxf(most, toFloat(logits[e]));
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, offset));
    }
    float all = 0;
    for (int e = lane; e < p.experts; e += 32) {
        all += expf(toFloat(logits[e]) - most);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        all += __shfl_xor_sync(kAllLanes, all, offset);
    }
    float* out = p.out + static_cast<i64>(token) * 2 * p.experts;
    for (int e = lane; e < p.experts; e += 32) {
        float chosen = 0;
        for (int j = 0; j < p.k; ++j) {
            chosen = ids[j] == e ? 1.0F : chosen;
        }
        out[e] = expf(toFloat(logits[e]) - most) / all;
        out[p.experts + e] = chosen;
    }
}
