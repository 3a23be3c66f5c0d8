// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Gated activations between the two products of an MLP.

#include "kernels/core/layer_forms.h"
#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

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

/// The gradient of gateUp. What was clamped has the gradient 0; the limits themselves pass theirs on.
struct GatedActivationBackward {
    static constexpr std::string_view kName = "GatedActivationBackward";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Gradients;
    GatedActivation forward; ///< gateUp and the constants; its out, unless empty, is written: the activation anew
    TensorView gradOut;      ///< (rows, n), the gradient of out; rows may have a stride
    TensorView rowWeights;   ///< (rows) F32 or empty: a row's gradOut is multiplied by it (weights of experts)
    TensorView rowDots;      ///< (rows) F32 or F64, or empty. Written: sum of out * gradOut, without rowWeights
    TensorView gradGateUp;   ///< (rows, 2 n); may be the same memory as forward.gateUp
};

void check(const GatedActivationBackward& op);
Cost cost(const GatedActivationBackward& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const GatedActivationBackward& op, const DeviceTraits& traits);
void execute(CpuContext& context, const GatedActivationBackward& op);
/// Throws Unsupported for F64.
void execute(CudaContext& context, const GatedActivationBackward& op);

} // namespace vitrine::kernels
