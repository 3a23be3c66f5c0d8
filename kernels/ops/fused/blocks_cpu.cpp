// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/blocks.h"

#include "kernels/ops/fused/block_primitives.h"

namespace vitrine::kernels {

void execute(CpuContext& context, const QkvProject& op) {
    executePrimitives<QkvProjectPrimitives>(context, op);
}

void execute(CpuContext& context, const OutProject& op) {
    executePrimitives<OutProjectPrimitives>(context, op);
}

void execute(CpuContext& context, const DenseMlp& op) {
    executePrimitives<DenseMlpPrimitives>(context, op);
}

void execute(CpuContext& context, const Route& op) {
    executePrimitives<RoutePrimitives>(context, op);
}

void execute(CpuContext& context, const ExpertMlp& op) {
    if (op.grouped()) {
        executePrimitives<GroupedExpertPrimitives>(context, op);
    } else {
        executePrimitives<ExpertMlpPrimitives>(context, op);
    }
}

void execute(CpuContext& context, const LmHead& op) {
    executePrimitives<LmHeadPrimitives>(context, op);
}

} // namespace vitrine::kernels
