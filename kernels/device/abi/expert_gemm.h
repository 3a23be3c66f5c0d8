// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Grouped expert products over sorted and gathered rows (expert_sort.h, expert_gather.h).

namespace vitrine::kernels::abi {

constexpr int kExpertGemmAbi = 2;

struct ExpertGemmParams {
    const void* x;        ///< tiles of BF16 rows (device/experts/expert_tiles.cuh)
    const int* tileCount; ///< of ExpertSort, as the next two
    const int* tiles;
    const int* slots;
    const void* weights;        ///< (experts, out, in) BF16, bytes of FP8, or four bits each
    const void* scales;         ///< (experts, groups of out, groups of in): bytes of MXFP4, numbers of INT4 and FP8
    const unsigned char* zeros; ///< (experts, out, groups of in) of INT4, or null: 8
    const void* bias;           ///< (experts, out), or null
    long long biasStride;
    void* result;           ///< with an activation: tiles of (out / 2); without: rows (pairs, out) of BF16
    long long resultStride; ///< of rows, elements
    float alpha, limit;
    int rowGroup; ///< neighbouring outputs that share their scales: only FP8 may have more than 1
};

} // namespace vitrine::kernels::abi
