// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/sampling/greedy_parts.h"

namespace vitrine::kernels {

// A vocabulary is not divided among CUDA devices yet, so a run of several ranks is refused before its first op.

void execute(CudaContext& /*context*/, const BestOfPart& /*op*/) {
    throwNoCuda(BestOfPart::kName);
}

void execute(CudaContext& /*context*/, const BestOfParts& /*op*/) {
    throwNoCuda(BestOfParts::kName);
}

} // namespace vitrine::kernels
