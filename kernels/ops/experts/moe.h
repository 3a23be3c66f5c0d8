// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Mixture of experts: routing, expert products, the weighted sum. Sums run in top-k order, so results do not depend on
// the batch.

#include "kernels/core/layer_forms.h"
#include "kernels/core/op.h"
#include "kernels/core/weight_view.h"

namespace vitrine::kernels {

/// What RouterOrder::SigmoidThenTopK has beside the scores s (DeepSeek-V3 Technical Report, section 2.1.2). Other
/// orders do not read it. Experts of a group are neighbours. A group counts as the sum of its two largest
/// s + correction; only the experts of the `kept` largest groups are chosen among, by s + correction. Their weights are
/// made of s alone.
struct RouterGroups {
    TensorView correction;   ///< (experts) of any float dtype, or empty: zeros
    std::int64_t groups = 1; ///< divides the experts into groups of at least two
    std::int64_t kept = 1;   ///< of these groups
    float scale = 1;         ///< of the weights, at last
};

/// Ties go to the lower expert number. ids and weights hold the choice, largest first.
///
/// Where `given` names a token's experts, these are its ids, in their order, and only their weights are made anew, from
/// the same logits as those of a choice. Normalised weights of experts so improbable that their sum vanishes are the
/// softmax over their logits, which is the same function.
struct RouterTopK {
    static constexpr std::string_view kName = "RouterTopK";
    TensorView logits;  ///< (tokens, experts)
    TensorView ids;     ///< (tokens, k) I32
    TensorView weights; ///< (tokens, k) F32
    RouterOrder order = RouterOrder::TopKThenSoftmax;
    bool normalize = false;
    RouterGroups groups;
    /// (tokens, k) I32, or empty: none are given. Different experts in each row; -1 first: the row's own choice.
    TensorView given;
    /// (tokens, 1) F32 out, or empty, only with `given`: how many of a row's given experts the router would not have
    /// chosen; 0 where none are given.
    TensorView differing;
};

/// The least sum of probabilities of chosen experts that normalised weights are divided by.
constexpr float kLeastChosenShare = 1e-20F;

/// The id of a choice of an expert that another rank has (OwnExperts).
inline constexpr std::int32_t kOtherRanksExpert = -1;

/// out[t, j] = weight[ids[t, j]] x[t, j] + bias[ids[t, j]]. x has one row per token (`xPerToken`) or per pair (t, j).
struct ExpertMatmul {
    static constexpr std::string_view kName = "ExpertMatmul";
    TensorView x; ///< (tokens, in) or (tokens * k, in)
    bool xPerToken = true;
    TensorView ids;    ///< (tokens, k) I32; rows of kOtherRanksExpert are left as they are
    WeightView weight; ///< a stack (experts, out, in), or (experts, in, out) when transposed
    TensorView bias;   ///< (experts, out) or empty
    TensorView out;    ///< (tokens * k, out)
    TensorView scratch;
};

/// The gradient of RouterTopK's logits from that of its weights. The choice itself has none, be it the router's or
/// given: the ids that the op gave say whose logits the weights were made of.
struct RouterTopKBackward {
    static constexpr std::string_view kName = "RouterTopKBackward";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Gradients;
    RouterTopK forward;     ///< with the ids and weights that it gave; of an order with a softmax
    TensorView gradWeights; ///< (tokens, k) F32 or F64
    /// (experts) F32, or empty: the gradient of each token's probability of each expert (softmax over all of them) by
    /// the load-balancing loss.
    TensorView gradProbabilities;
    TensorView gradLogits; ///< (tokens, experts) of any float dtype, written
};

/// out[t] = residual[t] + sum_j weights[t, j] * x[t * k + j], or x[places[t, j]] where there are places. Without
/// weights the rows are summed as they are: the gradient of GatherPairs.
struct MoeCombine {
    static constexpr std::string_view kName = "MoeCombine";
    TensorView x;        ///< (tokens * k, hidden)
    TensorView weights;  ///< (tokens, k) F32, or empty
    TensorView residual; ///< (tokens, hidden) or empty
    TensorView out;      ///< (tokens, hidden)
    TensorView places;   ///< (tokens * k) I32: the row of each pair (GroupPairs), or empty: rows lie in this order
    TensorView ids;      ///< (tokens, k) I32, or empty: pairs of kOtherRanksExpert are left out
};

void check(const RouterTopK& op);
Cost cost(const RouterTopK& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const RouterTopK& op, const DeviceTraits& traits);
void execute(CpuContext& context, const RouterTopK& op);
void execute(CudaContext& context, const RouterTopK& op);

void check(const RouterTopKBackward& op);
Cost cost(const RouterTopKBackward& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const RouterTopKBackward& op, const DeviceTraits& traits);
void execute(CpuContext& context, const RouterTopKBackward& op);
void execute(CudaContext& context, const RouterTopKBackward& op);

void check(const ExpertMatmul& op);
Cost cost(const ExpertMatmul& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const ExpertMatmul& op, const DeviceTraits& traits);
void execute(CpuContext& context, const ExpertMatmul& op);
void execute(CudaContext& context, const ExpertMatmul& op);

void check(const MoeCombine& op);
Cost cost(const MoeCombine& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const MoeCombine& op, const DeviceTraits& traits);
void execute(CpuContext& context, const MoeCombine& op);
void execute(CudaContext& context, const MoeCombine& op);

} // namespace vitrine::kernels
