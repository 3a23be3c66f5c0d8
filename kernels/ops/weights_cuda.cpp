// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/weights.h"

namespace vitrine::kernels {

void execute(CudaContext&, const DequantizeMxfp4&) {
    throwNoCuda(DequantizeMxfp4::kName);
}

void execute(CudaContext&, const FillRandom&) {
    throwNoCuda(FillRandom::kName);
}

void execute(CudaContext&, const TransposeCopy&) {
    throwNoCuda(TransposeCopy::kName);
}

} // namespace vitrine::kernels
