// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/cross_entropy.h"

#include "kernels/device/abi/cross_entropy.h"
#include "kernels/device/abi/sum_losses.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/loss/softmax_rows_cuda.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const CrossEntropy& op) {
    if (op.logits.shape[0] == 0) {
        return;
    }
    const std::int64_t vocab = op.logits.shape[1];
    abi::CrossEntropyParams parameters{};
    parameters.logits = op.logits.data;
    parameters.targets = op.targets.as<const int>();
    parameters.losses = op.losses.as<float>();
    parameters.gradLogits = op.gradLogits.data;
    parameters.logitsStride = op.logits.stride0();
    parameters.gradStride = op.gradLogits.empty() ? 0 : op.gradLogits.stride0();
    parameters.vocab = toInt(vocab, CrossEntropy::kName, "logits");
    parameters.softCap = op.softCap;
    parameters.gradScale = op.gradScale;
    launchFamily(context, "cross_entropy", abi::kCrossEntropyAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.logits)},
                  {"grad_dtype", dtypeOrBf16(op.gradLogits)},
                  {"losses_dtype", dtypeNumber(op.losses)},
                  {"vector", pieceOf(vocab, {&op.logits, &op.gradLogits})},
                  {"capped", op.softCap > 0 ? 1 : 0},
                  {"gradient", gradientKind(op.gradLogits, op.logits)},
                  {"row_threads", threadsOfRow(vocab)},
                  {"rows", op.logits.shape[0]}});
}

void execute(CudaContext& context, const SumLosses& op) {
    abi::SumLossesParams parameters{};
    parameters.losses = op.losses.as<const float>();
    parameters.out = op.out.data;
    parameters.rows = op.losses.shape[0];
    parameters.accumulate = op.accumulate ? 1 : 0;
    launchFamily(context, "sum_losses", abi::kSumLossesAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.losses)}, {"out_dtype", dtypeNumber(op.out)}});
}

} // namespace vitrine::kernels
