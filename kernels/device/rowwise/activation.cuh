// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The gated activations of kernels/ops/rowwise/gated_activation.h, by number: 0 silu, 1 gelu_tanh, 2 clamped swiglu.

#include "device/lib/types.cuh"

namespace vt {

__device__ __forceinline__ float sigmoid(float x) {
    return __fdividef(1.0F, 1.0F + __expf(-x)); // 0 for a huge divisor, as it should be
}

template <int kActivation>
__device__ __forceinline__ float gatedActivation(float gate, float up, float alpha, float limit) {
    static_assert(kActivation >= 0 && kActivation <= 2, "an Activation");
    if constexpr (kActivation == 0) {
        return gate * sigmoid(gate) * up;
    } else if constexpr (kActivation == 1) {
        // 0.5 (1 + tanh(y)) = sigmoid(2 y), y = sqrt(2 / pi) (g + 0.044715 g^3)
        return gate * sigmoid(1.5957691216057308F * (gate + 0.044715F * gate * gate * gate)) * up;
    } else {
        const float g = gate > limit ? limit : gate; // NaN stays NaN
        const float u = up > limit ? limit : up < -limit ? -limit : up;
        return (u + 1.0F) * (g * sigmoid(alpha * g));
    }
}

/// The activation and its slopes in gate and up.
struct GatedSlopes {
    float out, gate, up;
};

/// What was clamped has the slope 0; the limits themselves have the inner one.
template <int kActivation>
__device__ __forceinline__ GatedSlopes gatedSlopes(float gate, float up, float alpha, float limit) {
    static_assert(kActivation >= 0 && kActivation <= 2, "an Activation");
    if constexpr (kActivation == 0) {
        const float s = sigmoid(gate);
        return {gate * s * up, up * (s + gate * s * (1.0F - s)), gate * s};
    } else if constexpr (kActivation == 1) {
        const float s = sigmoid(1.5957691216057308F * (gate + 0.044715F * gate * gate * gate));
        const float inner = 1.5957691216057308F * (1.0F + 0.134145F * gate * gate);
        return {gate * s * up, up * (s + gate * s * (1.0F - s) * inner), gate * s};
    } else {
        const float g = gate > limit ? limit : gate;
        const float u = up > limit ? limit : up < -limit ? -limit : up;
        const float s = sigmoid(alpha * g);
        return {(u + 1.0F) * (g * s), gate > limit ? 0.0F : (u + 1.0F) * (s + alpha * g * s * (1.0F - s)),
                up > limit || up < -limit ? 0.0F : g * s};
    }
}

} // namespace vt
