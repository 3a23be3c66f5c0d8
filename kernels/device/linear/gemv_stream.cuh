// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// BF16 x of up to 16 rows times BF16 weights through the weight stream; see weight_stream.cuh. VT_FORM is
// RmsNormOrder, or 3 for no norm.

#include "device/abi/gemv.h"
#include "device/linear/weight_stream.cuh"

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
    __device__ __forceinline__ void request(int unit) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int at = first_ + unit * stream::kUnit + lane % stream::kUnit;
        const int inside = at < last_ ? at : last_ - 1;
        if (p_.bias != nullptr) {
            bias_ = static_cast<const Bias*>(p_.bias)[inside];
        }
        if (p_.residual != nullptr) {
#pragma unroll
            for (int i = 0; i < stream::kOutputs; ++i) {
                const int token = (i * 32 + lane) / stream::kUnit;
                const i64 row = token < p_.rows ? token : p_.rows - 1;
                residual_[i] = static_cast<const Residual*>(p_.residual)[row * p_.residualStride + inside];
            }
        }
    }
    __device__ __forceinline__ void finish(int unit, int i, int token, int r, float sum) const {
        const int at = first_ + unit * stream::kUnit + r;
        if (at < last_ && token < p_.rows) {
            float value = p_.bias != nullptr ? sum + toFloat(bias_) : sum;
            if (p_.softCap > 0) {
                value = p_.softCap * tanhf(value / p_.softCap);
            }
            value = p_.residual != nullptr ? value + toFloat(residual_[i]) : value;
            using Out = StorageOf<VT_OUT_DTYPE>;
            static_cast<Out*>(p_.out)[token * p_.outStride + at] = fromFloat<Out>(value);
        }
    }

private:
    using Bias = StorageOf<VT_BIAS_DTYPE>;
    using Residual = StorageOf<VT_RESIDUAL_DTYPE>;

    const GemvParams& p_;
    int first_, last_;
    Bias bias_{};
    Residual residual_[stream::kOutputs]{};
};

extern "C" __global__ void __launch_bounds__(stream::kThreads, 1) gemv_stream(const __grid_constant__ GemvParams p) {
    extern __shared__ __align__(128) u8 memory[];
    const StridedRows x{p.x, p.xStride};
    const auto row = [&](int token) { return x(p.gather == nullptr ? token : p.gather[token]); };
    stream::run(GemvWork(p), p.rows, row, p.normWeight, p.eps, memory);
}

} // namespace vt
