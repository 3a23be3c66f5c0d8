// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/expert_mlp_tiles.h"

#include "kernels/ops/experts/expert_tiles_cuda.h"

namespace vitrine::kernels {

bool multiplyInTiles(CudaContext& context, const ExpertMlp& op) {
    if (!ExpertMlpTiles::fits(op) || !startsAligned(op.gateUp.weight.data) || !startsAligned(op.down.weight.data)) {
        return false;
    }
    const ExpertMlpTiles scratch(op, ScratchLayout(op.scratch.data));
    const TileProduct::Gate gate{op.activation, op.layout, op.alpha, op.limit};
    const TileProduct gateUp(scratch.tiles, scratch.gathered, op.gateUp, scratch.active, &gate);
    const TileProduct down(scratch.tiles, scratch.active, op.down, scratch.results, nullptr);
    if (scratch.bytes > op.scratch.bytes() || !context.fits(gateUp.call()) || !context.fits(down.call())) {
        return false;
    }
    if (scratch.tiles.pairs == 0) {
        return true;
    }
    sortPairs(context, op.ids, scratch.tiles);
    gatherRows(context, op.x, op.ids.shape[1], scratch.tiles, scratch.gathered);
    context.launch(gateUp.call());
    context.launch(down.call());
    execute(context, MoeCombine{scratch.results, op.weights, op.residual, op.out, {}, {}});
    return true;
}

} // namespace vitrine::kernels
