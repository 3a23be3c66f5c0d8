// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/latent_blocks.h"

#include "kernels/ops/fused/latent_primitives.h"

namespace vitrine::kernels {

void execute(CpuContext& context, const LatentProject& op) {
    executePrimitives<LatentProjectPrimitives>(context, op, DeviceTraits{});
}

void execute(CpuContext& context, const LatentOut& op) {
    executePrimitives<LatentOutPrimitives>(context, op, DeviceTraits{});
}

} // namespace vitrine::kernels
