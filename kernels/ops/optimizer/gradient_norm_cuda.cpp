// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/gradient_norm.h"

#include "kernels/device/abi/clip_scale.h"
#include "kernels/device/abi/squared_norm.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const SquaredNorm& op) {
    const std::int64_t count = op.x.shape.count();
    const NormParts parts = normParts(count);
    const TensorView row{op.x.data, op.x.dtype, Shape{count}, {}};
    abi::SquaredNormParams parameters{};
    parameters.x = op.x.data;
    parameters.sums = op.scratch.as<double>();
    parameters.out = op.out.as<double>();
    parameters.n = count;
    parameters.partSize = parts.size;
    parameters.parts = static_cast<int>(parts.count);
    parameters.accumulate = op.accumulate ? 1 : 0;
    launchFamily(context, "squared_norm", abi::kSquaredNormAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.x)}, {"vector", pieceOf(count, {&row})}, {"parts", parts.count}});
}

void execute(CudaContext& context, const ClipScale& op) {
    abi::ClipScaleParams parameters{};
    parameters.squaredNorm = op.squaredNorm.as<const double>();
    parameters.scale = op.scale.as<float>();
    parameters.norm = op.norm.as<float>();
    parameters.maxNorm = op.maxNorm;
    launchFamily(context, "clip_scale", abi::kClipScaleAbi, parameters, {});
}

} // namespace vitrine::kernels
