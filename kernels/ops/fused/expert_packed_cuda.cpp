// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>

#include "kernels/device/abi/expert_sort.h"
#include "kernels/ops/experts/expert_tiles_cuda.h"
#include "kernels/ops/fused/block_primitives.h"
#include "kernels/ops/fused/decode_cuda.h"
#include "kernels/ops/fused/expert_mlp_tiles.h"
#include "kernels/ops/linear/packed_rows.h"
#include "kernels/ops/linear/packed_rows_cuda.h"

namespace vitrine::kernels {

namespace {

PackedProduct gateUpProduct(const ExpertMlp& op, const TensorView& active) {
    PackedProduct product;
    product.x = op.x;
    product.targets[0] = {op.gateUp.weight, op.gateUp.bias, active};
    product.gate = PackedGate{op.activation, op.layout, op.alpha, op.limit};
    product.ids = op.ids;
    product.pairsPerRow = op.ids.shape[1];
    return product;
}

/// Both products, and nothing else, in two launches.
bool runInPairs(CudaContext& context, const ExpertMlp& op, const ExpertMlpPrimitives& primitives) {
    PackedProduct gateUp = gateUpProduct(op, primitives.activation.out);
    gateUp.rowsOf = abi::PackedOfPairs;
    gateUp.rows = 1;
    gateUp.jobs = op.ids.shape.count();
    PackedProduct down;
    down.x = primitives.activation.out;
    down.targets[0] = {op.down.weight, op.down.bias, op.out};
    down.residual = op.residual;
    down.ids = op.ids;
    down.weights = op.weights;
    down.rowsOf = abi::PackedOfSums;
    down.rows = 1;
    down.jobs = op.ids.shape[0];
    return takesPackedRows(down.x.dtype, op.down.weight, op.out.dtype) && op.ids.shape[1] <= abi::kPackedChosen &&
           multiplyPackedRows(context, gateUp) && multiplyPackedRows(context, down);
}

/// Pairs are sorted once for both products. For weights that expert_gemm does not take.
bool runInTiles(CudaContext& context, const ExpertMlp& op, const ExpertMlpPrimitives& primitives) {
    if (!takesPackedRows(op.x.dtype, op.gateUp.weight, primitives.activation.out.dtype) ||
        !takesPackedRows(primitives.down.x.dtype, op.down.weight, primitives.down.out.dtype)) {
        return false;
    }
    const ExpertMatmulTiles scratch(primitives.gateUp, false, ScratchLayout(primitives.gateUp.scratch.data));
    const auto inTiles = [&](PackedProduct product, std::int64_t pairsPerRow) {
        product.rowsOf = abi::PackedOfTiles;
        product.rows = std::min<std::int64_t>(op.ids.shape[0], abi::kExpertTile); // an expert has one pair of a token
        product.jobs = scratch.tiles.bound;
        product.tileCount = scratch.tiles.count.as<const int>();
        product.tiles = scratch.tiles.tiles.as<const int>();
        product.slots = scratch.tiles.slots.as<const int>();
        product.pairsPerRow = pairsPerRow;
        return product;
    };
    PackedProduct down;
    down.x = primitives.down.x;
    down.targets[0] = {op.down.weight, op.down.bias, primitives.down.out};
    sortPairs(context, op.ids, scratch.tiles);
    if (!multiplyPackedRows(context, inTiles(gateUpProduct(op, primitives.activation.out), op.ids.shape[1])) ||
        !multiplyPackedRows(context, inTiles(down, 1))) {
        return false;
    }
    execute(context, primitives.combine);
    return true;
}

} // namespace

bool runPackedExperts(CudaContext& context, const ExpertMlp& op) {
    if (op.ids.shape.count() == 0 || !takesPackedRows(op.x.dtype, op.gateUp.weight, op.x.dtype)) {
        return false;
    }
    if (manyInTiles(op.ids.shape[0], op.gateUp.weight) && multiplyInTiles(context, op)) {
        return true;
    }
    const ExpertMlpPrimitives primitives(op, ScratchLayout(op.scratch.data), context.traits());
    return op.ids.shape[0] <= kPackedTokensInPairs
               ? runInPairs(context, op, primitives) || runInTiles(context, op, primitives)
               : runInTiles(context, op, primitives);
}

} // namespace vitrine::kernels
