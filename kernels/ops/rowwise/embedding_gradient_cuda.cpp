// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/device/abi/embedding_gradient.h"

#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/rowwise/embedding.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const EmbeddingGradient& op) {
    const std::int64_t dim = op.gradOut.shape[1];
    abi::EmbeddingGradientParams parameters{};
    parameters.order = op.order.as<const int>();
    parameters.ids = op.ids.as<const int>();
    parameters.gradOut = op.gradOut.data;
    parameters.gradTable = op.gradTable.as<float>();
    parameters.gradOutStride = op.gradOut.stride0();
    parameters.gradTableStride = op.gradTable.stride0();
    parameters.tokens = op.ids.shape[0];
    parameters.dim = dim;
    parameters.vocab = toInt(op.gradTable.shape[0], EmbeddingGradient::kName, "gradTable");
    parameters.scale = op.scale;
    launchFamily(context, "embedding_gradient", abi::kEmbeddingGradientAbi, parameters,
                 {{"grad_dtype", dtypeNumber(op.gradOut)},
                  {"table_dtype", dtypeNumber(op.gradTable)},
                  {"vector", pieceOf(dim, {&op.gradOut, &op.gradTable})},
                  {"tokens", op.ids.shape[0]},
                  {"dim", dim}});
}

} // namespace vitrine::kernels
