// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/block_counts.h"

#include "kernels/context/cpu_context.h"
#include "kernels/program/box_walk.h"

namespace vitrine::kernels {

void execute(CpuContext& context, const BlockCounts& op) {
    constexpr std::int64_t kGrain = 64;
    const IntervalAnalysis analysis(*op.mask.program, op.mask.captures);
    const auto* const places = op.places.as<const std::int32_t>();
    auto* const counts = op.counts.as<std::int32_t>();
    context.pool().parallelFor(op.counts.shape[0], kGrain, [&](std::int64_t begin, std::int64_t end, int) {
        BoxWalk walk(*op.mask.program, op.mask.captures, analysis);
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int32_t* const place = places + 4 * i;
            const ProgramBox box =
                boxOfBlocks(op.shape, place[0], place[1], place[2], place[2] + 1, place[3], place[3] + 1);
            counts[i] = static_cast<std::int32_t>(walk.count(box, {}));
        }
    });
}

} // namespace vitrine::kernels
