// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/latent_blocks.h"

#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/fused/latent_primitives.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const LatentProject& op) {
    executePrimitives<LatentProjectPrimitives>(context, op, context.traits());
}

void execute(CudaContext& context, const LatentOut& op) {
    executePrimitives<LatentOutPrimitives>(context, op, context.traits());
}

} // namespace vitrine::kernels
