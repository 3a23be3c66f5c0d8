// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/log_probs.h"

#include "kernels/device/abi/log_probs.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/loss/softmax_rows_cuda.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const LogProbs& op) {
    if (op.logits.shape[0] == 0) {
        return;
    }
    const std::int64_t vocab = op.logits.shape[1];
    abi::LogProbsParams parameters{};
    parameters.logits = op.logits.data;
    parameters.targets = op.targets.as<const int>();
    parameters.logProbs = op.logProbs.as<float>();
    parameters.entropies = op.entropies.as<float>();
    parameters.lse = op.lse.as<float>();
    parameters.logitsStride = op.logits.stride0();
    parameters.vocab = toInt(vocab, LogProbs::kName, "logits");
    parameters.softCap = op.softCap;
    parameters.scale = scaleOfLogits(op);
    launchFamily(context, "log_probs", abi::kLogProbsAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.logits)},
                  {"values_dtype", dtypeNumber(op.logProbs)},
                  {"vector", pieceOf(vocab, {&op.logits})},
                  {"capped", op.softCap > 0 ? 1 : 0},
                  {"entropy", op.entropies.empty() ? 0 : 1},
                  {"row_threads", threadsOfRow(vocab)},
                  {"rows", op.logits.shape[0]}});
}

} // namespace vitrine::kernels
