// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/weight_check.h"

#include "kernels/formats/mxfp4_format.h"

namespace vitrine::kernels {

namespace {

void checkMxfp4(const OpCheck& rule, const WeightView& weight, std::string_view field) {
    const Shape& blocks = weight.data.shape;
    const Shape& scales = weight.scales.shape;
    rule.require(!weight.transposed, field, "MXFP4 weights are never transposed");
    rule.dtype(weight.data, field, DType::U8);
    rule.dtype(weight.scales, field, DType::U8);
    rule.contiguous(weight.data, field);
    rule.contiguous(weight.scales, field);
    rule.present(weight.scales, field);
    rule.require(blocks.rank() == 3 || blocks.rank() == 4, field, "blocks: rank is not 3 or 4");
    rule.require(scales.rank() == blocks.rank() - 1, field, "scales: rank is not one below the blocks'");
    rule.require(blocks[blocks.rank() - 1] == kMxfp4Group / 2, field, "blocks: last dimension is not 16");
    for (int dim = 0; dim < scales.rank(); ++dim) {
        rule.require(scales[dim] == blocks[dim], field, "scales: shape differs from the blocks'");
    }
    rule.require(weight.zeros.empty(), field, "MXFP4 weights have no zeros");
}

} // namespace

void checkWeight(const OpCheck& rule, const WeightView& weight, std::string_view field) {
    rule.require(!weight.empty(), field, "missing");
    rule.require(weight.shape.rank() == 2 || weight.shape.rank() == 3, field, "rank is not 2 or 3");
    switch (weight.format) {
    case WeightFormat::Dense:
        rule.floating(weight.data, field);
        rule.rowsContiguous(weight.data, field);
        rule.require(weight.scales.empty() && weight.zeros.empty(), field,
                     "dense weights have neither scales nor zeros");
        return;
    case WeightFormat::Mxfp4:
        return checkMxfp4(rule, weight, field);
    }
}

} // namespace vitrine::kernels
