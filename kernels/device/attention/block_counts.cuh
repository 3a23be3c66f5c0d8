// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Allowed elements of blocks of a mask, a thread block for each. Unless all must be counted, one that has seen an
// allowed and a blocked element ends early.

#include "device/abi/block_counts.h"
#include "device/lib/pdl.cuh"
#include "device/lib/types.cuh"
#include "device/program/program.cuh"

namespace vt {

#include "device/generated/program.cuh"

extern "C" __global__ void __launch_bounds__(256)
    block_counts(const __grid_constant__ vitrine::kernels::abi::BlockCountsParams p) {
    constexpr int kRounds = 8; ///< between two looks at what the others saw
    constexpr int kThreads = 256;
    __shared__ int total;
    pdl::wait();
    pdl::launchDependents();
    const int* place = p.places + 4 * static_cast<i64>(blockIdx.x);
    const int query0 = place[2] * p.queryBlock;
    const int key0 = place[3] * p.keyBlock;
    const int width = min(p.keyBlock, p.keys - key0);
    const int area = min(p.queryBlock, p.queries - query0) * width;
    const int rowStep = kThreads / width;
    const int columnStep = kThreads % width;
    int row = static_cast<int>(threadIdx.x) / width;
    int column = static_cast<int>(threadIdx.x) % width;
    int at = static_cast<int>(threadIdx.x);
    int allowed = 0;
    int seen = 0;
    for (int first = 0; first < area; first += kThreads * kRounds) {
#pragma unroll 1
        for (int round = 0; round < kRounds && at < area; ++round) {
            const bool passes = maskMod(place[0], place[1], query0 + row, key0 + column, p.captures);
            allowed += passes ? 1 : 0;
            ++seen;
            at += kThreads;
            row += rowStep;
            column += columnStep;
            if (column >= width) {
                column -= width;
                ++row;
            }
        }
        if (p.exact == 0) {
            const bool some = __syncthreads_or(allowed > 0 ? 1 : 0) != 0;
            const bool others = __syncthreads_or(allowed < seen ? 1 : 0) != 0;
            if (some && others) {
                // Between empty and full: at least one is allowed and one is not.
                if (threadIdx.x == 0) {
                    p.counts[blockIdx.x] = 1;
                }
                return;
            }
        }
    }
    if (threadIdx.x == 0) {
        total = 0;
    }
    __syncthreads();
    atomicAdd(&total, allowed);
    __syncthreads();
    if (threadIdx.x == 0) {
        p.counts[blockIdx.x] = total;
    }
}

} // namespace vt
