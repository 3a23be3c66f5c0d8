// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/expert_tiles_cuda.h"

#include <algorithm>

#include "kernels/device/abi/expert_gather.h"
#include "kernels/device/abi/expert_matmul.h"
#include "kernels/device/abi/expert_sort.h"
#include "kernels/ops/linear/few_rows_cuda.h"
#include "kernels/ops/linear/packed_rows_cuda.h"
#include "kernels/ops/linear/weights_device.h"

namespace vitrine::kernels {

void sortPairs(CudaContext& context, const TensorView& ids, const ExpertTiles& tiles) {
    abi::ExpertSortParams params{};
    params.ids = ids.as<const int>();
    params.tileCount = tiles.count.as<int>();
    params.tiles = tiles.tiles.as<int>();
    params.slots = tiles.slots.as<int>();
    params.pairs = static_cast<int>(tiles.pairs);
    params.experts = static_cast<int>(tiles.experts);
    launchFamily(context, "expert_sort", abi::kExpertSortAbi, params,
                 {{"experts", tiles.experts}, {"pairs", tiles.pairs}});
}

void gatherRows(CudaContext& context, const TensorView& x, std::int64_t pairsPerRow, const ExpertTiles& tiles,
                const TensorView& gathered) {
    abi::ExpertGatherParams params{};
    params.x = x.data;
    params.out = gathered.data;
    params.tileCount = tiles.count.as<const int>();
    params.tiles = tiles.tiles.as<const int>();
    params.slots = tiles.slots.as<const int>();
    params.xStride = x.stride0();
    params.pairsPerRow = static_cast<int>(pairsPerRow);
    params.in = static_cast<int>(x.shape[1]);
    params.tileBound = static_cast<int>(tiles.bound);
    launchFamily(
        context, "expert_gather", abi::kExpertGatherAbi, params,
        {{"x_dtype", dtypeNumber(x)}, {"in", x.shape[1]}, {"x_stride", x.stride0()}, {"tile_bound", tiles.bound}});
}

TileProduct::TileProduct(const ExpertTiles& tiles, const TensorView& rows, const LinearView& linear,
                         const TensorView& result, const Gate* gate) {
    params.x = rows.data;
    params.tileCount = tiles.count.as<const int>();
    params.tiles = tiles.tiles.as<const int>();
    params.slots = tiles.slots.as<const int>();
    const WeightView& weight = linear.weight;
    params.weights = weight.data.data;
    params.scales = weight.scales.data;
    params.zeros = weight.zeros.as<const unsigned char>();
    params.bias = linear.bias.data;
    params.biasStride = linear.bias.empty() ? 0 : linear.bias.stride0();
    params.result = result.data;
    params.resultStride = gate == nullptr ? result.stride0() : 0;
    params.alpha = gate == nullptr ? 0 : gate->alpha;
    params.limit = gate == nullptr ? 0 : gate->limit;
    params.rowGroup = static_cast<int>(std::min<std::int64_t>(weight.rowGroup, weight.outFeatures()));
    const bool numbers = weight.format == WeightFormat::Int4 || weight.format == WeightFormat::Fp8;
    variables = {{{"in", weight.inFeatures()},
                  {"out", weight.outFeatures()},
                  {"gated", gate == nullptr ? 0 : 1},
                  {"activation", gate == nullptr ? 0 : static_cast<std::int64_t>(gate->activation)},
                  {"halves", gate != nullptr && gate->layout == GateLayout::Halves ? 1 : 0},
                  {"w_format", formatNumber(weight)},
                  {"group", numbers ? weight.group : 0},
                  {"zeros", weight.zeros.empty() ? 0 : 1},
                  {"scale_dtype", numbers ? dtypeNumber(weight.scales) : 0},
                  {"bias_dtype", optionalDtype(linear.bias)},
                  {"tile_bound", tiles.bound}}};
}

namespace {

/// INT4 or FP8 weights as they are stored; false when another kernel must do it.
bool multiplyPackedExperts(CudaContext& context, const ExpertMatmul& op, const ExpertTiles& tiles,
                           std::int64_t pairsPerRow) {
    PackedProduct product;
    product.x = op.x;
    product.targets[0] = {op.weight, op.bias, op.out};
    product.rowsOf = abi::PackedOfTiles;
    product.rows = std::min<std::int64_t>(op.ids.shape[0], abi::kExpertTile); // an expert has one pair of a token
    product.tileCount = tiles.count.as<const int>();
    product.tiles = tiles.tiles.as<const int>();
    product.slots = tiles.slots.as<const int>();
    product.jobs = tiles.bound;
    product.pairsPerRow = pairsPerRow;
    return multiplyPackedRows(context, product);
}

} // namespace

void execute(CudaContext& context, const ExpertMatmul& op) {
    if (op.ids.shape.count() == 0) {
        return;
    }
    const std::int64_t pairsPerRow = op.xPerToken ? op.ids.shape[1] : 1;
    if (ExpertMatmulTiles::gathers(op)) {
        const ExpertMatmulTiles scratch(op, true, ScratchLayout(op.scratch.data));
        const TileProduct product(scratch.tiles, scratch.gathered, {op.weight, op.bias, {}}, op.out, nullptr);
        if (scratch.bytes <= op.scratch.bytes() && context.fits(product.call())) {
            sortPairs(context, op.ids, scratch.tiles);
            gatherRows(context, op.x, pairsPerRow, scratch.tiles, scratch.gathered);
            context.launch(product.call());
            return;
        }
    }
    const ExpertMatmulTiles scratch(op, false, ScratchLayout(op.scratch.data));
    sortPairs(context, op.ids, scratch.tiles);
    if (multiplyPackedExperts(context, op, scratch.tiles, pairsPerRow)) {
        return;
    }
    abi::ExpertMatmulParams params{};
    params.x = op.x.data;
    params.tileCount = scratch.tiles.count.as<const int>();
    params.tiles = scratch.tiles.tiles.as<const int>();
    params.slots = scratch.tiles.slots.as<const int>();
    params.dense = WeightPointers(op.weight).dense;
    params.packed = packedForDevice(op.weight);
    params.bias = op.bias.data;
    params.result = op.out.data;
    params.xStride = op.x.stride0();
    params.biasStride = op.bias.empty() ? 0 : op.bias.stride0();
    params.resultStride = op.out.stride0();
    params.pairsPerRow = static_cast<int>(pairsPerRow);
    params.in = static_cast<int>(op.weight.inFeatures());
    params.out = static_cast<int>(op.weight.outFeatures());
    launchFamily(context, "expert_matmul", abi::kExpertMatmulAbi, params,
                 {{"x_dtype", dtypeNumber(op.x)},
                  {"w_format", formatNumber(op.weight)},
                  {"w_dtype", denseNumber(op.weight)},
                  {"bias_dtype", optionalDtype(op.bias)},
                  {"out_dtype", dtypeNumber(op.out)},
                  {"transposed", op.weight.transposed ? 1 : 0},
                  {"in", op.weight.inFeatures()},
                  {"out", op.weight.outFeatures()},
                  {"tile_bound", scratch.tiles.bound}});
}

} // namespace vitrine::kernels
