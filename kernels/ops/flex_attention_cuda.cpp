// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/flex_attention.h"

namespace vitrine::kernels {

void execute(CudaContext&, const FlexAttention&) {
    throwNoCuda(FlexAttention::kName);
}

void execute(CudaContext&, const FlexAttentionBackward&) {
    throwNoCuda(FlexAttentionBackward::kName);
}

} // namespace vitrine::kernels
