// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/blocks.h"

#include "kernels/ops/fused/block_primitives.h"

namespace vitrine::kernels {

void execute(CpuContext& context, const QkvProject& op) {
    executePrimitives<QkvProjectPrimitives>(context, op, DeviceTraits{});
}

void execute(CpuContext& context, const OutProject& op) {
    executePrimitives<OutProjectPrimitives>(context, op, DeviceTraits{});
}

void execute(CpuContext& context, const DenseMlp& op) {
    executePrimitives<DenseMlpPrimitives>(context, op, DeviceTraits{});
}

void execute(CpuContext& context, const Route& op) {
    executePrimitives<RoutePrimitives>(context, op, DeviceTraits{});
}

void execute(CpuContext& context, const ExpertMlp& op) {
    if (op.grouped()) {
        executePrimitives<GroupedExpertPrimitives>(context, op, DeviceTraits{});
    } else {
        executePrimitives<ExpertMlpPrimitives>(context, op, DeviceTraits{});
    }
}

void execute(CpuContext& context, const LmHead& op) {
    executePrimitives<LmHeadPrimitives>(context, op, DeviceTraits{});
}

} // namespace vitrine::kernels
