// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a block mask has beside the runs of its rows.

#include "kernels/program/block_mask.h"

namespace vitrine::kernels {

/// Fills in the columns and the numbers of blocks. REQUIRES the shape, rowOffsets and rowRuns.
void completeFromRows(BlockMask& mask, base::ThreadPool& pool, const base::StopToken& stop);

} // namespace vitrine::kernels
