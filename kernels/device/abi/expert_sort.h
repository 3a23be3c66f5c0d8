// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// (token, choice) pairs grouped by expert, in tiles of kExpertTile rows: what the grouped products work on.

namespace vitrine::kernels::abi {

constexpr int kExpertSortAbi = 1;
constexpr int kExpertTile = 128;

struct ExpertSortParams {
    const int* ids; ///< (pairs): the expert of a pair
    int* tileCount; ///< (1)
    int* tiles; ///< (bound, 2), bound = min(pairs, pairs / kExpertTile + experts): expert, rows used (1..kExpertTile)
    int* slots; ///< (bound, kExpertTile): the pair in that row, or -1 after the tile's rows
    int pairs;
    int experts;
};

} // namespace vitrine::kernels::abi
