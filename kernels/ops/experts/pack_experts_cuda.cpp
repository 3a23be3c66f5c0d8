// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/pack_experts.h"

#include "kernels/device/abi/pack_experts.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const PackExperts& op) {
    if (op.ids.shape.count() == 0) {
        return;
    }
    abi::PackExpertsParams params{};
    params.ids = op.ids.as<const int>();
    params.out = op.out.data;
    params.count = toInt(op.ids.shape.count(), PackExperts::kName, "ids");
    params.k = static_cast<int>(op.ids.shape[1]);
    params.rowIds = static_cast<int>(op.out.shape[1]) * params.k;
    params.first = static_cast<int>(op.layer) * params.k;
    launchFamily(context, "pack_experts", abi::kPackExpertsAbi, params,
                 {{"out_dtype", dtypeNumber(op.out)}, {"count", op.ids.shape.count()}});
}

} // namespace vitrine::kernels
