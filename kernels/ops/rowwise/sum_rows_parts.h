// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How SumRows divides its rows.

#include <cstdint>

#include "kernels/ops/rowwise/sum_rows.h"

namespace vitrine::kernels {

struct RowParts {
    std::int64_t count = 1;   ///< parts; a single one goes to out without scratch
    std::int64_t rows = 1;    ///< of a part; the last one may be shorter
    DType dtype = DType::F32; ///< of the sums
};

/// Depends on shapes and dtypes only.
RowParts partsOf(const SumRows& op);

} // namespace vitrine::kernels
