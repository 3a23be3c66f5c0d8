// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the products in float32 arithmetic share: a block of 256 threads makes kRows rows times 64 outputs, thread t the
// kRows / 16 rows from t / 16 * (kRows / 16) on and four outputs from t % 16 * 4 on.

#include "device/lib/types.cuh"

namespace vt::float_tiles {

inline constexpr int kThreads = 256;
inline constexpr int kOutputs = 64;
inline constexpr int kDepth = 16; ///< of the contracted axis at a time

/// Adds the products over `in` values. `x(i, k)` is value k of the i-th row that this thread loads, row t / 16 + 16 i
/// of the block; `weight(out, k)` of an output of the block. Both are asked for inside of the axis only, and give 0 for
/// rows and outputs that do not exist. Neighbours in memory go to neighbouring threads, so transposed weights are
/// loaded otherwise.
template <int kRows, bool kTransposed, class X, class Weight>
__device__ __forceinline__ void multiply(int in, const X& x, const Weight& weight, float (&sums)[kRows / 16][4]) {
    __shared__ float xs[kDepth][kRows + 4];
    __shared__ float ws[kDepth][kOutputs + 4];
    const int thread = static_cast<int>(threadIdx.x);
    for (int begin = 0; begin < in; begin += kDepth) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kRows / 16; ++i) {
            const int k = thread % 16;
            xs[k][thread / 16 + 16 * i] = begin + k < in ? x(i, begin + k) : 0;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int k = kTransposed ? thread / 64 + 4 * i : thread % 16;
            const int out = kTransposed ? thread % 64 : thread / 16 + 16 * i;
            ws[k][out] = begin + k < in ? weight(out, begin + k) : 0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
#pragma unroll
            for (int row = 0; row < kRows / 16; ++row) {
#pragma unroll
                for (int out = 0; out < 4; ++out) {
                    sums[row][out] =
                        fmaf(xs[k][thread / 16 * (kRows / 16) + row], ws[k][thread % 16 * 4 + out], sums[row][out]);
                }
            }
        }
    }
}

} // namespace vt::float_tiles
