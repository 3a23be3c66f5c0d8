// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Norm, the q, k and v products with bias, RoPE and the cache write of up to 16 tokens in one launch; see
// weight_stream.cuh. The rows of the three matrices are taken in pairs (i, i + headDim / 2) of a head; a unit is four
// pairs. VT_FORM is RmsNormOrder, or 3 for no norm.

#include "device/abi/qkv_project.h"
#include "device/attention/kv_view.cuh"
#include "device/linear/weight_stream.cuh"
#include "device/rowwise/rope_angles.cuh"

namespace vt {

using QkvProjectParams = vitrine::kernels::abi::QkvProjectParams;

class QkvWork {
public:
    static constexpr int kPairs = stream::kUnit / 2;
    static constexpr int kHalfHead = VT_HEAD_DIM / 2;

    __device__ __forceinline__ explicit QkvWork(const QkvProjectParams& p) : p_(p) {
        const i64 pairs = static_cast<i64>(p.heads + 2 * p.kvHeads) * kHalfHead;
        first_ = static_cast<int>(pairs * blockIdx.x / gridDim.x);
        last_ = static_cast<int>(pairs * (blockIdx.x + 1) / gridDim.x);
    }
    __device__ __forceinline__ int units() const { return ceilDiv(last_ - first_, kPairs); }
    __device__ __forceinline__ const u8* row(int unit, int r) const {
        const Row at = rowOf(unit, r);
        return at.part < 0 ? nullptr
                           : static_cast<const u8*>(p_.weight[at.part]) + static_cast<i64>(at.row) * VT_DIM * 2;
    }
    __device__ __forceinline__ void request(int unit) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        Row at = rowOf(unit, lane % stream::kUnit);
        at = at.part < 0 ? Row{0, 0, 0} : at;
        const void* bias = p_.bias[at.part];
        if (bias != nullptr) {
            bias_ = static_cast<const Bias*>(bias)[at.row];
        }
        frequency_ = p_.inverseFrequency[at.pair];
#pragma unroll
        for (int i = 0; i < stream::kOutputs; ++i) {
            const int token = (i * 32 + lane) / stream::kUnit;
            position_[i] = p_.positions[token < p_.tokens ? token : p_.tokens - 1];
        }
        if (!found_ && p_.writeCache != 0 && last_ > p_.heads * kHalfHead) {
            found_ = true;
            findSlots();
        }
    }
    __device__ __forceinline__ void finish(int unit, int i, int token, int r, float sum) const {
        const Row at = rowOf(unit, r);
        const bool biased = at.part >= 0 && p_.bias[at.part] != nullptr;
        const float mine = rounded<bf16>(biased ? sum + toFloat(bias_) : sum);
        const float other = __shfl_xor_sync(kAllLanes, mine, kPairs);
        if (at.part < 0 || token >= p_.tokens) {
            return;
        }
        float result = mine;
        if (at.part < 2) {
            const CosSin angle = ropeAngle<bf16>(position_[i], frequency_, p_.ropeScale);
            result = mine * angle.cosine + (r < kPairs ? -other : other) * angle.sine;
        }
        const bf16 value = fromFloat<bf16>(result);
        static_cast<bf16*>(p_.out[at.part])[token * p_.outStride[at.part] + at.row] = value;
        if (at.part > 0 && p_.writeCache != 0 && place_[i].page >= 0) {
            using Cache = StorageOf<VT_CACHE_DTYPE>;
            const i64 page = place_[i].page * (at.part == 1 ? p_.cache.keyPageStride : p_.cache.valuePageStride);
            const i64 inPage = static_cast<i64>(place_[i].inPage) * p_.cache.tokenStride;
            static_cast<Cache*>(at.part == 1 ? p_.cache.keys : p_.cache.values)[page + inPage + at.row] =
                fromFloat<Cache>(toFloat(value));
        }
    }

private:
    using Bias = StorageOf<VT_BIAS_DTYPE>;

    /// Where the keys and values of the lane's tokens go in the cache. Blocks that have keys or values only.
    __device__ __forceinline__ void findSlots() {
#pragma unroll
        for (int i = 0; i < stream::kOutputs; ++i) {
            const int token = (i * 32 + static_cast<int>(threadIdx.x) % 32) / stream::kUnit;
            place_[i] = {-1, 0};
            if (token < p_.tokens) {
                const KvSequence sequence(p_.cache, p_.sequence[token]);
                if (position_[i] >= sequence.first() && position_[i] < sequence.end()) {
                    place_[i] = sequence.place(position_[i]);
                }
            }
        }
    }
    struct Row {
        int part; ///< 0 q, 1 k, 2 v, -1 after the end
        int row;  ///< of that matrix
        int pair; ///< in its head
    };
    __device__ __forceinline__ Row rowOf(int unit, int r) const {
        const int at = first_ + unit * kPairs + r % kPairs;
        if (at >= last_) {
            return {-1, 0, 0};
        }
        int head = at / kHalfHead;
        const int pair = at % kHalfHead;
        int part = 0;
        if (head >= p_.heads) {
            head -= p_.heads;
            part = head >= p_.kvHeads ? 2 : 1;
            head -= part == 2 ? p_.kvHeads : 0;
        }
        return {part, head * VT_HEAD_DIM + pair + r / kPairs * kHalfHead, pair};
    }

    const QkvProjectParams& p_;
    int first_, last_;
    Bias bias_{};
    float frequency_ = 0;
    int position_[stream::kOutputs]{};
    KvSequence::Place place_[stream::kOutputs]; ///< of the lane's tokens; found once
    bool found_ = false;
};

extern "C" __global__ void __launch_bounds__(stream::kThreads, 1)
    qkv_project(const __grid_constant__ QkvProjectParams p) {
    extern __shared__ __align__(128) u8 memory[];
    const StridedRows x{p.x, p.xStride};
    stream::run(QkvWork(p), p.tokens, x, p.normWeight, p.eps, memory);
}

} // namespace vt
