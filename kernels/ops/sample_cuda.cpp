// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/sample.h"

namespace vitrine::kernels {

void execute(CudaContext&, const Sample&) {
    throwNoCuda(Sample::kName);
}

} // namespace vitrine::kernels
