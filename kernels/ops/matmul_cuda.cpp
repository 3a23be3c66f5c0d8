// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/matmul.h"

namespace vitrine::kernels {

void execute(CudaContext&, const Matmul&) {
    throwNoCuda(Matmul::kName);
}

} // namespace vitrine::kernels
