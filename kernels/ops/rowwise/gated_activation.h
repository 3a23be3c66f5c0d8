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

} // namespace vitrine::kernels
