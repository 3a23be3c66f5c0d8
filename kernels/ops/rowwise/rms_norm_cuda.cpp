// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rms_norm.h"

#include "kernels/device/abi/rms_norm.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

namespace {

/// Threads that share a row: a warp while its registers hold the row, else a block.
std::int64_t threadsOfRow(std::int64_t dim) {
    constexpr std::int64_t kPerThread = 32; ///< elements
    if (dim <= 32 * kPerThread) {
        return 32;
    }
    return dim <= 256 * kPerThread ? 256 : 1024;
}

} // namespace

void execute(CudaContext& context, const RmsNorm& op) {
    const std::int64_t dim = op.x.shape[1];
    abi::RmsNormParams parameters{};
    parameters.x = op.x.data;
    parameters.weight = op.weight.data;
    parameters.out = op.out.data;
    parameters.xStride = op.x.stride0();
    parameters.outStride = op.out.stride0();
    parameters.rows = op.x.shape[0];
    parameters.eps = op.eps;
    launchFamily(context, "rms_norm", abi::kRmsNormAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.x)},
                  {"w_dtype", dtypeNumber(op.weight)},
                  {"out_dtype", dtypeNumber(op.out)},
                  {"vector", pieceOf(dim, {&op.x, &op.weight, &op.out})},
                  {"form", static_cast<std::int64_t>(op.form)},
                  {"row_threads", threadsOfRow(dim)},
                  {"rows", op.x.shape[0]},
                  {"dim", dim}});
}

} // namespace vitrine::kernels
