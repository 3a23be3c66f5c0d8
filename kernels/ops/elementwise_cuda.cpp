// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/elementwise.h"

namespace vitrine::kernels {

void execute(CudaContext&, const Add&) {
    throwNoCuda(Add::kName);
}

void execute(CudaContext&, const SoftCap&) {
    throwNoCuda(SoftCap::kName);
}

void execute(CudaContext&, const Cast&) {
    throwNoCuda(Cast::kName);
}

} // namespace vitrine::kernels
