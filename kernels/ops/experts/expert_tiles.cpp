// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/expert_tiles.h"

#include <algorithm>
#include <limits>

#include "kernels/device/abi/expert_sort.h"
#include "kernels/ops/linear/int4_product.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kBlockFeatures = 64;
constexpr std::int64_t kLoad = 128; ///< inputs of two blocks

std::int64_t tileBound(std::int64_t pairs, std::int64_t experts) {
    return std::min(pairs, pairs / abi::kExpertTile + experts);
}

bool narrow(const TensorView& tensor) {
    return tensor.dtype == DType::BF16;
}

/// Whether the kernels count all groups of a stack in 32 bits.
bool countsGroups(const WeightView& weight) {
    return weight.scales.shape.count() <= std::numeric_limits<std::uint32_t>::max();
}

/// Whether the inputs that a load brings are whole groups, or are inside of one.
bool loadsGroups(const WeightView& weight) {
    return weight.group >= weight.inFeatures() || kLoad % weight.group == 0 || weight.group % kLoad == 0;
}

/// Lanes load 16 elements, and the 128 inputs of two blocks have one scale.
bool takesFp8(const WeightView& weight) {
    return weight.format == WeightFormat::Fp8 && !weight.transposed && weight.order.empty() &&
           weight.inFeatures() % 16 == 0 && (weight.group % kLoad == 0 || weight.group >= weight.inFeatures()) &&
           (weight.scales.dtype == DType::F32 || narrow(weight.scales));
}

bool takesFormat(const WeightView& weight) {
    if (!weight.quantized()) {
        return narrow(weight.data) && !weight.transposed && weight.inFeatures() % 8 == 0;
    }
    const bool takes = weight.format == WeightFormat::Mxfp4 || takesFp8(weight) ||
                       (takesInt4(DType::BF16, weight, DType::BF16) && loadsGroups(weight));
    return takes && countsGroups(weight);
}

} // namespace

ExpertTiles::ExpertTiles(std::int64_t pairCount, std::int64_t expertCount, ScratchLayout& layout)
    : pairs(pairCount), experts(expertCount), bound(tileBound(pairCount, expertCount)),
      count(layout.take(DType::I32, Shape{1})), tiles(layout.take(DType::I32, Shape{bound, 2})),
      slots(layout.take(DType::I32, Shape{bound, abi::kExpertTile})) {}

TensorView takeTileRows(const ExpertTiles& tiles, std::int64_t features, ScratchLayout& layout) {
    const std::int64_t blocks = (features + kBlockFeatures - 1) / kBlockFeatures;
    return layout.take(DType::BF16, Shape{tiles.bound, blocks, abi::kExpertTile, kBlockFeatures});
}

bool multipliesInTiles(const LinearView& linear) {
    return takesFormat(linear.weight) && linear.weight.outFeatures() % 16 == 0;
}

bool manyInTiles(std::int64_t tokens, const WeightView& weight) {
    return (weight.format != WeightFormat::Int4 && weight.format != WeightFormat::Fp8) || tokens > kPackedTokensInPairs;
}

ExpertMatmulTiles::ExpertMatmulTiles(const ExpertMatmul& op, bool gather, ScratchLayout layout)
    : tiles(op.ids.shape.count(), op.weight.experts(), layout) {
    if (gather) {
        gathered = takeTileRows(tiles, op.weight.inFeatures(), layout);
    }
    bytes = layout.bytes();
}

bool ExpertMatmulTiles::gathers(const ExpertMatmul& op) {
    return narrow(op.x) && narrow(op.out) && multipliesInTiles({op.weight, op.bias, {}}) &&
           manyInTiles(op.ids.shape[0], op.weight) && op.x.stride0() % 8 == 0 && op.out.stride0() % 8 == 0;
}

} // namespace vitrine::kernels
