// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What rounding did to a matrix, group by group. One pass over its rows does it all: a row is expanded, compared and
// counted while it is in the cache, so no rounded copy of the matrix is made.

#include <span>

#include "engine/workload/precision/tensor_detail.h"
#include "engine/workload/precision/tensor_groups.h"

namespace vitrine::engine {

/// Sets everything in `out` but its names and sizes. `values` (out, in) are those that `matrix` was rounded from. What
/// comes out does not depend on the number of threads. Throws Cancelled within the work on some rows.
void scanTensor(const RoundedMatrix& matrix, std::span<const float> values, base::ThreadPool& pool,
                const base::StopToken& stop, TensorDetail& out);

/// The error of one group. `values` and `rounded` are those of the group alone.
GroupError groupError(const GroupLayout& layout, std::int64_t number, std::span<const float> values,
                      std::span<const float> rounded);

} // namespace vitrine::engine
