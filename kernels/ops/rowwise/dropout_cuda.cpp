// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/dropout.h"

#include "kernels/device/abi/dropout.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/rowwise/dropout_choice.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const Dropout& op) {
    const std::int64_t n = op.x.shape[1];
    const DropoutChoice choice = choiceOf(op);
    abi::DropoutParams parameters{};
    parameters.x = op.x.data;
    parameters.out = op.out.data;
    parameters.xStride = op.x.stride0();
    parameters.outStride = op.out.stride0();
    parameters.rows = op.x.shape[0];
    parameters.n = n;
    parameters.firstRow = op.firstRow;
    parameters.stream = op.stream;
    parameters.key0 = choice.key.seed;
    parameters.key1 = choice.key.stream;
    parameters.threshold = choice.threshold;
    parameters.factor = choice.factor;
    launchFamily(context, "dropout", abi::kDropoutAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.x)},
                  {"out_dtype", dtypeNumber(op.out)},
                  {"vector", pieceOf(n, {&op.x, &op.out})},
                  {"rows", op.x.shape[0]},
                  {"n", n}});
}

} // namespace vitrine::kernels
