// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/embedding.h"

#include "kernels/device/abi/embedding.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const Embedding& op) {
    if (op.firstId >= 0) {
        throwNoCuda("Embedding of a part of a table");
    }
    const std::int64_t dim = op.table.shape[1];
    abi::EmbeddingParams parameters{};
    parameters.ids = op.ids.as<const int>();
    parameters.table = op.table.data;
    parameters.out = op.out.data;
    parameters.tableStride = op.table.stride0();
    parameters.outStride = op.out.stride0();
    parameters.tokens = op.ids.shape[0];
    parameters.dim = dim;
    parameters.vocab = toInt(op.table.shape[0], Embedding::kName, "table");
    parameters.scale = op.scale;
    launchFamily(context, "embedding", abi::kEmbeddingAbi, parameters,
                 {{"table_dtype", dtypeNumber(op.table)},
                  {"out_dtype", dtypeNumber(op.out)},
                  {"vector", pieceOf(dim, {&op.table, &op.out})},
                  {"tokens", op.ids.shape[0]},
                  {"dim", dim}});
}

} // namespace vitrine::kernels
