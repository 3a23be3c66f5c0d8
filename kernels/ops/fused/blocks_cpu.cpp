// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/blocks.h"

#include "kernels/ops/fused/block_plans.h"

namespace vitrine::kernels {

void execute(CpuContext& context, const QkvProject& op) {
    executePlan<QkvProjectPlan>(context, op);
}

void execute(CpuContext& context, const OutProject& op) {
    executePlan<OutProjectPlan>(context, op);
}

void execute(CpuContext& context, const DenseMlp& op) {
    executePlan<DenseMlpPlan>(context, op);
}

void execute(CpuContext& context, const Route& op) {
    executePlan<RoutePlan>(context, op);
}

void execute(CpuContext& context, const ExpertMlp& op) {
    executePlan<ExpertMlpPlan>(context, op);
}

void execute(CpuContext& context, const LmHead& op) {
    executePlan<LmHeadPlan>(context, op);
}

} // namespace vitrine::kernels
