// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Stands where a call brings programs of its own (kernels/program/emitter.h writes them): causal attention with the
// ALiBi bias, so that kernels are compiled with work to do when no call asks for them.

__device__ __forceinline__ bool maskMod(int, int, int q_idx, int kv_idx, const vt::program::Captures&) {
    return q_idx >= kv_idx;
}

#ifdef VT_SPANS
__device__ __forceinline__ vt::span::Span maskSpan(const vt::span::Span&, const vt::span::Span&,
                                                   const vt::span::Span& q_idx, const vt::span::Span& kv_idx,
                                                   const vt::program::Captures&) {
    return vt::span::lessOrEqual(kv_idx, q_idx);
}
#endif

__device__ __forceinline__ void intervalRows(int, int, int q_idx, const vt::program::Captures&, int& low, int& high) {
    low = 0;
    high = q_idx;
}

__device__ __forceinline__ float scoreMod(float score, int, int h, int q_idx, int kv_idx,
                                          const vt::program::Captures& c) {
    return score + static_cast<const float*>(c.items[0].data)[h] * static_cast<float>(kv_idx - q_idx);
}

__device__ __forceinline__ float scoreGradient(float, float upstream, int, int, int, int,
                                               const vt::program::Captures&) {
    return upstream;
}

template <class Sink>
__device__ __forceinline__ void captureGradients(float, float upstream, int, int h, int q_idx, int kv_idx,
                                                 const vt::program::Captures&, Sink&& sink) {
    sink(0, h, upstream * static_cast<float>(kv_idx - q_idx));
}
