// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Gate and up products of up to 16 rows with norm and activation; see weight_stream.cuh. A unit is four gate rows and
// the four up rows of the same numbers. VT_FORM is RmsNormOrder, or 3 for no norm.

#include "device/abi/dense_mlp.h"
#include "device/linear/weight_stream.cuh"
#include "device/rowwise/activation.cuh"

namespace vt {

using DenseMlpParams = vitrine::kernels::abi::DenseMlpParams;

class GateUpWork {
public:
    static constexpr int kPairs = stream::kUnit / 2;

    __device__ __forceinline__ explicit GateUpWork(const DenseMlpParams& p) : p_(p) {
        const i64 width = p.width;
        first_ = static_cast<int>(width * blockIdx.x / gridDim.x);
        last_ = static_cast<int>(width * (blockIdx.x + 1) / gridDim.x);
    }
    __device__ __forceinline__ int units() const { return ceilDiv(last_ - first_, kPairs); }
    __device__ __forceinline__ const u8* row(int unit, int r) const {
        const int at = first_ + unit * kPairs + r % kPairs;
        return at < last_ ? static_cast<const u8*>(p_.weight[r / kPairs]) + static_cast<i64>(at) * VT_DIM * 2 : nullptr;
    }
    __device__ __forceinline__ void request(int unit) {
        const int r = static_cast<int>(threadIdx.x) % stream::kUnit;
        const int at = first_ + unit * kPairs + r % kPairs;
        const void* bias = p_.bias[r / kPairs];
        if (bias != nullptr) {
            bias_ = static_cast<const Bias*>(bias)[at < last_ ? at : last_ - 1];
        }
    }
    __device__ __forceinline__ void finish(int unit, int, int token, int r, float sum) const {
        const float mine = p_.bias[r / kPairs] != nullptr ? sum + toFloat(bias_) : sum;
        const float up = __shfl_xor_sync(kAllLanes, mine, kPairs);
        const int at = first_ + unit * kPairs + r;
        if (r < kPairs && at < last_ && token < p_.rows) {
            static_cast<bf16*>(p_.active)[token * p_.activeStride + at] =
                fromFloat<bf16>(gatedActivation<VT_ACTIVATION>(mine, up, p_.alpha, p_.limit));
        }
    }

private:
    using Bias = StorageOf<VT_BIAS_DTYPE>;

    const DenseMlpParams& p_;
    int first_, last_;
    Bias bias_{};
};

extern "C" __global__ void __launch_bounds__(stream::kThreads, 1)
    dense_mlp_gate_up(const __grid_constant__ DenseMlpParams p) {
    extern __shared__ __align__(128) u8 memory[];
    const StridedRows x{p.x, p.xStride};
    stream::run(GateUpWork(p), p.rows, x, p.normWeight, p.eps, memory);
}

} // namespace vt
