// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the CUDA overloads of AdamW and AdamW8Bit share.

#include <cstdint>

#include "kernels/device/abi/adamw.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/optimizer/adamw_step.h"

namespace vitrine::kernels {

template <class Op> abi::AdamWNumbers adamWNumbers(const Op& op) {
    const auto step = adamWStep<float>(op);
    return {step.decay, step.beta1, step.rest1, step.beta2, step.rest2, step.rate, step.root, step.epsilon};
}

/// The fields of the parameters that both kernels have.
template <class Params, class Op> Params adamWParameters(const Op& op) {
    Params parameters{};
    parameters.parameter = op.parameter.data;
    parameters.master = op.master.template as<float>();
    parameters.gradient = op.gradient.data;
    parameters.gradScale = op.gradScale.template as<const float>();
    parameters.n = op.parameter.shape.count();
    parameters.step = adamWNumbers(op);
    return parameters;
}

/// A contiguous tensor as one row: whether it has pieces does not depend on its shape then.
inline TensorView flattened(const TensorView& tensor) {
    return tensor.empty() ? tensor : TensorView{tensor.data, tensor.dtype, Shape{tensor.shape.count()}, {}};
}

/// Launches over the elements of the parameter, in pieces where it and the other tensors allow them.
template <class Params, class Op>
void launchAdamW(CudaContext& context, std::string_view family, int abi, const Params& parameters, const Op& op,
                 const TensorView& state1, const TensorView& state2) {
    const std::int64_t count = op.parameter.shape.count();
    const TensorView parameter = flattened(op.parameter), master = flattened(op.master);
    const TensorView gradient = flattened(op.gradient);
    const TensorView first = flattened(state1), second = flattened(state2);
    launchFamily(context, family, abi, parameters,
                 {{"parameter_dtype", dtypeNumber(op.parameter)},
                  {"gradient_dtype", dtypeNumber(op.gradient)},
                  {"master", op.master.empty() ? 0 : 1},
                  {"vector", pieceOf(count, {&parameter, &master, &gradient, &first, &second})},
                  {"n", count}});
}

} // namespace vitrine::kernels
