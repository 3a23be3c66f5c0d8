// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/pack_experts.h"

#include "kernels/cpu/row_loop.h"

namespace vitrine::kernels {

namespace {

template <class Id> void packLayer(CpuContext& context, const PackExperts& op) {
    const std::int64_t k = op.ids.shape[1];
    const std::int64_t row = op.out.shape[1] * k;
    forRows(context, op.ids.shape[0], k, [&](std::int64_t token) {
        const std::int32_t* ids = op.ids.as<const std::int32_t>() + token * k;
        Id* out = op.out.as<Id>() + token * row + op.layer * k;
        for (std::int64_t j = 0; j < k; ++j) {
            out[j] = static_cast<Id>(ids[j]);
        }
    });
}

} // namespace

void execute(CpuContext& context, const PackExperts& op) {
    if (op.out.dtype == DType::U8) {
        packLayer<std::uint8_t>(context, op);
    } else {
        packLayer<std::uint16_t>(context, op);
    }
}

} // namespace vitrine::kernels
