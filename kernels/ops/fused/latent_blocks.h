// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Multi-head latent attention (MLA: DeepSeek-V2, section 2.1) as two block ops around Attention, in the form that reads
// the cache as it is. A token's row in the cache is one key for all heads: a latent of `latent` elements and a rotated
// part of `rope`. A head's own key is W_UK latent, so q . key = (W_UK^T q) . latent: the query is multiplied once, and
// no key. A head's value is W_UV latent, so the sum of values is W_UV times the sum of latents. The row is the value
// too; the last `rope` elements of what Attention gives are not read.
//
// Both are lists of primitives on every backend: a product for each head with its rows of `up`.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"
#include "kernels/ops/attention/kv_view.h"
#include "kernels/ops/linear/linear_view.h"

namespace vitrine::kernels {

/// The product from latents to the keys and values of heads: (heads * (nope + value), latent) floats, for each head the
/// rows of its key, then those of its value.
struct LatentHeads {
    TensorView up;
    std::int64_t heads = 0;
    std::int64_t nope = 0; ///< elements of a head's key that are not rotated

    std::int64_t rows() const { return up.shape[0] / heads; } ///< of a head
    std::int64_t value() const { return rows() - nope; }
    std::int64_t latent() const { return up.shape[1]; }
};

/// norm, products of queries and of the latent, their norms, RoPE, W_UK, cache write. outK is left as the cache holds
/// it, written or not, when it holds fewer bits.
struct LatentProject {
    static constexpr std::string_view kName = "LatentProject";
    TensorView x; ///< (tokens, hidden)
    NormWeights norm;
    LinearView queryDown;  ///< (queryRank, hidden), or empty: `query` reads the normed x
    NormWeights queryNorm; ///< (queryRank), or empty as queryDown is
    LinearView query;      ///< (heads * (nope + rope), queryRank or hidden)
    LinearView keyDown;    ///< (latent + rope, hidden)
    NormWeights keyNorm;   ///< (latent)
    LatentHeads heads;
    TensorView positions;        ///< (tokens) I32
    TensorView inverseFrequency; ///< (rope / 2) F32
    float ropeScale = 1;
    bool interleaved = false; ///< the pairs of RoPE are neighbours
    TensorView sequence;      ///< (tokens) I32
    KvView cache;
    bool writeCache = true;
    TensorView outQ; ///< (tokens, heads, latent + rope), contiguous
    TensorView outK; ///< (tokens, 1, latent + rope)
    TensorView scratch;

    std::int64_t rope() const { return 2 * inverseFrequency.shape[0]; }
};

/// out = residual + o(W_UV x).
struct LatentOut {
    static constexpr std::string_view kName = "LatentOut";
    TensorView x; ///< (tokens, heads, latent + rope), contiguous
    LatentHeads heads;
    LinearView o;        ///< (hidden, heads * value)
    TensorView residual; ///< (tokens, hidden), or empty: nothing is added
    TensorView out;      ///< (tokens, hidden); may be residual
    TensorView scratch;
};

void check(const LatentProject& op);
Cost cost(const LatentProject& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const LatentProject& op, const DeviceTraits& traits);
void execute(CpuContext& context, const LatentProject& op);
void execute(CudaContext& context, const LatentProject& op);

void check(const LatentOut& op);
Cost cost(const LatentOut& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const LatentOut& op, const DeviceTraits& traits);
void execute(CpuContext& context, const LatentOut& op);
void execute(CudaContext& context, const LatentOut& op);

} // namespace vitrine::kernels
