// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/adamw.h"

#include "kernels/device/abi/adamw.h"
#include "kernels/ops/optimizer/adamw_call.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const AdamW& op) {
    if (op.parameter.shape.count() == 0) {
        return;
    }
    auto parameters = adamWParameters<abi::AdamWParams>(op);
    parameters.moment1 = op.moment1.as<float>();
    parameters.moment2 = op.moment2.as<float>();
    launchAdamW(context, "adamw", abi::kAdamWAbi, parameters, op, op.moment1, op.moment2);
}

} // namespace vitrine::kernels
