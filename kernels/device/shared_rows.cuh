// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A few rows of BF16 x into shared memory for kernels that stream weights past them. Every thread takes the same 16-byte
// pieces of a few rows at a time; a quantity of each row (sum of squares, largest value) is reduced over the block before
// the pieces are stored.

#include "device/async.cuh"
#include "device/vector.cuh"
#include "device/warp.cuh"

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

/// Rows of kIn columns, kThreads threads (numbered from 0, whole warps) that load them.
template <int kIn, int kThreads> struct SharedRows {
    static_assert(kIn % 8 == 0, "whole pieces");
    static constexpr int kPieces = kIn / 8;
    static constexpr int kPerThread = ceilDiv(kPieces, kThreads);
    static constexpr int kTogether = kPerThread > 2 ? 1 : 4 / kPerThread; ///< rows at a time
    static constexpr int kWarps = kThreads / 32;
    /// Of a row, bytes: 64 more than a multiple of 128, so that lanes of two rows lie in different banks.
    static constexpr int kStride = (kIn * 2 + 63) / 128 * 128 + 64;

    struct Scratch {
        float parts[2][kTogether][kWarps];
    };

    /// `address(row)` is a row in global memory, 16-byte aligned; `rows.measure(most, piece)` takes a piece into a row's
    /// quantity, `rows.join` joins two; `rows.store(row, quantity, at, piece)` is what to store of piece `at` (and is called
    /// for every piece of a row by some thread). Barrier 1 counts the threads; the last one is the caller's.
    template <class Address, class Rows>
    __device__ __forceinline__ static void load(int count, const Address& address, Rows& rows, Scratch& scratch, u32 to) {
        const int thread = static_cast<int>(threadIdx.x);
        int turn = 0;
        for (int first = 0; first < count; first += kTogether, turn ^= 1) {
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
            if constexpr (Rows::kMeasures) {
#pragma unroll
                for (int r = 0; r < kTogether; ++r) {
                    float quantity = 0;
#pragma unroll
                    for (int i = 0; i < kPerThread; ++i) {
                        quantity = rows.measure(quantity, pieces[r][i]);
                    }
#pragma unroll
                    for (int offset = 16; offset > 0; offset /= 2) {
                        quantity = rows.join(quantity, __shfl_xor_sync(kAllLanes, quantity, offset));
                    }
                    if (thread % 32 == 0) {
                        scratch.parts[turn][r][thread / 32] = quantity;
                    }
                }
                namedBarrier(1, kThreads);
            }
#pragma unroll
            for (int r = 0; r < kTogether; ++r) {
                float quantity = 0;
                if constexpr (Rows::kMeasures) {
#pragma unroll
                    for (int i = 0; i < kWarps; ++i) {
                        quantity = rows.join(quantity, scratch.parts[turn][r][i]);
                    }
                }
#pragma unroll
                for (int i = 0; i < kPerThread; ++i) {
                    const int at = i * kThreads + thread;
                    if (first + r < count && at < kPieces) {
                        const u32x4 v = rows.store(first + r, quantity, at, i, pieces[r][i]);
                        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(
                                         to + static_cast<u32>((first + r) * kStride + at * 16)),
                                     "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                                     : "memory");
                    }
                }
            }
        }
    }
};

/// Rows as they are.
struct PlainRows {
    static constexpr bool kMeasures = false;
    __device__ __forceinline__ float measure(float sum, const u32x4&) const { return sum; }
    __device__ __forceinline__ float join(float a, float) const { return a; }
    __device__ __forceinline__ u32x4 store(int, float, int, int, const u32x4& v) const { return v; }
};

/// RMSNorm with the rounding of the composed form; `form` is RmsNormForm. Weights are taken before pdl::wait().
template <int form, int kIn, int kThreads, class W> class NormedRows {
    using S = SharedRows<kIn, kThreads>;

public:
    static constexpr bool kMeasures = true;

    __device__ __forceinline__ NormedRows(const W* weight, float eps) : eps_(eps) {
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
    __device__ __forceinline__ float measure(float sum, const u32x4& v) const {
        return sum + square(v.x) + square(v.y) + square(v.z) + square(v.w);
    }
    __device__ __forceinline__ float join(float a, float b) const { return a + b; }
    __device__ __forceinline__ u32x4 store(int, float sum, int, int i, const u32x4& v) const {
        const float inverse = 1.0F / sqrtf(sum / static_cast<float>(kIn) + eps_);
        const W* w = reinterpret_cast<const W*>(weights_[i]);
        return {scaled(v.x, inverse, w[0], w[1]), scaled(v.y, inverse, w[2], w[3]), scaled(v.z, inverse, w[4], w[5]),
                scaled(v.w, inverse, w[6], w[7])};
    }

private:
    static constexpr int kWords = 8 * static_cast<int>(sizeof(W)) / 16;

    __device__ __forceinline__ static float square(u32 pair) {
        return lowBf16(pair) * lowBf16(pair) + highBf16(pair) * highBf16(pair);
    }
    __device__ __forceinline__ static u32 scaled(u32 pair, float inverse, W w0, W w1) {
        float low = lowBf16(pair) * inverse;
        float high = highBf16(pair) * inverse;
        if constexpr (form == 0) {
            low = rounded<bf16>(low);
            high = rounded<bf16>(high);
        }
        constexpr float kOne = form == 2 ? 1.0F : 0.0F;
        return packBf16(low * (kOne + toFloat(w0)), high * (kOne + toFloat(w1)));
    }

    float eps_;
    u32x4 weights_[S::kPerThread][kWords];
};

} // namespace vt
