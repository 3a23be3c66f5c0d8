// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/policy_objective.h"

#include <algorithm>
#include <utility>

#include "engine/training/parameters/host_floats.h"
#include "kernels/context/context.h"
#include "kernels/ops/loss/log_probs.h"
#include "kernels/ops/rowwise/elementwise.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::PolicySums;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

namespace {

TensorView rowsOf(const TensorView& all, const LogitsChunk& chunk) {
    return all.empty() ? all : kernels::sliceRows(all, chunk.begin, chunk.begin + chunk.logits.shape[0]);
}

} // namespace

PolicyObjective::PolicyObjective(kernels::Context& context, const PolicyOptions& options,
                                 std::span<const PolicyTokens> tokens)
    : context_(context), options_(options), tokens_(tokens),
      sums_(context.memory().general(), MemoryCategory::Other, "policy.sums", DType::F64, Shape{PolicySums::kCount}),
      first_(remembers() ? tokens.size() : 0) {}

void PolicyObjective::beginStep(std::span<const TrainingBatch> batches) {
    countTokens(batches);
    context_.run(kernels::SetZero{sums_.view()});
    ++steps_;
}

void PolicyObjective::beginBatch(const OpRunner& runner, std::int64_t index) {
    const PolicyTokens& tokens = tokens_[static_cast<std::size_t>(index)];
    const auto count = static_cast<std::int64_t>(tokens.advantages.size());
    const std::array<std::pair<const std::vector<float>*, TensorView*>, 5> parts = {
        {{&tokens.advantages, &views_.advantages},
         {&tokens.weights, &views_.weights},
         {&tokens.old, &views_.old},
         {&tokens.rollout, &views_.rollout},
         {&tokens.reference, &views_.reference}}};
    std::vector<float> values;
    for (const auto& [from, view] : parts) {
        values.insert(values.end(), from->begin(), from->end());
    }
    values_ = runner.make(MemoryCategory::Activations, "policy.values", DType::F32,
                          Shape{static_cast<std::int64_t>(values.size())});
    uploadFloats(context_, values, values_.view());
    std::int64_t offset = 0;
    for (const auto& [from, view] : parts) {
        *view = from->empty() ? TensorView{} : kernels::sliceRows(values_.view(), offset, offset + count);
        offset += from->empty() ? 0 : count;
    }
    index_ = index;
    if (remembers()) {
        Tensor& first = first_[static_cast<std::size_t>(index)];
        if (first.empty()) {
            const DType type = runner.compute() == DType::F64 ? DType::F64 : DType::F32;
            first = runner.make(MemoryCategory::Activations, "policy.first", type, Shape{count});
        }
        const TensorView known = steps_ > 1 ? first.view() : TensorView{}; // in the first step r is 1 and KL 0
        views_.old = options_.rememberOld ? known : views_.old;
        views_.reference = options_.rememberReference ? known : views_.reference;
    }
}

void PolicyObjective::run(const OpRunner& runner, const LogitsChunk& chunk) {
    const std::int64_t rows = chunk.logits.shape[0];
    const Tensor made = runner.make(MemoryCategory::Logits, "log_probs", chunk.logits.dtype, Shape{4, rows});
    const auto part = [&](std::int64_t index) {
        return kernels::reshaped(kernels::sliceRows(made.view(), index, index + 1), Shape{rows});
    };
    kernels::LogProbs op;
    op.logits = chunk.logits;
    op.targets = chunk.targets;
    op.softCap = chunk.softCap;
    op.inverseTemperature = static_cast<float>(1 / options_.temperature);
    op.logProbs = part(0);
    op.entropies = part(1);
    op.lse = part(2);
    runner.run(op);
    if (remembers() && steps_ == 1) {
        const TensorView to = rowsOf(first_[static_cast<std::size_t>(index_)].view(), chunk);
        context_.copy(op.logProbs.data, to.data, to.bytes());
    }
    kernels::PolicyLoss loss;
    loss.logProbs = op.logProbs;
    loss.targets = chunk.targets;
    loss.advantages = rowsOf(views_.advantages, chunk);
    loss.weights = rowsOf(views_.weights, chunk);
    loss.old = rowsOf(views_.old, chunk);
    loss.rollout = rowsOf(views_.rollout, chunk);
    loss.reference = rowsOf(views_.reference, chunk);
    loss.entropies = op.entropies;
    loss.clipLow = static_cast<float>(options_.clipLow);
    loss.clipHigh = static_cast<float>(options_.clipHigh);
    loss.klCoefficient = static_cast<float>(options_.klCoefficient);
    loss.importanceCap = static_cast<float>(options_.importanceCap);
    loss.gradLogProbs = chunk.gradLogits.empty() ? TensorView{} : part(3);
    loss.sums = sums_.view();
    runner.run(loss);
    if (!chunk.gradLogits.empty()) {
        kernels::LogProbsBackward backward;
        backward.logits = chunk.logits;
        backward.targets = chunk.targets;
        backward.softCap = chunk.softCap;
        backward.inverseTemperature = op.inverseTemperature;
        backward.lse = op.lse;
        backward.gradLogProbs = loss.gradLogProbs;
        backward.gradLogits = chunk.gradLogits;
        runner.run(backward);
    }
}

double PolicyObjective::loss() {
    std::array<double, PolicySums::kCount> sums{};
    context_.download(sums_.view().data, sums.data(), sizeof(sums));
    const double tokens = std::max(sums[PolicySums::Tokens], 1.0); // 0 on Meta
    means_.kl = sums[PolicySums::Kl] / tokens;
    means_.clipShare = sums[PolicySums::Clipped] / tokens;
    means_.entropy = sums[PolicySums::Entropy] / tokens;
    means_.ratio = sums[PolicySums::Ratio] / tokens;
    means_.logprobAbsDiff = sums[PolicySums::Gap] / tokens;
    means_.mismatchK3 = sums[PolicySums::Mismatch] / tokens;
    means_.truncatedShare = sums[PolicySums::Truncated] / tokens;
    return sums[PolicySums::Loss];
}

std::vector<float> PolicyObjective::remembered(std::int64_t index) const {
    return downloadFloats(context_, first_[static_cast<std::size_t>(index)].view());
}

} // namespace vitrine::engine
