// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A few rows of BF16 x into shared memory for kernels that stream weights past them. Every thread takes the same
// 16-byte pieces of a few rows at a time.

#include "device/lib/async.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

/// What an earlier kernel wrote: from the second-level cache.
__device__ __forceinline__ u32x4 loadFresh16(const void* address) {
    u32x4 out;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
                 : "l"(address));
    return out;
}
__device__ __forceinline__ u32x4 loadShared16(u32 address) {
    u32x4 out;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
                 : "r"(address));
    return out;
}

inline constexpr int kMostTogether = 8;

/// Rows of kIn columns, kThreads threads (numbered from 0, whole warps) that load them.
template <int kIn, int kThreads> struct SharedRows {
    static_assert(kIn % 8 == 0, "whole pieces");
    static constexpr int kPieces = kIn / 8;
    static constexpr int kPerThread = ceilDiv(kPieces, kThreads);
    static constexpr int kTogether = kPerThread > kMostTogether ? 1 : kMostTogether / kPerThread; ///< rows at a time
    static constexpr int kWarps = kThreads / 32;
    /// Of a row, bytes: 64 more than a multiple of 128, so that lanes of two rows lie in different banks.
    static constexpr int kStride = (kIn * 2 + 63) / 128 * 128 + 64;

    /// `address(row)` is a row in global memory, 16-byte aligned. For the rows of a round `rows.begin(row, pieces)`
    /// sees this thread's pieces (zeros after a row's end), then `rows.meet()` may wait for the other threads; after
    /// that come `rows.open(row)` and `rows.take(i, piece)`: what to store of its i-th piece. All are called by all
    /// threads. The caller makes the barrier after it.
    template <class Address, class Take>
    __device__ __forceinline__ static void load(int count, const Address& address, Take&& rows, u32 to) {
        const int thread = static_cast<int>(threadIdx.x);
        for (int first = 0; first < count; first += kTogether) {
            u32x4 pieces[kTogether][kPerThread];
#pragma unroll
            for (int r = 0; r < kTogether; ++r) {
                const bf16* row = first + r < count ? address(first + r) : nullptr;
#pragma unroll
                for (int i = 0; i < kPerThread; ++i) {
                    const int at = i * kThreads + thread;
                    const bool inside = row != nullptr && at < kPieces;
                    pieces[r][i] = inside ? loadFresh16(row + at * 8) : u32x4{0, 0, 0, 0};
                }
            }
#pragma unroll
            for (int r = 0; r < kTogether; ++r) {
                if (first + r < count) {
                    rows.begin(first + r, pieces[r]);
                }
            }
            rows.meet();
#pragma unroll
            for (int r = 0; r < kTogether; ++r) {
                if (first + r < count) {
                    rows.open(first + r);
#pragma unroll
                    for (int i = 0; i < kPerThread; ++i) {
                        const int at = i * kThreads + thread;
                        const u32x4 v = rows.take(i, pieces[r][i]);
                        if (at < kPieces) {
                            asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(
                                             to + static_cast<u32>((first + r) * kStride + at * 16)),
                                         "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                                         : "memory");
                        }
                    }
                }
            }
        }
    }
};

/// Rows as they are.
struct PlainRows {
    template <int kCount> __device__ __forceinline__ void begin(int, const u32x4 (&)[kCount]) const {}
    __device__ __forceinline__ void meet() const {}
    __device__ __forceinline__ void open(int) const {}
    __device__ __forceinline__ u32x4 take(int, const u32x4& v) const { return v; }
};

/// Rows times the weight of an RMSNorm; the sums of squares of each warp's pieces go to squares[row][warp]. The
/// weights are loaded by the constructor, before pdl::wait(). `form` is RmsNormOrder.
template <int form, int kIn, int kThreads, class W> class ScaledRows {
    using S = SharedRows<kIn, kThreads>;

public:
    __device__ __forceinline__ ScaledRows(const W* weight, float* squares) : squares_(squares) {
#pragma unroll
        for (int i = 0; i < S::kPerThread; ++i) {
            const int at = i * kThreads + static_cast<int>(threadIdx.x);
            if (at < S::kPieces) {
#pragma unroll
                for (int word = 0; word < kWords; ++word) {
                    weights_[i][word] = reinterpret_cast<const u32x4*>(weight + at * 8)[word];
                }
            }
        }
    }
    template <int kCount> __device__ __forceinline__ void begin(int row, const u32x4 (&pieces)[kCount]) const {
        float sum = 0;
#pragma unroll
        for (const u32x4& v : pieces) {
            sum += square(v.x) + square(v.y) + square(v.z) + square(v.w);
        }
        sum = warpSum(sum);
        if (threadIdx.x % 32 == 0) {
            squares_[row * S::kWarps + threadIdx.x / 32] = sum;
        }
    }
    __device__ __forceinline__ void meet() const {}
    __device__ __forceinline__ void open(int) const {}
    __device__ __forceinline__ u32x4 take(int i, const u32x4& v) const {
        const W* w = reinterpret_cast<const W*>(weights_[i]);
        return {scaled(v.x, w[0], w[1]), scaled(v.y, w[2], w[3]), scaled(v.z, w[4], w[5]), scaled(v.w, w[6], w[7])};
    }

private:
    static constexpr int kWords = 8 * static_cast<int>(sizeof(W)) / 16;

    __device__ __forceinline__ static float square(u32 pair) {
        return lowBf16(pair) * lowBf16(pair) + highBf16(pair) * highBf16(pair);
    }
    __device__ __forceinline__ static u32 scaled(u32 pair, W w0, W w1) {
        constexpr float kOne = form == 2 ? 1.0F : 0.0F;
        return packBf16(lowBf16(pair) * (kOne + toFloat(w0)), highBf16(pair) * (kOne + toFloat(w1)));
    }

    float* squares_;
    u32x4 weights_[S::kPerThread][kWords];
};

} // namespace vt
