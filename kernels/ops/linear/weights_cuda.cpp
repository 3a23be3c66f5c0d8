// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/weights.h"

#include <algorithm>

#include "base/philox.h"
#include "kernels/device/abi/dequantize.h"
#include "kernels/device/abi/fill_random.h"
#include "kernels/device/abi/transpose_copy.h"
#include "kernels/formats/nf4_format.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/linear/weights_device.h"

namespace vitrine::kernels {

namespace {

/// Elements that one Philox block makes, as on the CPU.
std::int64_t elementsPerBlock(DType dtype) {
    return dtype == DType::U8 ? 16 : bitsOf(dtype) == 16 ? 8 : 4;
}

} // namespace

std::int64_t formatNumber(const WeightView& weight) {
    return static_cast<std::int64_t>(weight.format);
}

std::int64_t denseNumber(const WeightView& weight) {
    return weight.quantized() ? 0 : dtypeNumber(weight.data);
}

abi::PackedWeight packedForDevice(const WeightView& weight) {
    abi::PackedWeight out{};
    if (!weight.quantized()) {
        return out;
    }
    const PackedMatrix matrix = packedMatrixOf(weight, 0);
    out.data = matrix.data;
    out.scales = matrix.scales;
    out.zeros = matrix.zeros;
    out.scaleScales = matrix.scaleScales;
    out.order = matrix.order;
    out.rowBytes = matrix.rowBytes;
    out.out = static_cast<int>(weight.outFeatures());
    out.in = static_cast<int>(weight.inFeatures());
    out.groups = static_cast<int>(matrix.groups);
    out.group = static_cast<int>(matrix.group);
    out.rowGroup = static_cast<int>(matrix.rowGroup);
    out.scaleType = static_cast<int>(matrix.scaleType);
    out.scaleOffset = matrix.scaleOffset;
    std::ranges::copy(nf4ScaleMap(), out.scaleMap);
    return out;
}

void execute(CudaContext& context, const Dequantize& op) {
    if (op.out.shape.count() == 0) {
        return;
    }
    abi::DequantizeParams params{};
    params.weight = packedForDevice(op.weight);
    params.out = op.out.data;
    params.rows = op.weight.experts() * op.weight.outFeatures();
    launchFamily(context, "dequantize", abi::kDequantizeAbi, params,
                 {{"w_format", formatNumber(op.weight)},
                  {"out_dtype", dtypeNumber(op.out)},
                  {"in", op.weight.inFeatures()},
                  {"group", op.weight.group},
                  {"row_group", op.weight.rowGroup},
                  {"ordered", op.weight.order.empty() ? 0 : 1},
                  {"aligned", startsAligned(op.weight.data) && startsAligned(op.out) ? 1 : 0},
                  {"rows", params.rows},
                  {"elements", op.out.shape.count()}});
}

void execute(CudaContext& context, const FillRandom& op) {
    if (op.part.run > 0) {
        throwNoCuda("a part of FillRandom");
    }
    const base::PhiloxKey key = base::philoxKey(op.seed, op.stream);
    abi::FillRandomParams params{};
    params.out = op.out.data;
    params.elements = op.out.shape.count();
    params.seed = key.seed;
    params.stream = key.stream;
    params.center = op.center;
    params.deviation = op.deviation;
    if (params.elements == 0) {
        return;
    }
    const std::int64_t perBlock = elementsPerBlock(op.out.dtype);
    launchFamily(context, "fill_random", abi::kFillRandomAbi, params,
                 {{"out_dtype", dtypeNumber(op.out)},
                  {"constant", op.out.dtype == DType::U8 && op.deviation == 0 ? 1 : 0},
                  {"philox_blocks", (params.elements + perBlock - 1) / perBlock}});
}

void execute(CudaContext& context, const TransposeCopy& op) {
    const int rank = op.x.shape.rank();
    abi::TransposeCopyParams params{};
    params.x = op.x.data;
    params.out = op.out.data;
    params.rows = op.x.shape[rank - 2];
    params.columns = op.x.shape[rank - 1];
    if (op.x.shape.count() == 0) {
        return;
    }
    launchFamily(context, "transpose_copy", abi::kTransposeCopyAbi, params,
                 {{"element_bytes", bitsOf(op.x.dtype) / 8},
                  {"rows", params.rows},
                  {"columns", params.columns},
                  {"matrices", op.x.shape.count() / (params.rows * params.columns)}});
}

} // namespace vitrine::kernels
