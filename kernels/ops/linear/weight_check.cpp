// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/weight_check.h"

#include "kernels/formats/mxfp4_format.h"

namespace vitrine::kernels {

void checkWeight(const OpCheck& rule, const WeightView& weight, std::string_view field) {
    const bool quantized = !weight.mxfp4.blocks.empty();
    rule.require(quantized != !weight.dense.empty(), field, "exactly one of dense and mxfp4 must be set");
    if (!quantized) {
        rule.require(weight.dense.shape.rank() == 2 || weight.dense.shape.rank() == 3, field, "rank is not 2 or 3");
        rule.floating(weight.dense, field);
        rule.rowsContiguous(weight.dense, field);
        return;
    }
    const Shape& blocks = weight.mxfp4.blocks.shape;
    const Shape& scales = weight.mxfp4.scales.shape;
    rule.require(!weight.transposed, field, "MXFP4 weights are never transposed");
    rule.dtype(weight.mxfp4.blocks, field, DType::U8);
    rule.dtype(weight.mxfp4.scales, field, DType::U8);
    rule.contiguous(weight.mxfp4.blocks, field);
    rule.contiguous(weight.mxfp4.scales, field);
    rule.present(weight.mxfp4.scales, field);
    rule.require(blocks.rank() == 3 || blocks.rank() == 4, field, "blocks: rank is not 3 or 4");
    rule.require(scales.rank() == blocks.rank() - 1, field, "scales: rank is not one below the blocks'");
    rule.require(blocks[blocks.rank() - 1] == kMxfp4Group / 2, field, "blocks: last dimension is not 16");
    for (int dim = 0; dim < scales.rank(); ++dim) {
        rule.require(scales[dim] == blocks[dim], field, "scales: shape differs from the blocks'");
    }
}

} // namespace vitrine::kernels
