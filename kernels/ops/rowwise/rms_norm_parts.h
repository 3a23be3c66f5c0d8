// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How RmsNormBackward sums the gradient of the weight: parts of neighbouring rows, then the parts.

#include <cstdint>

#include "kernels/ops/rowwise/rms_norm.h"
#include "kernels/ops/rowwise/sum_rows.h"

namespace vitrine::kernels {

struct RmsNormParts {
    std::int64_t count = 0; ///< parts; the last one may be shorter
    std::int64_t rows = 1;  ///< of a part
    bool wide = false;      ///< sums are double
    SumRows sums;           ///< its x holds the sums (parts, dim); empty without gradWeight
    std::uint64_t scratchBytes = 0;
};

/// Depends on shapes and dtypes only; the views point into op.scratch.
RmsNormParts partsOf(const RmsNormBackward& op);

} // namespace vitrine::kernels
