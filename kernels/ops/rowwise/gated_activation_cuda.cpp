// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/gated_activation.h"

#include "kernels/device/abi/gated_activation.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const GatedActivation& op) {
    const std::int64_t n = op.out.shape[1];
    abi::GatedActivationParams parameters{};
    parameters.gateUp = op.gateUp.data;
    parameters.out = op.out.data;
    parameters.gateUpStride = op.gateUp.stride0();
    parameters.outStride = op.out.stride0();
    parameters.rows = op.out.shape[0];
    parameters.n = n;
    parameters.alpha = op.alpha;
    parameters.limit = op.limit;
    launchFamily(context, "gated_activation", abi::kGatedActivationAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.gateUp)},
                  {"out_dtype", dtypeNumber(op.out)},
                  {"activation", static_cast<std::int64_t>(op.activation)},
                  {"layout", static_cast<std::int64_t>(op.layout)},
                  {"vector", pieceOf(n, {&op.gateUp, &op.out})},
                  {"rows", op.out.shape[0]},
                  {"n", n}});
}

} // namespace vitrine::kernels
