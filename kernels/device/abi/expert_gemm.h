// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Grouped expert products over sorted and gathered rows (expert_sort.h, expert_gather.h).

namespace vitrine::kernels::abi {

constexpr int kExpertGemmAbi = 1;

struct ExpertGemmParams {
    const void* x;        ///< tiles of BF16 rows (device/experts/expert_tiles.cuh)
    const int* tileCount; ///< of ExpertSort, as the next two
    const int* tiles;
    const int* slots;
    const void* blocks; ///< MXFP4 (experts, out, in / 32, 16), or null
    const void* scales; ///< MXFP4 (experts, out, in / 32)
    const void* dense;  ///< BF16 (experts, out, in), or null
    const void* bias;   ///< (experts, out), or null
    long long biasStride;
    void* result;           ///< with an activation: tiles of (out / 2); without: rows (pairs, out) of BF16
    long long resultStride; ///< of rows, elements
    float alpha, limit;
};

} // namespace vitrine::kernels::abi
