// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The rows of a weight that DoRA adapts (adapter_weights.h).

#include <cstdint>
#include <vector>

#include "engine/checkpoint/overlay_checkpoint.h"

namespace vitrine::engine {

struct DoraParts {
    std::vector<float> a;         ///< (rank, in)
    std::vector<float> b;         ///< (out, rank)
    std::vector<float> magnitude; ///< (out)
    float scale = 1;
};

/// m (W + scale B A) / |W + scale B A| for the rows W that `below` gives, of `in` elements.
RowMaker doraRows(RowMaker below, DoraParts parts, std::int64_t in);

/// The same for an embedding (rows, width), of which A is (rank, rows) and B (width, rank): the norm is that of each
/// column. The first call reads all rows.
RowMaker doraColumns(RowMaker below, DoraParts parts, std::int64_t rows, std::int64_t width);

} // namespace vitrine::engine
