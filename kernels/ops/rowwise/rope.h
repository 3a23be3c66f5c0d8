// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rotary position embedding (Su and others 2021). The pair is (x[i], x[i + d/2]), the half-split (NeoX) form, or
// (x[2i], x[2i + 1]), the interleaved one.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// In place. angle = position * inverseFrequency[i]; cos and sin are multiplied by `attentionScale` (YaRN) and made in
/// float32, then rounded to x's dtype before use, as transformers does.
struct Rope {
    static constexpr std::string_view kName = "Rope";
    TensorView x;                ///< (tokens, heads, headDim); tokens and heads may have strides
    TensorView positions;        ///< (tokens) I32
    TensorView inverseFrequency; ///< (headDim / 2) F32
    float attentionScale = 1;
    bool inverse = false; ///< turns back, times the same scale: so does the gradient of the rotated vector
    bool interleaved = false;
};

void check(const Rope& op);
Cost cost(const Rope& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const Rope& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Rope& op);
void execute(CudaContext& context, const Rope& op);

} // namespace vitrine::kernels
