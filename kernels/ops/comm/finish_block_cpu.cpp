// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/cpu_context.h"
#include "kernels/ops/comm/finish_parts.h"

namespace vitrine::kernels {

void execute(CpuContext& context, const FinishBlock& op) {
    FinishBlockPrimitives(op, DeviceTraits{}).forEach([&](const auto& part) { execute(context, part); });
}

} // namespace vitrine::kernels
