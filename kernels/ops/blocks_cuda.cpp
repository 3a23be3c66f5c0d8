// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/blocks.h"

#include "kernels/ops/block_plans.h"
#include "kernels/ops/expert_tiles_cuda.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const QkvProject& op) {
    executePlan<QkvProjectPlan>(context, op);
}

void execute(CudaContext& context, const OutProject& op) {
    executePlan<OutProjectPlan>(context, op);
}

void execute(CudaContext& context, const DenseMlp& op) {
    executePlan<DenseMlpPlan>(context, op);
}

void execute(CudaContext& context, const Route& op) {
    executePlan<RoutePlan>(context, op);
}

void execute(CudaContext& context, const ExpertMlp& op) {
    if (!multiplyInTiles(context, op)) {
        executePlan<ExpertMlpPlan>(context, op);
    }
}

void execute(CudaContext& context, const LmHead& op) {
    executePlan<LmHeadPlan>(context, op);
}

} // namespace vitrine::kernels
