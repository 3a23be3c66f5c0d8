// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The forward pass of a decoder layer, for inference and training: which ops run in which order stands here and nowhere
// else. Sizes come from weights and views, so that a layer may be a part of a whole one; the config gives only forms
// (activation, order of the router, ...).
//
// A caller that asks for it keeps the tensors that the backward pass reads. Without that, they are let go as soon as
// the next op has read them. On the CPU both give the same numbers to the last bit.

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/model/decoder_layer.h"
#include "engine/model/op_runner.h"
#include "kernels/ops/attention/kv_view.h"
#include "kernels/ops/experts/moe.h"

namespace vitrine::engine {

struct FlatAttention;
struct ModelConfig;

/// Tokens that share one table of rotary frequencies.
struct RopePart {
    std::int64_t begin = 0, end = 0;
    kernels::TensorView inverseFrequency; ///< (ropeDim / 2) F32
    float scale = 1;                      ///< of cos and sin
};

/// The tokens that go through the layers together, sequence after sequence.
struct LayerTokens {
    kernels::TensorView positions; ///< (tokens) I32, in their sequences
    kernels::TensorView sequence;  ///< (tokens) I32: which one
    kernels::TensorView offsets;   ///< (sequences + 1) I32: their first tokens, and the number of tokens
    kernels::TensorView zeros;     ///< (sequences) I32: 0; read by layers without a cache
    std::vector<RopePart> rope;    ///< in order; they cover all tokens

    std::int64_t tokens() const { return positions.shape[0]; }
    std::int64_t ropeDim() const { return 2 * rope.front().inverseFrequency.shape[0]; }
};

/// A layer's part of a KV cache.
struct LayerCache {
    kernels::KvView before;      ///< what attention reads
    kernels::KvView after;       ///< the same when the new tokens are in it
    bool writesFirst = true;     ///< the new tokens are written before attention reads
    bool readsNew = false;       ///< attention reads the new tokens as they are, beside the cache
    kernels::DType newKeyType{}; ///< of the new tokens' keys and values
};

/// What one layer works on.
struct LayerPass {
    const ModelConfig& config;
    const DecoderLayer& layer;
    const LayerTokens& tokens;
    const LayerCache* cache = nullptr; ///< null: each sequence attends to its own tokens of this pass
    /// Not null: without a cache, and each sequence attends to what this mask allows of the pass.
    const FlatAttention* flat = nullptr;
};

/// What the backward pass reads of the attention of a layer. `normed`, `rawQuery`, `rawKey` and `branch` are empty
/// where the layer has no such norm.
struct AttentionActivations {
    kernels::Tensor normed;           ///< (tokens, hidden)
    kernels::Tensor rawQuery, rawKey; ///< before the norms of heads
    kernels::Tensor query;            ///< (tokens, heads, headDim), rotated
    kernels::Tensor key, value;       ///< (tokens, kvHeads, headDim), keys rotated
    kernels::Tensor out;              ///< (tokens, heads, headDim)
    kernels::Tensor lse;              ///< (heads, tokens) F32
    kernels::Tensor branch;           ///< (tokens, hidden), before the norm after it
};

/// What the backward pass reads of the MLP of a layer.
struct MlpActivations {
    kernels::Tensor normed; ///< (tokens, hidden)
    kernels::Tensor gateUp; ///< (tokens, 2 n), of experts (tokens * k, 2 n)
    kernels::Tensor branch; ///< (tokens, hidden), before the norm after it
    // Of a mixture of experts:
    kernels::Tensor routerLogits;  ///< (tokens, experts) F32
    kernels::Tensor ids;           ///< (tokens, k) I32
    kernels::Tensor weights;       ///< (tokens, k) F32
    kernels::Tensor starts;        ///< (experts + 1) I32, see kernels::GroupPairs
    kernels::Tensor pairs, places; ///< (tokens * k) I32
    kernels::Tensor rows;          ///< (tokens * k, hidden)
};

/// Is told what the router of a layer chose.
struct RouterObserver {
    /// The op with the ids that it gave, on the device. Its logits are there if `wantsLogits`.
    std::function<void(const kernels::RouterTopK& done)> chosen;
    bool wantsLogits = false;
};

/// Experts that a router takes instead of its own choice, see kernels::RouterTopK; empty: it chooses.
struct RouterReplay {
    kernels::TensorView given;     ///< (tokens, k) I32, or empty
    kernels::TensorView differing; ///< (tokens, 1) F32 out, or empty
};

/// out = x + attention(norm(x)). `out` may be x where the input is not kept. `keep` receives what the backward pass
/// reads, or is null; only without a cache. For latent attention, which has no backward pass, `keep` and
/// LayerPass::flat are null.
void attentionForward(const OpRunner& runner, const LayerPass& pass, const kernels::TensorView& x,
                      const kernels::TensorView& out, AttentionActivations* keep);

/// out = x + mlp(norm(x)); rows of x are independent. `out` may be x where the input is not kept. `keep` as above. An
/// empty `out`: only `keep` is wanted, and what follows it is not computed.
void mlpForward(const OpRunner& runner, const ModelConfig& config, const DecoderLayer& layer,
                const kernels::TensorView& x, const kernels::TensorView& out, MlpActivations* keep,
                const RouterObserver* observer = nullptr, const RouterReplay& replay = {});

} // namespace vitrine::engine
