// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/cross_entropy_objective.h"

#include "kernels/context/context.h"
#include "kernels/ops/loss/cross_entropy.h"
#include "kernels/ops/rowwise/elementwise.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;

CrossEntropyObjective::CrossEntropyObjective(kernels::Context& context)
    : context_(context), sum_(context.memory().general(), MemoryCategory::Other, "loss", DType::F64, Shape{1}) {}

void CrossEntropyObjective::beginStep(std::span<const TrainingBatch> batches) {
    predicted_ = static_cast<double>(countTokens(batches).predicted);
    context_.run(kernels::SetZero{sum_.view()});
}

void CrossEntropyObjective::beginBatch(const OpRunner&, std::int64_t) {
    // Every token counts as much as any other.
}

void CrossEntropyObjective::run(const OpRunner& runner, const LogitsChunk& chunk) {
    const Tensor losses =
        runner.make(MemoryCategory::Logits, "losses", chunk.logits.dtype, Shape{chunk.logits.shape[0]});
    kernels::CrossEntropy op;
    op.logits = chunk.logits;
    op.targets = chunk.targets;
    op.softCap = chunk.softCap;
    op.losses = losses.view();
    op.gradLogits = chunk.gradLogits;
    op.gradScale = static_cast<float>(1 / predicted_);
    runner.run(op);
    runner.run(kernels::SumLosses{losses.view(), sum_.view(), true});
}

double CrossEntropyObjective::loss() {
    double sum = 0;
    context_.download(sum_.view().data, &sum, sizeof(sum));
    return sum / predicted_;
}

} // namespace vitrine::engine
