// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/router_shares.h"

#include "kernels/device/abi/router_shares.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const RouterShares& op) {
    const RouterTopK& forward = op.forward;
    if (forward.logits.shape.count() == 0) {
        return;
    }
    abi::RouterSharesParams params{};
    params.logits = forward.logits.data;
    params.ids = forward.ids.as<const int>();
    params.out = op.out.as<float>();
    params.logitsStride = forward.logits.stride0();
    params.tokens = toInt(forward.logits.shape[0], RouterShares::kName, "logits");
    params.experts = static_cast<int>(forward.logits.shape[1]);
    params.k = static_cast<int>(forward.ids.shape[1]);
    launchFamily(context, "router_shares", abi::kRouterSharesAbi, params,
                 {{"x_dtype", dtypeNumber(forward.logits)}, {"tokens", forward.logits.shape[0]}});
}

} // namespace vitrine::kernels
