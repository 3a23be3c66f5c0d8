// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/expert_tiles_cuda.h"
#include "kernels/ops/fused/block_primitives.h"
#include "kernels/ops/fused/decode_cuda.h"
#include "kernels/ops/linear/fp8_gemm_cuda.h"

namespace vitrine::kernels {

namespace {

/// From so many pairs for an expert on, tiles of 128 rows are full enough.
constexpr std::int64_t kPairsOfExpert = 32;

/// Room for rows as E4M3 in a tensor that nobody needs meanwhile.
bool hasRoom(const TensorView& free, const TensorView& rows) {
    return static_cast<std::int64_t>(free.bytes()) >= rows.shape[0] * fp8RowBytes(rows.shape[1]);
}

} // namespace

bool runExpertsInFp8(CudaContext& context, const ExpertMlp& op) {
    if (op.ids.shape.count() < kPairsOfExpert * op.gateUp.weight.experts()) {
        return false;
    }
    const ExpertMlpPrimitives primitives(op, ScratchLayout(op.scratch.data), context.traits());
    const TensorView& gated = primitives.gateUp.out;
    const TensorView& active = primitives.down.x;
    const TensorView& results = primitives.down.out;
    if (!fitsFp8Product(context, op.x, op.gateUp.weight, gated) ||
        !fitsFp8Product(context, active, op.down.weight, results) || !hasRoom(results, op.x) ||
        !hasRoom(gated, active)) {
        return false;
    }
    const ExpertMatmulTiles scratch(primitives.gateUp, false, ScratchLayout(primitives.gateUp.scratch.data));
    sortPairs(context, op.ids, scratch.tiles);
    const auto inTiles = [&](Fp8Product& product) {
        product.tileBound = scratch.tiles.bound;
        product.tileCount = scratch.tiles.count.as<const int>();
        product.tiles = scratch.tiles.tiles.as<const int>();
        product.slots = scratch.tiles.slots.as<const int>();
    };
    Fp8Product gateUp;
    inTiles(gateUp);
    gateUp.x = op.x;
    gateUp.weight = op.gateUp.weight;
    gateUp.bias = op.gateUp.bias;
    gateUp.out = gated;
    gateUp.room = results;
    gateUp.pairsPerRow = op.ids.shape[1];
    multiplyFp8(context, gateUp);
    execute(context, primitives.activation);
    Fp8Product down;
    inTiles(down);
    down.x = active;
    down.weight = op.down.weight;
    down.bias = op.down.bias;
    down.out = results;
    down.room = gated;
    multiplyFp8(context, down);
    execute(context, primitives.combine);
    return true;
}

} // namespace vitrine::kernels
