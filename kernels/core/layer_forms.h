// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How the layers of model families differ: the order of a norm, an activation, the layout of its inputs, a router.

#include <cstdint>

namespace vitrine::kernels {

/// How RmsNorm applies its weight.
enum class RmsNormOrder : std::uint8_t {
    CastThenScale, ///< cast(y) * w: Llama, Mistral, Qwen
    ScaleThenCast, ///< cast(w32 * y): gpt-oss
    OnePlusWeight, ///< cast(y * (1 + w32)): Gemma
};

/// What GatedActivation computes.
enum class Activation : std::uint8_t {
    Silu,          ///< silu(gate) * up
    GeluTanh,      ///< gelu_tanh(gate) * up: Gemma
    ClampedSwiglu, ///< gpt-oss: gate = min(gate, limit), up = clamp(up, -limit, limit), (up + 1) * gate * sigmoid(alpha
                   ///< * gate)
};

/// How the gate and up rows of one weight lie.
enum class GateLayout : std::uint8_t {
    Halves,      ///< row = gate (n) then up (n)
    Interleaved, ///< row = gate, up, gate, up, ...
};

/// How RouterTopK makes weights of logits.
enum class RouterOrder : std::uint8_t {
    TopKThenSoftmax, ///< gpt-oss: softmax over the chosen logits only
    SoftmaxThenTopK, ///< Qwen3-MoE: softmax over all in float32, then the top k, then divided by their sum if
                     ///< `normalize`
    SigmoidThenTopK, ///< DeepSeek-V3: a sigmoid of each logit, then the top k as RouterGroups says, then divided by
                     ///< their sum if `normalize`, then scaled
};

} // namespace vitrine::kernels
