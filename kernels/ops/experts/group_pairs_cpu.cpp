// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/group_pairs.h"

#include <cstring>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/experts/expert_groups.h"

namespace vitrine::kernels {

void execute(CpuContext&, const GroupPairs& op) {
    groupPairs(op.ids, op.starts, op.pairs);
    const std::int32_t* pairs = op.pairs.as<const std::int32_t>();
    std::int32_t* places = op.places.as<std::int32_t>();
    for (std::int64_t row = 0; row < op.pairs.shape[0]; ++row) {
        places[pairs[row]] = static_cast<std::int32_t>(row);
    }
}

void execute(CpuContext& context, const GatherPairs& op) {
    if (op.out.shape.count() == 0) {
        return;
    }
    const std::int64_t n = op.x.shape[1];
    const std::int64_t k = op.pairs.shape[0] / op.x.shape[0];
    const std::int32_t* pairs = op.pairs.as<const std::int32_t>();
    forRows(context, op.out.shape[0], n, [&](std::int64_t row) {
        std::memcpy(op.out.as<std::byte>() + bytesOf(op.out.dtype, row * op.out.stride0()),
                    op.x.as<const std::byte>() + bytesOf(op.x.dtype, pairs[row] / k * op.x.stride0()),
                    bytesOf(op.x.dtype, n));
    });
}

} // namespace vitrine::kernels
