// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Loops over rows on the pool, in pieces worth a thread's wake-up.

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/context/context.h"
#include "kernels/context/cpu_context.h"

namespace vitrine::kernels {

/// body(row) for every row; `work` is about how many elements a row touches.
template <class Body> void forRows(CpuContext& context, std::int64_t rows, std::int64_t work, const Body& body) {
    constexpr std::int64_t kWorthAThread = 8192;
    const std::int64_t grain = std::max<std::int64_t>(1, kWorthAThread / std::max<std::int64_t>(1, work));
    if (rows <= grain) {
        for (std::int64_t row = 0; row < rows; ++row) {
            body(row);
        }
        return;
    }
    context.pool().parallelFor(rows, grain, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t row = begin; row < end; ++row) {
            body(row);
        }
    });
}

/// Cost of an op that reads and writes each view once; FLOPs are per element of the output.
inline Cost streamingCost(std::uint64_t read, std::uint64_t written, std::uint64_t flops, DType computeType) {
    return Cost{read, written, flops, 1, computeType};
}

inline void addCost(Cost& sum, const Cost& part) {
    const auto before = static_cast<double>(sum.flops);
    const auto added = static_cast<double>(part.flops);
    if (part.flops > 0) {
        sum.share = (before + added) / (before / sum.share + added / part.share); // times add up
    }
    sum.bytesRead += part.bytesRead;
    sum.bytesWritten += part.bytesWritten;
    sum.flops += part.flops;
    sum.launches += part.launches;
    sum.linkBytes += part.linkBytes;
    sum.exchanges += part.exchanges;
    sum.ranks = std::max(sum.ranks, part.ranks);
}

} // namespace vitrine::kernels
