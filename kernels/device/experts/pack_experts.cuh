// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The choices of one layer's router as narrow ids among those of all layers, a thread an id.

#include "device/abi/dtype.h"
#include "device/abi/pack_experts.h"
#include "device/lib/pdl.cuh"
#include "device/lib/types.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

#if VT_OUT_DTYPE == VT_U8
using Id = unsigned char;
#else
using Id = u16;
#endif

} // namespace

extern "C" __global__ void __launch_bounds__(256) pack_experts(const __grid_constant__ abi::PackExpertsParams p) {
    pdl::wait();
    pdl::launchDependents();
    const int pair = static_cast<int>(blockIdx.x) * 256 + static_cast<int>(threadIdx.x);
    if (pair >= p.count) {
        return;
    }
    const int token = pair / p.k;
    Id* out = static_cast<Id*>(p.out) + static_cast<i64>(token) * p.rowIds + p.first;
    out[pair - token * p.k] = static_cast<Id>(p.ids[pair]);
}
