// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/kv_write.h"

namespace vitrine::kernels {

void execute(CudaContext&, const KvWrite&) {
    throwNoCuda(KvWrite::kName);
}

} // namespace vitrine::kernels
