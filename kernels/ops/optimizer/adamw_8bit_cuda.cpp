// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/adamw_8bit.h"

#include "kernels/device/abi/adamw_8bit.h"
#include "kernels/ops/optimizer/adamw_call.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const AdamW8Bit& op) {
    if (op.parameter.shape.count() == 0) {
        return;
    }
    auto parameters = adamWParameters<abi::AdamW8BitParams>(op);
    parameters.code1 = op.code1.as<unsigned char>();
    parameters.code2 = op.code2.as<unsigned char>();
    parameters.absmax1 = op.absmax1.as<float>();
    parameters.absmax2 = op.absmax2.as<float>();
    parameters.maps = op.maps.as<const float>();
    launchAdamW(context, "adamw_8bit", abi::kAdamW8BitAbi, parameters, op, op.code1, op.code2);
}

} // namespace vitrine::kernels
