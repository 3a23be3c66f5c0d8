// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/grouped_matmul.h"

#include "kernels/ops/experts/group_pairs.h"

namespace vitrine::kernels {

void execute(CudaContext&, const GroupPairs&) {
    throwNoCuda(GroupPairs::kName);
}

void execute(CudaContext&, const GatherPairs&) {
    throwNoCuda(GatherPairs::kName);
}

void execute(CudaContext&, const GroupedMatmul&) {
    throwNoCuda(GroupedMatmul::kName);
}

void execute(CudaContext&, const GroupedInputGradient&) {
    throwNoCuda(GroupedInputGradient::kName);
}

void execute(CudaContext&, const GroupedWeightGradient&) {
    throwNoCuda(GroupedWeightGradient::kName);
}

void execute(CudaContext&, const GroupedBiasGradient&) {
    throwNoCuda(GroupedBiasGradient::kName);
}

void execute(CudaContext&, const GroupedDots&) {
    throwNoCuda(GroupedDots::kName);
}

} // namespace vitrine::kernels
