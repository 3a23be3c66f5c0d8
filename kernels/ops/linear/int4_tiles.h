// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>

namespace vitrine::kernels {

/// How a launch of int4_gemm divides a product.
struct Int4Tiles {
    std::int64_t columns = 16; ///< rows of x that a block has
    std::int64_t rowTiles = 1; ///< of 64 outputs that a warpgroup has
    std::int64_t split = 2;    ///< warpgroups that share outputs: 1 or 2
    std::int64_t parts = 1;    ///< blocks that share outputs
    std::int64_t codeStages = 12, xStages = 16;

    std::int64_t outputs() const { return 64 * rowTiles * (2 / split); }

    /// The tiles with which a product takes least time on a device of so many multiprocessors. Without `tall`
    /// warpgroups have one row tile.
    static Int4Tiles choose(std::int64_t rows, std::int64_t in, std::int64_t out, std::int64_t multiprocessors,
                            bool tall = true);
    /// Those of every product whose rows are exact (DeviceFeatures::exactRows): tiles add up in different orders.
    static Int4Tiles exact();
};

} // namespace vitrine::kernels
