// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/int4_product.h"

namespace vitrine::kernels {

bool takesInt4(DType x, const WeightView& weight, DType out) {
    return weight.format == WeightFormat::Int4 && !weight.transposed && weight.order.empty() && weight.rowGroup == 1 &&
           weight.inFeatures() % 32 == 0 && weight.group % 32 == 0 && x == DType::BF16 &&
           (out == DType::BF16 || out == DType::F32);
}

bool takesInt4Tiles(const Matmul& op) {
    constexpr std::int64_t kChunk = 256;
    if (!takesInt4(op.x.dtype, op.weight, op.out.dtype) || !op.adapter.empty() || op.scale != 1 ||
        op.weight.experts() != 1 || op.weight.outFeatures() % 8 != 0) {
        return false;
    }
    const std::int64_t in = op.weight.inFeatures();
    const std::int64_t group = op.weight.group;
    // Registers do not hold so many numbers of groups that have to be looked for one by one.
    const bool tooMany = in % kChunk != 0 && group < 64 && op.weight.scales.dtype == DType::F32;
    return !tooMany && (kChunk % group == 0 || group % kChunk == 0 || group >= in);
}

} // namespace vitrine::kernels
