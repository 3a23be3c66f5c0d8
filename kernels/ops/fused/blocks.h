// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Block ops: what a layer of a decoder does, as values. Each has a default composed of primitives (the CPU reference,
// the "unfused" variant); CUDA adds fused variants. Intermediates lie in `scratch`. Training gives tensors for those
// that its backward pass reads (the fields "kept"); then, and for linears with adapters, the primitives run on every
// backend.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"
#include "kernels/ops/attention/attention.h"
#include "kernels/ops/attention/kv_view.h"
#include "kernels/ops/experts/moe.h"
#include "kernels/ops/linear/linear_view.h"
#include "kernels/ops/rowwise/gated_activation.h"
#include "kernels/ops/rowwise/rope.h"

namespace vitrine::kernels {

/// norm, q k v products with bias, per-head norms of q and k, RoPE, cache write. outK and outV are left as the cache
/// holds them, written or not, when it holds fewer bits than they do.
struct QkvProject {
    static constexpr std::string_view kName = "QkvProject";
    TensorView x; ///< (tokens, hidden)
    NormWeights norm;
    LinearView q, k, v;
    NormWeights qNorm, kNorm; ///< over headDim, or empty
    TensorView positions;     ///< (tokens) I32
    TensorView inverseFrequency;
    float ropeScale = 1;
    TensorView sequence; ///< (tokens) I32
    KvView cache;
    bool writeCache = true; ///< false: leave newK/newV beside the cache; the caller writes later (sliding prefill)
    TensorView outQ;        ///< (tokens, heads, headDim)
    TensorView outK;        ///< (tokens, kvHeads, headDim)
    TensorView outV;
    TensorView normed;     ///< kept: (tokens, hidden), or empty
    TensorView rawQ, rawK; ///< kept: as outQ and outK, before their norms; or empty
    TensorView scratch;

    bool fusible() const {
        return normed.empty() && rawQ.empty() && q.adapter.empty() && k.adapter.empty() && v.adapter.empty();
    }
};

/// out = residual + postNorm(o(x)). Without a residual and a norm: o(x), a rank's part of a sum that FinishBlock
/// (kernels/ops/comm) ends.
struct OutProject {
    static constexpr std::string_view kName = "OutProject";
    TensorView x; ///< (tokens, heads * headDim)
    LinearView o;
    NormWeights postNorm; ///< Gemma2, or empty
    TensorView residual;  ///< or empty
    TensorView out;       ///< (tokens, hidden); may be residual
    TensorView branch;    ///< kept: (tokens, hidden) before the norm, or empty
    TensorView scratch;
};

/// norm, gate and up products, activation, down product, residual.
struct DenseMlp {
    static constexpr std::string_view kName = "DenseMlp";
    TensorView x; ///< (tokens, hidden), also the residual where there is no other
    NormWeights norm, postNorm;
    LinearView gate, up, down;
    Activation activation = Activation::Silu;
    TensorView residual;  ///< (tokens, hidden), may be out; or empty: x. Without postNorm only
    bool partial = false; ///< nothing is added: `out` is a rank's part of a sum that FinishBlock ends; no postNorm
    TensorView out;       ///< (tokens, hidden); may be x; empty: only what is kept is computed
    TensorView normed;    ///< kept: (tokens, hidden), or empty
    TensorView gateUp;    ///< kept: (tokens, 2 n), gates, then ups; or empty
    TensorView branch;    ///< kept: (tokens, hidden) before the second norm, or empty
    TensorView scratch;

    bool fusible() const { return normed.empty() && gateUp.empty() && gate.adapter.empty() && up.adapter.empty(); }
};

/// norm and router.
struct Route {
    static constexpr std::string_view kName = "Route";
    TensorView x; ///< (tokens, hidden)
    NormWeights norm;
    LinearView router;
    RouterOrder order = RouterOrder::TopKThenSoftmax;
    bool normalize = false;
    RouterGroups groups;
    TensorView normed;  ///< (tokens, hidden) out: what the experts read
    TensorView ids;     ///< (tokens, k) I32 out
    TensorView weights; ///< (tokens, k) F32 out
    TensorView logits;  ///< kept: (tokens, experts) F32, or empty
    TensorView scratch;
    TensorView given, differing; ///< of RouterTopK, or empty

