// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows of x copied into the tiles that the grouped products read (device/experts/expert_tiles.cuh describes a tile's
// layout).

namespace vitrine::kernels::abi {

constexpr int kExpertGatherAbi = 1;

struct ExpertGatherParams {
    const void* x;        ///< (rows, in) BF16
    void* out;            ///< tiles
    const int* tileCount; ///< of ExpertSort, as the next two
    const int* tiles;
    const int* slots;
    long long xStride; ///< elements
    int pairsPerRow;   ///< pair p reads row p / pairsPerRow
    int in;
    int tileBound;
};

} // namespace vitrine::kernels::abi
