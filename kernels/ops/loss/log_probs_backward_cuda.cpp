// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/device/abi/log_probs_backward.h"

#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/loss/log_probs.h"
#include "kernels/ops/loss/softmax_rows_cuda.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const LogProbsBackward& op) {
    if (op.logits.shape[0] == 0) {
        return;
    }
    const std::int64_t vocab = op.logits.shape[1];
    abi::LogProbsBackwardParams parameters{};
    parameters.logits = op.logits.data;
    parameters.targets = op.targets.as<const int>();
    parameters.lse = op.lse.as<const float>();
    parameters.gradLogProbs = op.gradLogProbs.as<const float>();
    parameters.gradLogits = op.gradLogits.data;
    parameters.logitsStride = op.logits.stride0();
    parameters.gradStride = op.gradLogits.stride0();
    parameters.vocab = toInt(vocab, LogProbsBackward::kName, "logits");
    parameters.softCap = op.softCap;
    parameters.inverseTemperature = op.inverseTemperature;
    parameters.scale = scaleOfLogits(op);
    launchFamily(context, "log_probs_backward", abi::kLogProbsBackwardAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.logits)},
                  {"grad_dtype", dtypeNumber(op.gradLogits)},
                  {"values_dtype", dtypeNumber(op.gradLogProbs)},
                  {"lse_dtype", dtypeNumber(op.lse)},
                  {"vector", pieceOf(vocab, {&op.logits, &op.gradLogits})},
                  {"capped", op.softCap > 0 ? 1 : 0},
                  {"gradient", gradientKind(op.gradLogits, op.logits)},
                  {"row_threads", threadsOfRow(vocab)},
                  {"rows", op.logits.shape[0]}});
}

} // namespace vitrine::kernels