    bool fusible() const {
        return logits.empty() && router.adapter.empty() && given.empty() && order != RouterOrder::SigmoidThenTopK;
    }
};

/// What an ExpertMlp keeps: its rows, expert by expert (kernels/ops/experts/group_pairs.h).
struct ExpertRows {
    TensorView starts;        ///< (experts + 1) I32
    TensorView pairs, places; ///< (tokens * k) I32
    TensorView x;             ///< (tokens * k, hidden)
    TensorView gateUp;        ///< (tokens * k, 2 n)

    bool empty() const { return starts.empty(); }
};

/// expert products, activation, weighted sum, residual.
struct ExpertMlp {
    static constexpr std::string_view kName = "ExpertMlp";
    TensorView x; ///< (tokens, hidden), normed
    TensorView ids, weights;
    LinearView gateUp; ///< stacks; bias (experts, 2 n)
    LinearView down;
    Activation activation = Activation::Silu;
    GateLayout layout = GateLayout::Halves;
    float alpha = 1.702F;
    float limit = 7.0F;
    TensorView residual; ///< or empty: `out` is the weighted sum
    TensorView out;      ///< (tokens, hidden); may be residual; empty: only what is kept is computed
    ExpertRows kept;     ///< or empty
    TensorView scratch;

    std::int64_t allExperts = 0; ///< of the model, where ids may be kOtherRanksExpert; 0: the stacks have all
    bool byExpert = false;       ///< grouped(), whatever else is given: rows are exact then (DeviceFeatures::exactRows)

    /// Whether the products run over rows expert by expert, as those of training do.
    bool grouped() const { return byExpert || !kept.empty() || !gateUp.adapter.empty() || !down.adapter.empty(); }
};

/// final norm of the chosen rows, head product, soft cap.
struct LmHead {
    static constexpr std::string_view kName = "LmHead";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Logits;
    TensorView x;    ///< (tokens, hidden)
    TensorView rows; ///< (n) I32: which tokens need logits, or empty: all
    NormWeights norm;
    LinearView head;
    float softCap = 0; ///< 0: none
    TensorView logits; ///< (n, vocab) F32
    TensorView scratch;
};

void check(const QkvProject& op);
Cost cost(const QkvProject& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const QkvProject& op, const DeviceTraits& traits);
void execute(CpuContext& context, const QkvProject& op);
void execute(CudaContext& context, const QkvProject& op);

void check(const OutProject& op);
Cost cost(const OutProject& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const OutProject& op, const DeviceTraits& traits);
void execute(CpuContext& context, const OutProject& op);
void execute(CudaContext& context, const OutProject& op);

void check(const DenseMlp& op);
Cost cost(const DenseMlp& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const DenseMlp& op, const DeviceTraits& traits);
void execute(CpuContext& context, const DenseMlp& op);
void execute(CudaContext& context, const DenseMlp& op);

void check(const Route& op);
Cost cost(const Route& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const Route& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Route& op);
void execute(CudaContext& context, const Route& op);

void check(const ExpertMlp& op);
Cost cost(const ExpertMlp& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const ExpertMlp& op, const DeviceTraits& traits);
void execute(CpuContext& context, const ExpertMlp& op);
void execute(CudaContext& context, const ExpertMlp& op);

void check(const LmHead& op);
Cost cost(const LmHead& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const LmHead& op, const DeviceTraits& traits);
void execute(CpuContext& context, const LmHead& op);
void execute(CudaContext& context, const LmHead& op);

} // namespace vitrine::kernels
