// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/gated_activation.h"

namespace vitrine::kernels {

void execute(CudaContext&, const GatedActivation&) {
    throwNoCuda(GatedActivation::kName);
}

} // namespace vitrine::kernels
