// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/reports/mask_picture.h"

#include <algorithm>
#include <array>

#include "base/png.h"
#include "engine/checkpoint/atomic_file.h"

namespace vitrine::app {

namespace {

constexpr std::int64_t kPictureSide = 1024; ///< most pixels of a side

using Colour = std::array<double, 3>;
constexpr Colour kFull{31, 78, 121};
constexpr Colour kPartial{127, 178, 220};
constexpr Colour kEmpty{246, 247, 249};

/// Pixels of a side of `blocks` blocks: a cell each, enlarged when there are few.
struct Side {
    explicit Side(std::int64_t blocks)
        : cells(static_cast<int>(std::min(blocks, kPictureSide))),
          scale(static_cast<int>(std::max<std::int64_t>(1, kPictureSide / 2 / std::max(1, cells)))) {}
    int cells, scale;
};

} // namespace

void writeMaskPicture(const kernels::BlockMask& mask, const std::string& path) {
    const std::int64_t rows = mask.shape.queryBlocks();
    const std::int64_t columns = mask.shape.keyBlocks();
    const Side down(rows);
    const Side across(columns);
    const int scale = std::min(down.scale, across.scale);
    const std::vector<kernels::BlockCell> cells =
        kernels::blockCells(mask, 0, 0, 0, rows, 0, columns, across.cells, down.cells);
    const int width = across.cells * scale;
    const int height = down.cells * scale;
    std::vector<std::uint8_t> rgb;
    rgb.reserve(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            const kernels::BlockCell& cell = cells[static_cast<std::size_t>(y / scale * across.cells + x / scale)];
            const auto all = static_cast<double>(cell.full + cell.partial + cell.empty);
            for (std::size_t i = 0; i < kFull.size(); ++i) {
                const double mixed = kFull[i] * static_cast<double>(cell.full) +
                                     kPartial[i] * static_cast<double>(cell.partial) +
                                     kEmpty[i] * static_cast<double>(cell.empty);
                rgb.push_back(static_cast<std::uint8_t>(mixed / all + 0.5));
            }
        }
    }
    engine::writeTextFile(path, base::encodePng(width, height, rgb));
}

} // namespace vitrine::app
