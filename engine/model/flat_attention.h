// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Attention of a pass whose sequences are taken as one long sequence: a mask says which of them see each other. The
// backward pass always takes them so, the forward pass where sequences share a prefix.

#include "engine/model/layer_forward.h"
#include "kernels/ops/attention/flex_attention.h"
#include "kernels/program/block_mask.h"

namespace vitrine::engine {

/// Queries and keys are numbered over all tokens of the pass.
struct FlatAttention {
    kernels::BoundProgram mask;
    const kernels::BlockMask* blocks = nullptr; ///< of the mask
};

/// The op over the tensors of `heads`; its lse is empty where theirs is.
kernels::FlexAttention flexAttention(const LayerPass& pass, const FlatAttention& attention,
                                     const AttentionActivations& heads);

} // namespace vitrine::engine
