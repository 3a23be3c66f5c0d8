// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A block mask as cells of a small picture.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vitrine::ui {

/// The blocks of a sequence's attention in layers of one kind, as few cells as a picture has pixels.
struct MaskPicture {
    enum Cell : std::uint8_t { Empty, Partial, Full };
    std::int64_t window = 0;
    int side = 0; ///< cells; a cell has blocksOfCell x blocksOfCell blocks and shows the worst of them
    int blocksOfCell = 1;
    std::int64_t block = 0; ///< tokens of a block's side
    std::vector<std::uint8_t> cells;
    std::int64_t full = 0, partial = 0, empty = 0;
    std::int64_t causal = 0; ///< blocks of one causal mask over the whole sequence

    Cell at(int row, int column) const {
        return static_cast<Cell>(
            cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(side) + static_cast<std::size_t>(column)]);
    }
};

} // namespace vitrine::ui
