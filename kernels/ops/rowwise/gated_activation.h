// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Gated activations between the two products of an MLP.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

enum class Activation : std::uint8_t {
    Silu,          ///< silu(gate) * up
    GeluTanh,      ///< gelu_tanh(gate) * up: Gemma
    ClampedSwiglu, ///< gpt-oss: gate = min(gate, limit), up = clamp(up, -limit, limit), (up + 1) * gate * sigmoid(alpha
                   ///< * gate)
};
enum class GateLayout : std::uint8_t {
    Halves,      ///< row = gate (n) then up (n)
    Interleaved, ///< row = gate, up, gate, up, ...
};

struct GatedActivation {
    static constexpr std::string_view kName = "GatedActivation";
    TensorView gateUp; ///< (rows, 2 n)
    TensorView out;    ///< (rows, n)
    Activation activation = Activation::Silu;
    GateLayout layout = GateLayout::Halves;
    float alpha = 1.702F;
    float limit = 7.0F;
};

void check(const GatedActivation& op);
Cost cost(const GatedActivation& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const GatedActivation& op, const DeviceTraits& traits);
void execute(CpuContext& context, const GatedActivation& op);
void execute(CudaContext& context, const GatedActivation& op);

} // namespace vitrine::kernels
