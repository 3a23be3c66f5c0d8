// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Grouped expert products as kernel calls.

#include "kernels/ops/expert_tiles.h"

namespace vitrine::kernels {

/// Runs ExpertMlp with grouped products; false, and nothing done, when shapes or the kernel packs do not allow it.
bool multiplyInTiles(CudaContext& context, const ExpertMlp& op);

} // namespace vitrine::kernels
