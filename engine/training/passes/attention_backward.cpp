// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/layer_backward.h"
#include "engine/training/passes/linear_backward.h"
#include "engine/training/passes/norm_backward.h"
#include "kernels/ops/rowwise/elementwise.h"
#include "kernels/ops/rowwise/rope.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

namespace {

/// Gradients of the tokens' queries, keys and values, as the projections gave them.
struct HeadGradients {
    Tensor query, key, value;
};

/// (tokens, heads, headDim) as rows of heads.
TensorView headRows(const TensorView& heads) {
    return kernels::reshaped(heads, Shape{heads.shape[0] * heads.shape[1], heads.shape[2]});
}

/// (tokens, heads, headDim) as rows of tokens.
TensorView tokenRows(const TensorView& heads) {
    return kernels::reshaped(heads, Shape{heads.shape[0], heads.shape[1] * heads.shape[2]});
}

HeadGradients scoresBackward(const OpRunner& runner, const LayerPass& pass, const FlatAttention& attention,
                             const GradientMap& gradients, const AttentionActivations& kept,
                             const TensorView& gradOut) {
    const auto like = [&](std::string_view name, const Tensor& tensor) {
        return runner.make(MemoryCategory::Gradients, name, runner.compute(), tensor.view().shape);
    };
    HeadGradients out{like("query.gradient", kept.query), like("key.gradient", kept.key),
                      like("value.gradient", kept.value)};
    kernels::FlexAttentionBackward op;
    op.forward = flexAttention(pass, attention, kept);
    op.gradOut = kernels::headsFirst(gradOut);
    op.dq = kernels::headsFirst(out.query.view());
    op.dk = kernels::headsFirst(out.key.view());
    op.dv = kernels::headsFirst(out.value.view());
    const TensorView sinkSums = gradients.of(pass.layer.sinks);
    Tensor sinks;
    if (!sinkSums.empty()) {
        sinks = runner.make(MemoryCategory::Gradients, "sinks.gradient", sinkSums.dtype, sinkSums.shape);
        op.dSinks = sinks.view();
    }
    runner.run(op);
    if (!sinkSums.empty()) {
        runner.run(kernels::Add{sinkSums, sinks.view(), sinkSums});
    }
    return out;
}

/// Through rotation and the norms of heads.
void rotateBack(const OpRunner& runner, const LayerPass& pass, const TensorView& heads) {
    for (const RopePart& part : pass.tokens.rope) {
        runner.run(kernels::Rope{kernels::sliceRows(heads, part.begin, part.end),
                                 kernels::sliceRows(pass.tokens.positions, part.begin, part.end), part.inverseFrequency,
                                 part.scale, true});
    }
}

void headNormBackward(const OpRunner& runner, const kernels::NormWeights& norm, const GradientMap& gradients,
                      const Tensor& raw, const Tensor& gradient) {
    if (!norm.weight.empty()) {
        const TensorView rows = headRows(gradient.view());
        normBackward(runner, norm, gradients, headRows(raw.view()), rows, {}, rows);
    }
}

} // namespace

void attentionBackward(const OpRunner& runner, const LayerPass& pass, const FlatAttention& attention,
                       const GradientMap& gradients, const TensorView& x, AttentionActivations& kept,
                       const TensorView& gradOut, const TensorView& gradX) {
    const DecoderLayer& layer = pass.layer;
    Tensor branch = branchBackward(runner, layer.attentionPostNorm, gradients, kept.branch, gradOut);
    const TensorView gradBranch = branch.empty() ? gradOut : branch.view();
    Tensor gradHeads =
        runner.make(MemoryCategory::Gradients, "attention.gradient", runner.compute(), kept.out.view().shape);
    {
        const LinearBackward out(runner, layer.o, gradients, gradBranch);
        out.input(tokenRows(gradHeads.view()), false);
        out.parameters(tokenRows(kept.out.view()));
    }
    branch.reset();
    kept.branch.reset();
    HeadGradients heads = scoresBackward(runner, pass, attention, gradients, kept, gradHeads.view());
    gradHeads.reset();
    for (Tensor* used : {&kept.out, &kept.lse, &kept.query, &kept.key, &kept.value}) {
        used->reset();
    }
    rotateBack(runner, pass, heads.query.view());
    rotateBack(runner, pass, heads.key.view());
    headNormBackward(runner, layer.qNorm, gradients, kept.rawQuery, heads.query);
    headNormBackward(runner, layer.kNorm, gradients, kept.rawKey, heads.key);
    kept.rawQuery.reset();
    kept.rawKey.reset();
    const Tensor gradNormed =
        runner.make(MemoryCategory::Gradients, "attention.normed.gradient", runner.compute(), x.shape);
    const TensorView normed = kept.normed.empty() ? x : kept.normed.view();
    bool accumulate = false;
    for (const auto& [linear, gradient] :
         {std::pair{&layer.q, &heads.query}, std::pair{&layer.k, &heads.key}, std::pair{&layer.v, &heads.value}}) {
        const LinearBackward projection(runner, *linear, gradients, tokenRows(gradient->view()));
        projection.input(gradNormed.view(), accumulate);
        projection.parameters(normed);
        accumulate = true;
        gradient->reset();
    }
    kept.normed.reset();
    normBackward(runner, layer.attentionNorm, gradients, x, gradNormed.view(), gradOut, gradX);
}

} // namespace vitrine::engine
