// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What products of a layer take: a weight with its bias and its adapter, and the weights of a norm that may be fused in
// front of them.

#include "kernels/core/layer_forms.h"
#include "kernels/core/weight_view.h"
#include "kernels/ops/linear/adapter_view.h"

namespace vitrine::kernels {

struct NormWeights {
    TensorView weight; ///< (hidden) or empty: no norm
    float eps = 1e-5F;
    RmsNormOrder form = RmsNormOrder::CastThenScale;
};

struct LinearView {
    WeightView weight;
    TensorView bias;     ///< (out) or empty
    AdapterView adapter; ///< or empty
    /// An adapter that the weight has in it already, or empty. Products pass over it; training makes its gradients.
    AdapterView merged;
};

} // namespace vitrine::kernels
