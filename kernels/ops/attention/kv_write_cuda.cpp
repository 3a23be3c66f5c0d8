// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/kv_write.h"

#include "kernels/device/abi/kv_write.h"
#include "kernels/ops/attention/kv_call.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const KvWrite& op) {
    abi::KvWriteParams parameters{};
    parameters.k = op.k.data;
    parameters.v = op.v.data;
    parameters.kStride = op.k.stride0();
    parameters.vStride = op.v.stride0();
    parameters.sequence = op.sequence.as<const int>();
    parameters.positions = op.positions.as<const int>();
    parameters.cache = kvParameters(op.cache, KvWrite::kName);
    parameters.kvHeads = toInt(op.k.shape[1], KvWrite::kName, "k");
    parameters.rounds = op.rounds ? 1 : 0;
    parameters.writes = op.writes ? 1 : 0;
    const std::int64_t width = op.k.shape[1] * op.k.shape[2];
    launchFamily(context, "kv_write", abi::kKvWriteAbi, parameters,
                 {{"k_dtype", dtypeNumber(op.k)},
                  {"v_dtype", dtypeNumber(op.v)},
                  {"cache_dtype", dtypeNumber(op.cache.keys)},
                  {"vector", pieceOf(width, {&op.k, &op.v, &op.cache.keys, &op.cache.values})},
                  {"tokens", op.k.shape[0]}});
}

} // namespace vitrine::kernels
