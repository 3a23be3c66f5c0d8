// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/sampling/greedy_parts.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/row_loop.h"

namespace vitrine::kernels {

void execute(CpuContext& context, const BestOfPart& op) {
    const std::int64_t part = op.logits.shape[1];
    forRows(context, op.logits.shape[0], 4 * part, [&](std::int64_t row) {
        const float* logits = op.logits.as<const float>() + row * op.logits.stride0();
        std::int64_t best = 0;
        for (std::int64_t i = 1; i < part; ++i) {
            best = logits[i] > logits[best] ? i : best;
        }
        double sum = 0;
        for (std::int64_t i = 0; i < part; ++i) {
            sum += std::isfinite(logits[i]) ? std::exp(static_cast<double>(logits[i]) - logits[best])
                                            : std::numeric_limits<double>::quiet_NaN();
        }
        float* out = op.best.as<float>() + row * kBestOfPart;
        out[0] = logits[best];
        out[1] = static_cast<float>(op.firstId + best);
        out[2] = static_cast<float>(sum);
    });
}

void execute(CpuContext& context, const BestOfParts& op) {
    const std::int64_t width = op.best.shape[1];
    forRows(context, op.best.shape[0], width, [&](std::int64_t row) {
        const float* parts = op.best.as<const float>() + row * width;
        const float* best = parts;
        for (const float* part = parts; part < parts + width; part += kBestOfPart) {
            best = part[0] > best[0] ? part : best;
        }
        double sum = 0;
        for (const float* part = parts; part < parts + width; part += kBestOfPart) {
            sum += part[2] * std::exp(static_cast<double>(part[0]) - best[0]);
        }
        op.ids.as<std::int32_t>()[row] = static_cast<std::int32_t>(best[1]);
        op.logprobs.as<float>()[row] = static_cast<float>(-std::log(sum));
    });
}

} // namespace vitrine::kernels
