// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/blocks.h"

#include "kernels/ops/block_plans.h"
#include "kernels/ops/decode_cuda.h"
#include "kernels/ops/expert_tiles_cuda.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const QkvProject& op) {
    if (!projectFewTokens(context, op)) {
        executePlan<QkvProjectPlan>(context, op);
    }
}

void execute(CudaContext& context, const OutProject& op) {
    executePlan<OutProjectPlan>(context, op);
}

void execute(CudaContext& context, const DenseMlp& op) {
    const DenseMlpPlan plan(op, op.scratch.empty() ? ScratchLayout() : ScratchLayout(op.scratch.data));
    const bool activated = activateFewTokens(context, op, plan.activation.out);
    plan.forEach([&](const auto& part) {
        const void* at = static_cast<const void*>(&part);
        const bool done = at == &plan.gate || at == &plan.up || at == &plan.activation ||
                          (plan.norm.has_value() && at == &*plan.norm);
        if (!activated || !done) {
            execute(context, part);
        }
    });
}

void execute(CudaContext& context, const Route& op) {
    if (!routeTokens(context, op)) {
        executePlan<RoutePlan>(context, op);
    }
}

void execute(CudaContext& context, const ExpertMlp& op) {
    if (!runExpertsOfFewTokens(context, op) && !multiplyInTiles(context, op)) {
        executePlan<ExpertMlpPlan>(context, op);
    }
}

void execute(CudaContext& context, const LmHead& op) {
    const FewRowsProduct product{op.x, op.rows, op.norm, op.head, {}, op.logits, op.softCap};
    if (!multiplyFewRows(context, product)) {
        executePlan<LmHeadPlan>(context, op);
    }
}

} // namespace vitrine::kernels
