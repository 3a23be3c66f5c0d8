// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/expert_mlp_tiles.h"

namespace vitrine::kernels {

ExpertMlpTiles::ExpertMlpTiles(const ExpertMlp& op, ScratchLayout layout)
    : tiles(op.ids.shape.count(), op.gateUp.weight.experts(), layout),
      gathered(takeTileRows(tiles, op.x.shape[1], layout)),
      active(takeTileRows(tiles, op.down.weight.inFeatures(), layout)) {
    results = gathered;
    results.shape = Shape{tiles.pairs, op.down.weight.outFeatures()};
    bytes = layout.bytes();
}

bool ExpertMlpTiles::fits(const ExpertMlp& op) {
    // The results take the place of the gathered rows: as wide as those.
    return op.x.dtype == DType::BF16 && op.x.stride0() % 8 == 0 && multipliesInTiles(op.gateUp) &&
           multipliesInTiles(op.down) && op.down.weight.outFeatures() <= op.x.shape[1];
}

} // namespace vitrine::kernels
