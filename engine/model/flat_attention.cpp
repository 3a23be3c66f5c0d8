// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/flat_attention.h"

#include "engine/checkpoint/model_config.h"

namespace vitrine::engine {

kernels::FlexAttention flexAttention(const LayerPass& pass, const FlatAttention& attention,
                                     const AttentionActivations& heads) {
    kernels::FlexAttention op;
    op.q = kernels::headsFirst(heads.query.view());
    op.k = kernels::headsFirst(heads.key.view());
    op.v = kernels::headsFirst(heads.value.view());
    op.score = pass.layer.attentionScore;
    op.mask = attention.mask;
    op.blocks = attention.blocks;
    op.sinks = pass.layer.sinks;
    op.scale = static_cast<float>(pass.config.attentionScale);
    op.out = kernels::headsFirst(heads.out.view());
    if (!heads.lse.empty()) {
        const kernels::Shape& lse = heads.lse.view().shape;
        op.lse = kernels::reshaped(heads.lse.view(), kernels::Shape{1, lse[0], lse[1]});
    }
    return op;
}

} // namespace vitrine::engine
