// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/embedding.h"

namespace vitrine::kernels {

void execute(CudaContext&, const Embedding&) {
    throwNoCuda(Embedding::kName);
}

} // namespace vitrine::kernels
