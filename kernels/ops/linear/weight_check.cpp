// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/weight_check.h"

#include "kernels/formats/mxfp4_format.h"
#include "kernels/formats/nf4_format.h"

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
    rule.require(weight.zeros.empty() && weight.scaleScales.empty(), field,
                 "MXFP4 weights have neither zeros nor scales of scales");
}

void checkNf4(const OpCheck& rule, const WeightView& weight, std::string_view field) {
    const Shape& scales = weight.scales.shape;
    rule.require(!weight.transposed, field, "NF4 weights are never transposed");
    rule.require(weight.shape.rank() == 2, field, "NF4 weights are single matrices");
    rule.dtype(weight.data, field, DType::U8);
    rule.contiguous(weight.data, field);
    rule.present(weight.scales, field);
    rule.contiguous(weight.scales, field);
    rule.require(weight.data.shape.rank() == 2 && scales.rank() == 2, field, "data and scales: rank is not 2");
    rule.require(weight.data.shape[0] == scales[0] && weight.data.shape[1] * 2 == scales[1] * kNf4Group, field,
                 "there is not one scale for 64 elements of a row: the input axis must be a multiple of 64");
    rule.require(weight.zeros.empty(), field, "NF4 weights have no zeros");
    if (weight.scaleScales.empty()) {
        rule.dtype(weight.scales, field, DType::F32);
        return;
    }
    rule.dtype(weight.scales, field, DType::U8);
    rule.dtype(weight.scaleScales, field, DType::F32);
    rule.contiguous(weight.scaleScales, field);
    rule.require(weight.scaleScales.shape.count() == (scales.count() + kNf4ScaleGroup - 1) / kNf4ScaleGroup, field,
                 "there is not one scale for 256 packed scales");
}

} // namespace

void checkWeight(const OpCheck& rule, const WeightView& weight, std::string_view field) {
    rule.require(!weight.empty(), field, "missing");
    rule.require(weight.shape.rank() == 2 || weight.shape.rank() == 3, field, "rank is not 2 or 3");
    switch (weight.format) {
    case WeightFormat::Dense:
        rule.floating(weight.data, field);
        rule.rowsContiguous(weight.data, field);
        rule.require(weight.scales.empty() && weight.zeros.empty() && weight.scaleScales.empty(), field,
                     "dense weights have neither scales nor zeros");
        return;
    case WeightFormat::Mxfp4:
        return checkMxfp4(rule, weight, field);
    case WeightFormat::Nf4:
        return checkNf4(rule, weight, field);
    }
}

} // namespace vitrine::kernels
