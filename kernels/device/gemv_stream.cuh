// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// BF16 x of up to 16 rows times BF16 weights through the weight stream; see weight_stream.cuh. VT_FORM is RmsNormForm, or
// 3 for no norm.

#include "device/abi/gemv.h"
#include "device/weight_stream.cuh"

namespace vt {

using GemvParams = vitrine::kernels::abi::GemvParams;

class GemvWork {
public:
    __device__ __forceinline__ explicit GemvWork(const GemvParams& p) : p_(p) {
        const i64 rows = p.outFeatures;
        first_ = static_cast<int>(rows * blockIdx.x / gridDim.x);
        last_ = static_cast<int>(rows * (blockIdx.x + 1) / gridDim.x);
    }
    __device__ __forceinline__ int units() const { return ceilDiv(last_ - first_, stream::kUnit); }
    __device__ __forceinline__ const u8* row(int unit, int r) const {
        const int at = first_ + unit * stream::kUnit + r;
        return at < last_ ? static_cast<const u8*>(p_.weight) + at * p_.weightStride * 2 : nullptr;
    }
    __device__ __forceinline__ void prepare(int unit, int i, int token, int r) {
        const int at = first_ + unit * stream::kUnit + r;
        add_[i] = 0;
        residual_[i] = 0;
        if (at < last_ && token < p_.rows) {
            if (p_.bias != nullptr) {
                add_[i] = toFloat(static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p_.bias)[at]);
            }
            if (p_.residual != nullptr) {
                residual_[i] =
                    toFloat(static_cast<const StorageOf<VT_RESIDUAL_DTYPE>*>(p_.residual)[token * p_.residualStride + at]);
            }
        }
    }
    __device__ __forceinline__ void finish(int unit, int i, int token, int r, float sum) const {
        const int at = first_ + unit * stream::kUnit + r;
        if (at < last_ && token < p_.rows) {
            float value = sum + add_[i];
            if (p_.softCap > 0) {
                value = p_.softCap * tanhf(value / p_.softCap);
            }
            using Out = StorageOf<VT_OUT_DTYPE>;
            static_cast<Out*>(p_.out)[token * p_.outStride + at] = fromFloat<Out>(value + residual_[i]);
        }
    }

private:
    const GemvParams& p_;
    int first_, last_;
    float add_[stream::kOutputs], residual_[stream::kOutputs];
};

extern "C" __global__ void __launch_bounds__(stream::kThreads, VT_BLOCKS)
    gemv_stream(const __grid_constant__ GemvParams p) {
    extern __shared__ __align__(128) u8 memory[];
    __shared__ stream::Fixed fixed;
    GemvWork work(p);
    stream::beginRing(fixed);
    const auto* x = static_cast<const bf16*>(p.x);
    const auto row = [&](int token) { return x + (p.gather == nullptr ? token : p.gather[token]) * p.xStride; };
    stream::run(work, p.rows, row, p.normWeight, p.eps, fixed, memory, [] {});
}

} // namespace vt
