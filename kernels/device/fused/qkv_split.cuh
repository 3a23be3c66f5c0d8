// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Norm, the q, k and v products with bias, RoPE and the cache write of up to 64 tokens in one launch; see
// split_rows.cuh. A tile is chunks of 64 weight rows: 32 of the first half of a head, and the 32 of the second half
// that RoPE pairs with them. VT_FORM is RmsNormOrder, or 3 for no norm.

#include "device/abi/qkv_split.h"
#include "device/attention/kv_view.cuh"
#include "device/linear/split_rows.cuh"
#include "device/rowwise/rope_angles.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace vt {

using QkvSplitParams = vitrine::kernels::abi::QkvSplitParams;

class QkvSplitWork {
public:
    static constexpr int kHalfHead = VT_HEAD_DIM / 2;
    static constexpr int kBox = 32;
    static constexpr int kHeadChunks = kHalfHead / kBox;
    static constexpr int kChunks = split::kColumns / (2 * kBox);
    static constexpr int kOfChunk = kBox / 8; ///< items of 8 pairs
    static constexpr int kItems = kOfChunk * kChunks;
    static_assert(kHalfHead % kBox == 0 && split::kColumns % (2 * kBox) == 0, "whole boxes");

    __device__ __forceinline__ explicit QkvSplitWork(const QkvSplitParams& p)
        : p_(p), first_(static_cast<int>(blockIdx.x) / split::kRanks * kChunks),
          count_(min(kChunks, (p.heads + 2 * p.kvHeads) * kHeadChunks - first_)) {}
    __device__ __forceinline__ u32 bytes() const { return static_cast<u32>(count_ * 2 * kBox * split::kBlock * 2); }
    __device__ __forceinline__ void copy(int column, u32 to, u32 barrier) const {
        constexpr u32 kBoxBytes = kBox * split::kBlock * 2;
        for (int i = 0; i < count_; ++i) {
            const Chunk chunk = chunkOf(first_ + i);
            const void* map = &p_.weightMap[chunk.part];
            copyTile2Once(to + 2 * i * kBoxBytes, map, column, chunk.row, barrier);
            if constexpr (kHalfHead != kBox) { // else a copy brings both
                copyTile2Once(to + (2 * i + 1) * kBoxBytes, map, column, chunk.row + kHalfHead, barrier);
            }
        }
    }

    __device__ __forceinline__ void request(int item) {
        if (item / kOfChunk >= count_) {
            return;
        }
        const Chunk chunk = chunkOf(first_ + item / kOfChunk);
        const int pair = item % kOfChunk * 8 + static_cast<int>(threadIdx.x) % 4 * 2;
        const void* const biases = chunk.part == 0 ? p_.bias[0] : chunk.part == 1 ? p_.bias[1] : p_.bias[2];
        const auto* bias = static_cast<const Bias*>(biases);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            low_[i] = bias != nullptr ? toFloat(bias[chunk.row + pair + i]) : 0.0F;
            high_[i] = bias != nullptr ? toFloat(bias[chunk.row + pair + i + kHalfHead]) : 0.0F;
            const int token = min(split::rowOf(i), p_.tokens - 1);
            const int position = p_.positions[token];
            place_[i] = {-1, 0};
            if (chunk.part > 0 && p_.writeCache != 0) {
                const KvSequence sequence(p_.cache, p_.sequence[token]);
                if (position >= sequence.first() && position < sequence.end()) {
                    place_[i] = sequence.place(position);
                }
            }
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                if (chunk.part < 2) {
                    angle_[i][j] = ropeAngle<bf16>(position, p_.inverseFrequency[chunk.row % VT_HEAD_DIM + pair + j],
                                                   p_.ropeScale);
                }
            }
        }
    }
    __device__ __forceinline__ void finish(int item, const split::Finished& finished) const {
        if (item / kOfChunk >= count_) {
            return;
        }
        const Chunk chunk = chunkOf(first_ + item / kOfChunk);
        const int row = chunk.row + item % kOfChunk * 8 + static_cast<int>(threadIdx.x) % 4 * 2;
        const split::Sums low = finished.at(2 * item - item % kOfChunk);
        const split::Sums high = finished.at(2 * item - item % kOfChunk + kOfChunk);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int token = split::rowOf(i);
            if (token >= p_.tokens) {
                continue;
            }
            float first[2], second[2];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float a = rounded<bf16>(low.v[2 * i + j] + low_[j]);
                const float b = rounded<bf16>(high.v[2 * i + j] + high_[j]);
                const CosSin angle = angle_[i][j];
                first[j] = chunk.part < 2 ? a * angle.cosine - b * angle.sine : a;
                second[j] = chunk.part < 2 ? b * angle.cosine + a * angle.sine : b;
            }
            bf16* out = static_cast<bf16*>(p_.out[chunk.part]) + token * p_.outStride[chunk.part] + row;
            storePair(out, first);
            storePair(out + kHalfHead, second);
            if (place_[i].page >= 0) {
                using Cache = StorageOf<VT_CACHE_DTYPE>;
                const bool keys = chunk.part == 1;
                auto* to = static_cast<Cache*>(keys ? p_.cache.keys : p_.cache.values) +
                           place_[i].page * (keys ? p_.cache.keyPageStride : p_.cache.valuePageStride) +
                           static_cast<i64>(place_[i].inPage) * p_.cache.tokenStride + row;
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    to[j] = fromFloat<Cache>(rounded<bf16>(first[j]));
                    to[j + kHalfHead] = fromFloat<Cache>(rounded<bf16>(second[j]));
                }
            }
        }
    }

private:
    using Bias = StorageOf<VT_BIAS_DTYPE>;

    struct Chunk {
        int part; ///< 0 q, 1 k, 2 v
        int row;  ///< of that matrix, the first of the lower box
    };
    __device__ __forceinline__ Chunk chunkOf(int number) const {
        int head = number / kHeadChunks;
        int part = 0;
        if (head >= p_.heads) {
            head -= p_.heads;
            part = head >= p_.kvHeads ? 2 : 1;
            head -= part == 2 ? p_.kvHeads : 0;
        }
        return {part, head * VT_HEAD_DIM + number % kHeadChunks * kBox};
    }
    /// Neighbours, at a multiple of 4 bytes.
    static __device__ __forceinline__ void storePair(bf16* to, const float (&values)[2]) {
        *reinterpret_cast<u32*>(to) = packBf16(values[0], values[1]);
    }

    const QkvSplitParams& p_;
    int first_, count_;            ///< chunks of the tile
    float low_[2]{}, high_[2]{};   ///< biases
    CosSin angle_[2][2]{};         ///< of the lane's tokens and pairs
    KvSequence::Place place_[2]{}; ///< of its tokens
};

extern "C" __global__ void __launch_bounds__(split::kThreads, 1) qkv_split(const __grid_constant__ QkvSplitParams p) {
    extern __shared__ __align__(1024) u8 memory[];
    const StridedRows x{p.x, p.xStride};
    split::run(QkvSplitWork(p), p.tokens, x, p.normWeight, p.eps, memory);
}

} // namespace vt

#endif
