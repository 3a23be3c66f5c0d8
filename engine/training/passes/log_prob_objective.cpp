// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/log_prob_objective.h"

#include <numeric>

#include "base/error.h"
#include "engine/training/parameters/host_floats.h"
#include "kernels/context/context.h"
#include "kernels/ops/loss/log_probs.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::TensorView;

namespace {

/// Row `index` of (2, tokens), from token `begin` on.
TensorView valuesOf(const TensorView& all, std::int64_t index, std::int64_t begin, std::int64_t count) {
    const TensorView row = kernels::reshaped(kernels::sliceRows(all, index, index + 1), Shape{all.shape[1]});
    return kernels::sliceRows(row, begin, begin + count);
}

} // namespace

void LogProbObjective::beginStep(std::span<const TrainingBatch> batches) {
    batches_ = batches;
    values_.clear();
    values_.resize(batches.size());
}

void LogProbObjective::beginBatch(const OpRunner& runner, std::int64_t index) {
    const auto place = static_cast<std::size_t>(index);
    const DType type = runner.compute() == DType::F64 ? DType::F64 : DType::F32;
    values_[place] =
        runner.make(MemoryCategory::Activations, "log_probs.scores", type, Shape{2, batches_[place].count()});
    index_ = index;
}

void LogProbObjective::run(const OpRunner& runner, const LogitsChunk& chunk) {
    if (!chunk.gradLogits.empty()) {
        throw base::Internal("log-probabilities alone have no gradient");
    }
    const TensorView all = values_[static_cast<std::size_t>(index_)].view();
    const std::int64_t rows = chunk.logits.shape[0];
    kernels::LogProbs op;
    op.logits = chunk.logits;
    op.targets = chunk.targets;
    op.softCap = chunk.softCap;
    op.inverseTemperature = static_cast<float>(1 / temperature_);
    op.logProbs = valuesOf(all, 0, chunk.begin, rows);
    op.entropies = valuesOf(all, 1, chunk.begin, rows);
    runner.run(op);
}

double LogProbObjective::loss() {
    double sum = 0;
    for (std::size_t batch = 0; batch < batches_.size(); ++batch) {
        const std::vector<float> values = scores(static_cast<std::int64_t>(batch)).logProbs;
        sum = std::accumulate(values.begin(), values.end(), sum);
    }
    return -sum / static_cast<double>(countTokens(batches_).predicted);
}

TokenScores LogProbObjective::scores(std::int64_t index) const {
    const TensorView all = values_[static_cast<std::size_t>(index)].view();
    return {downloadFloats(context_, valuesOf(all, 0, 0, all.shape[1])),
            downloadFloats(context_, valuesOf(all, 1, 0, all.shape[1]))};
}

} // namespace vitrine::engine
