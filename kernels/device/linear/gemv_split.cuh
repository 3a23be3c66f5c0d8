// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// BF16 x of up to 64 rows times BF16 weights, the contracted axis split between the blocks of a cluster; see
// split_rows.cuh. VT_FORM is RmsNormOrder, or 3 for no norm.

#include "device/abi/gemv_split.h"
#include "device/linear/split_rows.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace vt {

using GemvSplitParams = vitrine::kernels::abi::GemvSplitParams;

class GemvSplitWork {
public:
    static constexpr int kItems = split::kColumns / 8;

    __device__ __forceinline__ explicit GemvSplitWork(const GemvSplitParams& p)
        : p_(p), first_(static_cast<int>(blockIdx.x) / split::kRanks * split::kColumns) {}
    __device__ __forceinline__ u32 bytes() const { return split::kStageBytes; } // rows after the end come as zeros
    __device__ __forceinline__ void copy(int column, u32 to, u32 barrier) const {
        copyTile2Once(to, &p_.weightMap, column, first_, barrier);
    }

    __device__ __forceinline__ void request(int item) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int column = min(columnOf(item) + i, p_.outFeatures - 1);
            bias_[i] = p_.bias != nullptr ? toFloat(static_cast<const Bias*>(p_.bias)[column]) : 0.0F;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                if (p_.residual != nullptr) {
                    const i64 row = min(split::rowOf(half), p_.rows - 1);
                    residual_[2 * half + i] =
                        toFloat(static_cast<const Residual*>(p_.residual)[row * p_.residualStride + column]);
                }
            }
        }
    }
    __device__ __forceinline__ void finish(int item, const split::Finished& finished) const {
        const split::Sums sums = finished.at(item);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = split::rowOf(i / 2);
            const int column = columnOf(item) + i % 2;
            if (row < p_.rows && column < p_.outFeatures) {
                float value = p_.bias != nullptr ? sums.v[i] + bias_[i % 2] : sums.v[i];
                if (p_.softCap > 0) {
                    value = p_.softCap * tanhf(value / p_.softCap);
                }
                value = p_.residual != nullptr ? value + residual_[i] : value;
                using Out = StorageOf<VT_OUT_DTYPE>;
                static_cast<Out*>(p_.out)[row * p_.outStride + column] = fromFloat<Out>(value);
            }
        }
    }

private:
    using Bias = StorageOf<VT_BIAS_DTYPE>;
    using Residual = StorageOf<VT_RESIDUAL_DTYPE>;

    __device__ __forceinline__ int columnOf(int item) const {
        return first_ + item * 8 + static_cast<int>(threadIdx.x) % 4 * 2;
    }

    const GemvSplitParams& p_;
    int first_; ///< column of the tile
    float bias_[2]{};
    float residual_[4]{};
};

extern "C" __global__ void __launch_bounds__(split::kThreads, 1) gemv_split(const __grid_constant__ GemvSplitParams p) {
    extern __shared__ __align__(1024) u8 memory[];
    const StridedRows x{p.x, p.xStride};
    const auto row = [&](int token) { return x(p.gather == nullptr ? token : p.gather[token]); };
    split::run(GemvSplitWork(p), p.rows, row, p.normWeight, p.eps, memory);
}

} // namespace vt

#endif
