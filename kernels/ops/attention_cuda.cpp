// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention.h"

namespace vitrine::kernels {

void execute(CudaContext&, const Attention&) {
    throwNoCuda(Attention::kName);
}

} // namespace vitrine::kernels
