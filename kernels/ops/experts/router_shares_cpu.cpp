// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/router_shares.h"

#include <algorithm>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/experts/row_softmax.h"

namespace vitrine::kernels {

void execute(CpuContext& context, const RouterShares& op) {
    const TensorView& logits = op.forward.logits;
    const std::int64_t experts = logits.shape[1];
    const std::int64_t k = op.forward.ids.shape[1];
    forRows(context, logits.shape[0], experts * 8, [&](std::int64_t row) {
        float* out = op.out.as<float>() + row * 2 * experts;
        loadFloats(logits.dtype, logits.data, row * logits.stride0(), experts, out);
        softmaxInPlace(out, experts);
        std::fill(out + experts, out + 2 * experts, 0.0F);
        const std::int32_t* ids = op.forward.ids.as<const std::int32_t>() + row * k;
        for (std::int64_t j = 0; j < k; ++j) {
            out[experts + ids[j]] = 1;
        }
    });
}

} // namespace vitrine::kernels
