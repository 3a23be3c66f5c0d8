// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/packed_rows.h"

#include "kernels/ops/linear/int4_product.h"

namespace vitrine::kernels {

namespace {

/// Whether the kernel finds the scales of a row by one multiplication (PackedRowsMatrix::scaleFactor).
bool findsScales(const WeightView& weight) {
    constexpr std::int64_t kMost = std::int64_t{1} << 32;
    return weight.rowGroup == 1 || weight.rowGroup >= weight.outFeatures() ||
           weight.outFeatures() < kMost / weight.rowGroup;
}

bool takesFp8(DType x, const WeightView& weight, DType out) {
    return weight.format == WeightFormat::Fp8 && !weight.transposed && weight.zeros.empty() && weight.order.empty() &&
           weight.inFeatures() % 32 == 0 && weight.group % 32 == 0 && findsScales(weight) && x == DType::BF16 &&
           (out == DType::BF16 || out == DType::F32);
}

} // namespace

bool takesPackedRows(DType x, const WeightView& weight, DType out) {
    constexpr std::int64_t kStep = 128;
    const std::int64_t group = weight.group;
    return (takesInt4(x, weight, out) || takesFp8(x, weight, out)) &&
           (kStep % group == 0 || group % kStep == 0 || group >= weight.inFeatures());
}

bool takesPackedRows(const Matmul& op) {
    return op.x.shape[0] <= kMaxPackedRows && op.adapter.empty() && op.scale == 1 &&
           takesPackedRows(op.x.dtype, op.weight, op.out.dtype);
}

std::int64_t packedRowsTogether(WeightFormat format) {
    constexpr std::int64_t kFewInt4Rows = 8; // more have a kernel of their own (int4_gemm_cuda.h)
    return format == WeightFormat::Int4 ? kFewInt4Rows : kMaxPackedRows;
}

} // namespace vitrine::kernels
