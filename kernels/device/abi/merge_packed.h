// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kMergePackedAbi = 1;

struct MergePackedParams {
    const void* blocks; ///< (experts, rows, groups, 16) bytes
    const void* scales; ///< (experts, rows, groups)
    const void* a;      ///< (experts, rank, groups * 32)
    const void* b;      ///< (experts, rows, rank)
    void* outBlocks;    ///< as blocks
    void* outScales;    ///< as scales
    long long rows;
    long long groups;
    int rank;
    float scale; ///< of B A
};

} // namespace vitrine::kernels::abi
