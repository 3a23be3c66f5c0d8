// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rope.h"

namespace vitrine::kernels {

void execute(CudaContext&, const Rope&) {
    throwNoCuda(Rope::kName);
}

} // namespace vitrine::kernels
