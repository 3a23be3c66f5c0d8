// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rms_norm.h"

namespace vitrine::kernels {

void execute(CudaContext&, const RmsNorm&) {
    throwNoCuda(RmsNorm::kName);
}

} // namespace vitrine::kernels
