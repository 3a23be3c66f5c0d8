// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/device/abi/gated_activation_backward.h"

#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/rowwise/gated_activation.h"

namespace vitrine::kernels {

namespace {

/// Threads that share a row when it has a sum; 0: pieces by themselves.
std::int64_t threadsOfDots(const GatedActivationBackward& op, std::int64_t n) {
    constexpr std::int64_t kWarpElements = 1024;
    return op.rowDots.empty() ? 0 : n <= kWarpElements ? 32 : 256;
}

} // namespace

void execute(CudaContext& context, const GatedActivationBackward& op) {
    const GatedActivation& forward = op.forward;
    const std::int64_t rows = op.gradOut.shape[0];
    const std::int64_t n = op.gradOut.shape[1];
    abi::GatedActivationBackwardParams parameters{};
    parameters.gateUp = forward.gateUp.data;
    parameters.gradOut = op.gradOut.data;
    parameters.rowWeights = op.rowWeights.as<const float>();
    parameters.gradGateUp = op.gradGateUp.data;
    parameters.out = forward.out.data;
    parameters.rowDots = op.rowDots.as<float>();
    parameters.gateUpStride = forward.gateUp.stride0();
    parameters.gradOutStride = op.gradOut.stride0();
    parameters.gradGateUpStride = op.gradGateUp.stride0();
    parameters.outStride = forward.out.empty() ? 0 : forward.out.stride0();
    parameters.rows = rows;
    parameters.n = n;
    parameters.alpha = forward.alpha;
    parameters.limit = forward.limit;
    launchFamily(context, "gated_activation_backward", abi::kGatedActivationBackwardAbi, parameters,
                 {{"x_dtype", dtypeNumber(forward.gateUp)},
                  {"grad_dtype", dtypeNumber(op.gradOut)},
                  {"grad_x_dtype", dtypeNumber(op.gradGateUp)},
                  {"out_dtype", dtypeOrBf16(forward.out)},
                  {"dots_dtype", optionalDtype(op.rowDots)},
                  {"activation", static_cast<std::int64_t>(forward.activation)},
                  {"layout", static_cast<std::int64_t>(forward.layout)},
                  {"vector", pieceOf(n, {&forward.gateUp, &op.gradOut, &op.gradGateUp, &forward.out})},
                  {"row_threads", threadsOfDots(op, n)},
                  {"rows", rows},
                  {"n", n}});
}

} // namespace vitrine::kernels
