// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What flex_attention_backward_hopper.cuh does to the elements of a tile: from scores and dP to weights and gradients
// of scores, both transposed (keys x queries).

#include "device/attention/flex_attention_backward_work.cuh"

namespace vt {

namespace flex {

/// Queries whose scores are made at a time: sums of captured tensors' gradients take registers.
inline constexpr int kSlice = kDim == 64 && VT_CAPTURE_GRADIENTS != 0 ? 64 : kTile;
using Scores = float[kSlice / 2];

#if VT_PASS == 1
using Terms = LargestTerm;
#else
using Terms = TermSums;
#endif

/// Where a thread's keys lie: the second is 8 further.
struct Keys {
    int batch, head, key;
};

/// What each query needs: two neighbours.
struct Pair {
    float first, second;

    __device__ __forceinline__ static Pair read(u32 from) {
        Pair pair;
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.first), "=f"(pair.second) : "r"(from));
        return pair;
    }
    __device__ __forceinline__ float of(int i) const { return i % 2 == 0 ? first : second; }
};

__device__ __forceinline__ Element elementOf(const Keys& at, const Note& note, int i) {
    const int t = static_cast<int>(threadIdx.x) % 4;
    return {at.batch, at.head, note.begin + i / 4 * 8 + 2 * t + i % 2, at.key + i / 2 % 2 * 8};
}

/// Which elements of a slice take part, a bit for each.
struct Allowed {
    bool tested = false; ///< false: all
    u32 bits[kSlice / 64];

    __device__ __forceinline__ Allowed(const FlexAttentionParams& p, const Keys& at, const Note& note) {
#pragma unroll
        for (u32& word : bits) {
            word = ~0U;
        }
        if (VT_MASK == 1 && note.partial()) {
            tested = true;
            keep([&](const Element& e) { return maskMod(e.batch, e.head, e.query, e.key, p.maskCaptures); }, at, note);
        }
        if (note.nothing() || at.key / kRows * kRows + kRows > p.keys || note.begin + kSlice > p.queries) {
            tested = true;
            const int queries = note.nothing() ? 0 : p.queries;
            keep([&](const Element& e) { return (e.query < queries) & (e.key < p.keys); }, at, note);
        }
    }
    __device__ __forceinline__ bool of(int i) const { return (bits[i / 32] & 1U << i % 32) != 0; }

private:
    template <class Test> __device__ __forceinline__ void keep(Test test, const Keys& at, const Note& note) {
#pragma unroll
        for (int i = 0; i < kSlice / 2; ++i) {
            bits[i / 32] &= ~((test(elementOf(at, note, i)) ? 0U : 1U) << i % 32);
        }
    }
};

#if VT_SCORE == 0
/// Scores become P^T.
__device__ __forceinline__ void weighTile(const FlexAttentionParams& p, const Keys& at, const Note& note,
                                          const Allowed& allowed, u32 facts, Scores& scores) {
    if (allowed.tested) {
#pragma unroll
        for (int i = 0; i < kSlice / 2; ++i) {
            scores[i] = allowed.of(i) ? scores[i] : minusInfinity();
        }
    }
    const u32 mine = facts + threadIdx.x % 4 * 8;
#pragma unroll
    for (int j = 0; j < kSlice / 8; ++j) {
        const Pair offset = Pair::read(mine + static_cast<u32>(j * 32));
#pragma unroll
        for (int i = j * 4; i < j * 4 + 4; ++i) {
            scores[i] = weightOf(p, elementOf(at, note, i), scores[i], offset.of(i));
        }
    }
}

/// dP^T becomes gradients of the scores.
__device__ __forceinline__ void differentiateTile(u32 facts, const Scores& weights, Scores& gradients) {
    const u32 mine = facts + kTile * 4 + threadIdx.x % 4 * 8;
#pragma unroll
    for (int j = 0; j < kSlice / 8; ++j) {
        const Pair delta = Pair::read(mine + static_cast<u32>(j * 32));
#pragma unroll
        for (int i = j * 4; i < j * 4 + 4; ++i) {
            gradients[i] = weights[i] * (gradients[i] - delta.of(i));
        }
    }
}
#else
/// Scores become P^T, dP^T gradients of the scores: the score programs need all of them at a time.
__device__ __forceinline__ void differentiateTile(const FlexAttentionParams& p, const Keys& at, const Note& note,
                                                  const Allowed& allowed, u32 facts, Scores& scores, Scores& gradients,
                                                  Terms& terms) {
    const u32 mine = facts + threadIdx.x % 4 * 8;
#pragma unroll
    for (int j = 0; j < kSlice / 8; ++j) {
        const Pair offset = Pair::read(mine + static_cast<u32>(j * 32));
        const Pair delta = Pair::read(mine + static_cast<u32>(kTile * 4 + j * 32));
#pragma unroll
        for (int i = j * 4; i < j * 4 + 4; ++i) {
            const Element element = elementOf(at, note, i);
            const float any = weightOf(p, element, scores[i], offset.of(i));
            const float weight = allowed.of(i) ? any : 0.0F;
            gradients[i] = gradientOf(p, element, scores[i], weight, gradients[i], delta.of(i), terms);
            scores[i] = weight;
        }
    }
}
#endif

} // namespace flex

} // namespace vt
