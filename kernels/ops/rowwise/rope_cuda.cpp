// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rope.h"

#include "kernels/device/abi/rope.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const Rope& op) {
    const std::int64_t headDim = op.x.shape[2];
    const bool dense = !op.interleaved && op.x.stride(1) == headDim; // pieces of several elements lie together
    abi::RopeParams parameters{};
    parameters.x = op.x.data;
    parameters.positions = op.positions.as<const int>();
    parameters.inverseFrequency = op.inverseFrequency.as<const float>();
    parameters.stride = op.x.stride0();
    parameters.headStride = toInt(op.x.stride(1), Rope::kName, "x");
    parameters.interleaved = op.interleaved ? 1 : 0;
    parameters.tokens = toInt(op.x.shape[0], Rope::kName, "x");
    parameters.heads = toInt(op.x.shape[1], Rope::kName, "x");
    parameters.attentionScale = op.attentionScale;
    parameters.inverse = op.inverse ? 1 : 0;
    launchFamily(context, "rope", abi::kRopeAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.x)},
                  {"vector", dense ? pieceOf(headDim / 2, {&op.x}) : 1},
                  {"tokens", op.x.shape[0]},
                  {"head_dim", headDim}});
}

} // namespace vitrine::kernels
