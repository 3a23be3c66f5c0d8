// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/moe.h"

namespace vitrine::kernels {

void execute(CudaContext&, const RouterTopK&) {
    throwNoCuda(RouterTopK::kName);
}

void execute(CudaContext&, const MoeCombine&) {
    throwNoCuda(MoeCombine::kName);
}

} // namespace vitrine::kernels
