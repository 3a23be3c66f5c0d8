// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/sum_rows.h"

#include "kernels/device/abi/sum_rows.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/rowwise/sum_rows_parts.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const SumRows& op) {
    const std::int64_t n = op.x.shape[1];
    const RowParts parts = partsOf(op);
    abi::SumRowsParams parameters{};
    parameters.x = op.x.data;
    parameters.out = op.out.as<float>();
    parameters.partials = parts.count > 1 ? op.scratch.as<float>() : nullptr;
    parameters.xStride = op.x.stride0();
    parameters.rows = op.x.shape[0];
    parameters.n = n;
    parameters.partRows = parts.rows;
    parameters.parts = toInt(parts.count, SumRows::kName, "x");
    parameters.accumulate = op.accumulate ? 1 : 0;
    launchFamily(context, "sum_rows", abi::kSumRowsAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.x)},
                  {"out_dtype", dtypeNumber(op.out)},
                  {"vector", pieceOf(n, {&op.x, &op.out})},
                  {"parts", parts.count},
                  {"n", n}});
}

} // namespace vitrine::kernels
