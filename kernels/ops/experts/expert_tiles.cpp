// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/expert_tiles.h"

#include <algorithm>

#include "kernels/device/abi/expert_sort.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kBlockFeatures = 64;

std::int64_t tileBound(std::int64_t pairs, std::int64_t experts) {
    return std::min(pairs, pairs / abi::kExpertTile + experts);
}

bool narrow(const TensorView& tensor) {
    return tensor.dtype == DType::BF16;
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
    const WeightView& weight = linear.weight;
    const bool format = weight.format == WeightFormat::Mxfp4 || (!weight.quantized() && narrow(weight.data) &&
                                                                 !weight.transposed && weight.inFeatures() % 8 == 0);
    return format && weight.outFeatures() % 16 == 0;
}

ExpertMatmulTiles::ExpertMatmulTiles(const ExpertMatmul& op, bool gather, ScratchLayout layout)
    : tiles(op.ids.shape.count(), op.weight.experts(), layout) {
    if (gather) {
        gathered = takeTileRows(tiles, op.weight.inFeatures(), layout);
    }
    bytes = layout.bytes();
}

bool ExpertMatmulTiles::gathers(const ExpertMatmul& op) {
    return narrow(op.x) && narrow(op.out) && multipliesInTiles({op.weight, op.bias, {}}) && op.x.stride0() % 8 == 0 &&
           op.out.stride0() % 8 == 0;
}

} // namespace vitrine::kernels
