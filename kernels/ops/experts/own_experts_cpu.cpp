// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/own_experts.h"

#include "kernels/context/cpu_context.h"

namespace vitrine::kernels {

void execute(CpuContext& /*context*/, const OwnExperts& op) {
    const std::int32_t* ids = op.ids.as<const std::int32_t>();
    std::int32_t* out = op.out.as<std::int32_t>();
    for (std::int64_t i = 0; i < op.ids.shape.count(); ++i) {
        const std::int64_t own = ids[i] - op.first;
        out[i] = own >= 0 && own < op.count ? static_cast<std::int32_t>(own) : kOtherRanksExpert;
    }
}

} // namespace vitrine::kernels
