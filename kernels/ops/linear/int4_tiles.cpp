// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/int4_tiles.h"

#include <array>
#include <limits>

namespace vitrine::kernels {

namespace {

/// Tiles and what a block takes with them, measured on an H100 at 8,192 x 8,192.
struct MeasuredTiles {
    Int4Tiles tiles;
    double microseconds; ///< for 1,024 inputs
};

constexpr std::array<MeasuredTiles, 6> kMeasured{{
    {{16, 1, 2, 1, 12, 16}, 2.0},
    {{32, 1, 2, 1, 10, 12}, 2.1},
    {{64, 1, 2, 1, 8, 8}, 2.3},
    {{128, 1, 2, 1, 8, 4}, 4.3},
    {{128, 1, 1, 1, 4, 4}, 5.8},
    {{128, 2, 1, 1, 2, 8}, 10.9},
}};

/// Begin and end of a block, and what it takes to add up the sums of two.
constexpr double kBlockMicroseconds = 3;
constexpr double kSharedMicroseconds = 1.5;

std::int64_t ceilDivide(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

} // namespace

Int4Tiles Int4Tiles::choose(std::int64_t rows, std::int64_t in, std::int64_t out, std::int64_t multiprocessors,
                            bool tall) {
    Int4Tiles best;
    double least = std::numeric_limits<double>::max();
    for (const MeasuredTiles& measured : kMeasured) {
        if (measured.tiles.rowTiles > 1 && !tall) {
            continue;
        }
        for (const std::int64_t parts : {1, 2}) {
            // Warpgroups of a block take turns at chunks of 256 inputs: each should have some.
            if (parts > 1 && (measured.tiles.split == 1 || in < 2048)) {
                continue;
            }
            const std::int64_t blocks =
                ceilDivide(out, measured.tiles.outputs()) * ceilDivide(rows, measured.tiles.columns) * parts;
            const double block = measured.microseconds * static_cast<double>(in) / 1024 / static_cast<double>(parts) +
                                 kBlockMicroseconds + (parts > 1 ? kSharedMicroseconds : 0);
            const double time = block * static_cast<double>(ceilDivide(blocks, multiprocessors));
            if (time < least) {
                least = time;
                best = measured.tiles;
                best.parts = parts;
            }
        }
    }
    return best;
}

Int4Tiles Int4Tiles::exact() {
    return {128, 1, 1, 1, 4, 4};
}

} // namespace vitrine::kernels
