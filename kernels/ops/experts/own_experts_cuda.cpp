// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/own_experts.h"

namespace vitrine::kernels {

/// Experts are not divided among CUDA devices yet, so a run of several ranks is refused before its first op.
void execute(CudaContext& /*context*/, const OwnExperts& /*op*/) {
    throwNoCuda(OwnExperts::kName);
}

} // namespace vitrine::kernels
