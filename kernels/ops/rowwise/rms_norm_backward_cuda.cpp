// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/device/abi/rms_norm_backward.h"

#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/rowwise/rms_norm.h"
#include "kernels/ops/rowwise/rms_norm_parts.h"

namespace vitrine::kernels {

namespace {

/// Threads that share the rows of a part: a warp or a block, as long as their registers hold a row and its sums.
std::int64_t threadsOfPart(std::int64_t dim) {
    constexpr std::int64_t kPerThread = 16; ///< elements; of rows of more than 8192 twice as many
    if (dim <= 32 * kPerThread) {
        return 32;
    }
    return dim <= 256 * kPerThread ? 256 : 512;
}

} // namespace

void execute(CudaContext& context, const RmsNormBackward& op) {
    const RmsNorm& forward = op.forward;
    const std::int64_t dim = forward.x.shape[1];
    const RmsNormParts parts = partsOf(op);
    const bool sums = !op.gradWeight.empty();
    abi::RmsNormBackwardParams parameters{};
    parameters.x = forward.x.data;
    parameters.weight = forward.weight.data;
    parameters.gradOut = op.gradOut.data;
    parameters.gradResidual = op.gradResidual.data;
    parameters.gradX = op.gradX.data;
    parameters.partials = sums ? parts.sums.x.as<float>() : nullptr;
    parameters.xStride = forward.x.stride0();
    parameters.gradOutStride = op.gradOut.stride0();
    parameters.gradResidualStride = op.gradResidual.empty() ? 0 : op.gradResidual.stride0();
    parameters.gradXStride = op.gradX.stride0();
    parameters.rows = forward.x.shape[0];
    parameters.partRows = parts.rows;
    parameters.eps = forward.eps;
    launchFamily(context, "rms_norm_backward", abi::kRmsNormBackwardAbi, parameters,
                 {{"x_dtype", dtypeNumber(forward.x)},
                  {"w_dtype", dtypeNumber(forward.weight)},
                  {"grad_dtype", dtypeNumber(op.gradOut)},
                  {"residual_dtype", dtypeOrBf16(op.gradResidual)},
                  {"out_dtype", dtypeNumber(op.gradX)},
                  {"sums_dtype", optionalDtype(op.gradWeight)},
                  {"vector", pieceOf(dim, {&forward.x, &forward.weight, &op.gradOut, &op.gradResidual, &op.gradX})},
                  {"form", static_cast<std::int64_t>(forward.form)},
                  {"row_threads", threadsOfPart(dim)},
                  {"parts", parts.count},
                  {"dim", dim}});
    if (sums && parts.count > 0) {
        execute(context, parts.sums);
    }
}

} // namespace vitrine::kernels
