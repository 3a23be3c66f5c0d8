// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/step.h"

#include <algorithm>
#include <fmt/format.h>

#include "kernels/ops/attention/attention.h"
#include "kernels/ops/attention/flex_attention.h"
#include "kernels/ops/attention/kv_write.h"
#include "kernels/ops/fused/blocks.h"
#include "kernels/ops/rowwise/embedding.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::TensorView;

kernels::Tensor StepRunner::make(MemoryCategory category, std::string_view name, DType dtype, const Shape& shape) {
    return {context_.memory().step(), category, name, dtype, shape};
}

kernels::Tensor StepRunner::activation(std::string_view name, const Shape& shape) {
    return make(MemoryCategory::Activations, name, model_.options().computeDType, shape);
}

template <class Op> void StepRunner::execute(const Op& op) {
    if (options_.compile != nullptr) {
        check(op);
        options_.compile->add(op);
        return;
    }
    context_.run(op);
}

/// Allocates what `op` needs beside its tensors; lives as long as the tensor returned.
template <class Op> kernels::Tensor StepRunner::takeScratch(Op& op) {
    const std::uint64_t bytes = scratch(op, context_.traits());
    if (bytes == 0) {
        return {};
    }
    kernels::Tensor space = make(MemoryCategory::Workspace, fmt::format("{}.scratch", Op::kName), DType::U8,
                                 Shape{static_cast<std::int64_t>(bytes)});
    op.scratch = space.view();
    return space;
}

template <class Op> void StepRunner::runWithScratch(Op op) {
    const kernels::Tensor space = takeScratch(op);
    execute(op);
}

void StepRunner::upload(const void* host, const TensorView& device) {
    context_.upload(host, device.data, device.bytes());
}

TensorView StepRunner::input(const StepInputs::Slice& slice) const {
    TensorView view = inputs_.view();
    view.data = view.as<std::int32_t>() + slice.offset;
    view.shape = Shape{slice.count};
    return view;
}

/// Empty without a cache.
kernels::KvView StepRunner::kvView(int layer) const {
    if (cache_ == nullptr) {
        return {};
    }
    const StepInputs::GroupSlices& group = stepInputs_.groups[static_cast<std::size_t>(cache_->groupOf(layer))];
    kernels::KvView view = cache_->layerView(layer);
    view.blockTable = kernels::reshaped(input(group.pages),
                                        Shape{static_cast<std::int64_t>(stepInputs_.appends.size()), group.columns});
    view.first = input(group.first);
    view.lengths = input(group.lengths);
    view.totalTokens = group.totalTokens;
    return view;
}

StepOutput StepRunner::run() {
    const ModelConfig& config = model_.config();
    context_.memory().step().beginStep();
    inputs_ = make(MemoryCategory::Activations, "step.inputs", DType::I32,
                   Shape{static_cast<std::int64_t>(stepInputs_.inputs.size())});
    upload(stepInputs_.inputs.data(), inputs_.view());
    copyCarried(context_, stepInputs_, inputs_.view());
    if (!stepInputs_.frequencies.empty()) {
        frequencies_ = make(MemoryCategory::Activations, "rope.inverse_frequency", DType::F32,
                            Shape{static_cast<std::int64_t>(stepInputs_.frequencies.size())});
        upload(stepInputs_.frequencies.data(), frequencies_.view());
    }
    std::optional<kernels::GraphCapture> capture;
    if (options_.capture != nullptr) {
        options_.capture->inputs = inputs_.view();
        capture_ = &capture.emplace(context_);
    }
    const kernels::Tensor x = activation("hidden", Shape{stepInputs_.tokens, config.hidden});
    kernels::Embedding embedding{input(stepInputs_.ids), model_.decoder().embedding(), x.view()};
    embedding.scale = model_.embeddingScale_;
    execute(embedding);
    for (std::size_t i = 0; i < model_.layers().size(); ++i) {
        context_.throwIfStopped();
        const kernels::TraceScope scope(context_.tracer(), base::ScopeKind::Layer, "layer",
                                        static_cast<std::int32_t>(i));
        attention(static_cast<int>(i), x.view());
        mlp(model_.layers()[i], x.view());
    }
    if (stepInputs_.rows == 0) {
        return {};
    }
    return head(x.view());
}

void StepRunner::attention(int index, const TensorView& x) {
    const ModelConfig& config = model_.config();
    const DecoderLayer& layer = model_.layers()[static_cast<std::size_t>(index)];
    const kernels::KvView view = kvView(index);
    const Shape queryShape{stepInputs_.tokens, config.heads, config.headDim};
    const Shape keyShape{stepInputs_.tokens, config.kvHeads, config.headDim};
    kernels::Tensor q = activation("query", queryShape);
    const DType keyType = newKeyType(view);
    kernels::Tensor k = make(MemoryCategory::Activations, "key", keyType, keyShape);
    kernels::Tensor v = make(MemoryCategory::Activations, "value", keyType, keyShape);
    project(index, view, x, q.view(), k.view(), v.view());

    const kernels::Tensor out = activation("attention", queryShape);
    if (cache_ != nullptr) {
        attendCache(index, view, q.view(), k.view(), v.view(), out.view());
    } else {
        attendOwn(layer, q.view(), k.view(), v.view(), out.view());
    }
    q.reset();
    k.reset();
    v.reset();

    kernels::OutProject project;
    project.x = kernels::reshaped(out.view(), Shape{stepInputs_.tokens, config.queryWidth()});
    project.o = layer.o;
    project.postNorm = layer.attentionPostNorm;
    project.residual = x;
    project.out = x;
    runWithScratch(project);
}

void StepRunner::attendCache(int index, const kernels::KvView& view, const TensorView& q, const TensorView& k,
                             const TensorView& v, const TensorView& out) {
    const DecoderLayer& layer = model_.layers()[static_cast<std::size_t>(index)];
    kernels::Attention op;
    op.q = q;
    op.offsets = input(stepInputs_.offsets);
    op.positions = input(stepInputs_.positions);
    op.cache = view;
    // Many rows of a quantized cache's own tokens are read faster as they are.
    const bool manyRows = stepInputs_.tokens > static_cast<std::int64_t>(stepInputs_.appends.size());
    if (view.ring || (view.quantized() && manyRows)) {
        op.newK = k;
        op.newV = v;
    }
    op.sinks = layer.sinks;
    op.score = layer.attentionScore;
    op.mask = layer.attentionMask;
    op.scale = static_cast<float>(model_.config().attentionScale);
    op.out = out;
    runWithScratch(op);
    if (!writesBeforeAttention(index)) {
        writeRing(viewAfter(index, view), k, v);
    }
}

/// Each sequence attends to its own tokens of the step. Programs see it as sequence 0: those of models do not ask which
/// it is.
void StepRunner::attendOwn(const DecoderLayer& layer, const TensorView& q, const TensorView& k, const TensorView& v,
                           const TensorView& out) {
    std::int64_t begin = 0;
    for (const KvAppend& sequence : stepInputs_.appends) {
        const std::int64_t end = begin + sequence.tokens;
        const auto own = [&](const TensorView& tensor) {
            return kernels::headsFirst(kernels::sliceRows(tensor, begin, end));
        };
        kernels::FlexAttention op;
        op.q = own(q);
        op.k = own(k);
        op.v = own(v);
        op.score = layer.attentionScore;
        op.mask = layer.attentionMask;
        op.sinks = layer.sinks;
        op.scale = static_cast<float>(model_.config().attentionScale);
        op.out = own(out);
        runWithScratch(op);
        begin = end;
    }
}

/// Attention may read a step's own keys and values before a cache of bytes returns them. On a CPU both are the same
/// number to the last bit, so that no token depends on how a prompt is cut: a byte times its scale fits float32, not 16
/// bits.
DType StepRunner::newKeyType(const kernels::KvView& view) const {
    const DType type = model_.options().computeDType;
    const bool narrow = type == DType::BF16 || type == DType::F16;
    return view.quantized() && narrow && context_.traits().features.floatsForByteKeys ? DType::F32 : type;
}

/// A ring's new tokens may replace older ones that attention still needs; a single one that has a place of its own does
/// not.
bool StepRunner::writesBeforeAttention(int index) const {
    if (cache_ == nullptr) {
        return false;
    }
    const KvGroup& group = cache_->groups()[static_cast<std::size_t>(cache_->groupOf(index))];
    const bool single = stepInputs_.tokens == static_cast<std::int64_t>(stepInputs_.appends.size());
    return !group.ring() || (single && group.ringPages * group.pageTokens >= group.window);
}

/// The cache with the new tokens in it, for who writes them.
kernels::KvView StepRunner::viewAfter(int index, kernels::KvView view) const {
    if (view.ring) {
        const StepInputs::GroupSlices& group = stepInputs_.groups[static_cast<std::size_t>(cache_->groupOf(index))];
        view.first = input(group.firstAfter);
        view.lengths = input(group.lengthsAfter);
    }
    return view;
}

void StepRunner::project(int index, const kernels::KvView& view, const TensorView& x, const TensorView& q,
                         const TensorView& k, const TensorView& v) {
    const DecoderLayer& layer = model_.layers()[static_cast<std::size_t>(index)];
    for (const RopeSpan& span : stepInputs_.ropeSpans) {
        const auto rows = [&](const TensorView& tensor) { return kernels::sliceRows(tensor, span.begin, span.end); };
        kernels::QkvProject op;
        op.x = rows(x);
        op.norm = layer.attentionNorm;
        op.q = layer.q;
        op.k = layer.k;
        op.v = layer.v;
        op.qNorm = layer.qNorm;
        op.kNorm = layer.kNorm;
        op.positions = rows(input(stepInputs_.positions));
        op.sequence = rows(input(stepInputs_.sequence));
        if (stepInputs_.frequencies.empty()) {
            op.inverseFrequency = model_.ropeFrequencies_.view();
        } else {
            const std::int64_t half = model_.config().headDim / 2;
            op.inverseFrequency = kernels::sliceRows(frequencies_.view(), span.offset, span.offset + half);
        }
        op.ropeScale = span.scale;
        op.cache = viewAfter(index, view);
        op.writeCache = writesBeforeAttention(index);
        op.outQ = rows(q);
        op.outK = rows(k);
        op.outV = rows(v);
        runWithScratch(op);
    }
}

void StepRunner::writeRing(const kernels::KvView& after, const TensorView& k, const TensorView& v) {
    kernels::KvWrite op;
    op.k = k;
    op.v = v;
    op.sequence = input(stepInputs_.sequence);
    op.positions = input(stepInputs_.positions);
    op.cache = after;
    execute(op);
}

void StepRunner::mlp(const DecoderLayer& layer, const TensorView& x) {
    if (layer.config.moe) {
        experts(layer, x);
        return;
    }
    kernels::DenseMlp op;
    op.x = x;
    op.norm = layer.mlpNorm;
    op.postNorm = layer.mlpPostNorm;
    op.gate = layer.gate;
    op.up = layer.up;
    op.down = layer.down;
    op.activation = model_.config().activation;
    op.out = x;
    runWithScratch(op);
}

void StepRunner::experts(const DecoderLayer& layer, const TensorView& x) {
    const ModelConfig& config = model_.config();
    const Shape choice{stepInputs_.tokens, config.expertsPerToken};
    const kernels::Tensor normed = activation("normed", Shape{stepInputs_.tokens, config.hidden});
    const kernels::Tensor chosen = make(MemoryCategory::Activations, "expert_ids", DType::I32, choice);
    const kernels::Tensor weights = make(MemoryCategory::Activations, "expert_weights", DType::F32, choice);
    kernels::Route route;
    route.x = x;
    route.norm = layer.mlpNorm;
    route.router = layer.router;
    route.order = config.routerOrder;
    route.normalize = config.routerNormalize;
    route.normed = normed.view();
    route.ids = chosen.view();
    route.weights = weights.view();
    runWithScratch(route);
    if (stepInputs_.batch.expertUse != nullptr && context_.can().computesValues) {
        countExperts(chosen.view());
    }

    kernels::ExpertMlp op;
    op.x = normed.view();
    op.ids = chosen.view();
    op.weights = weights.view();
    op.gateUp = layer.gateUp;
    op.down = layer.down;
    op.activation = config.activation;
    op.layout = config.gateLayout;
    op.alpha = static_cast<float>(config.swigluAlpha);
    op.limit = static_cast<float>(config.swigluLimit);
    op.residual = x;
    op.out = x;
    runWithScratch(op);
}

void StepRunner::countExperts(const TensorView& ids) {
    std::vector<std::int32_t> chosen(static_cast<std::size_t>(ids.shape.count()));
    context_.download(ids.data, chosen.data(), ids.bytes());
    std::sort(chosen.begin(), chosen.end());
    stepInputs_.batch.expertUse->experts += std::unique(chosen.begin(), chosen.end()) - chosen.begin();
}

void StepRunner::endCapture() {
    if (capture_ != nullptr) {
        options_.capture->graph = capture_->end();
        context_.replay(options_.capture->graph);
        capture_ = nullptr;
    }
}

StepOutput StepRunner::head(const TensorView& x) {
    const kernels::Tensor logits =
        make(MemoryCategory::Logits, "logits", DType::F32, Shape{stepInputs_.rows, model_.config().vocab});
    kernels::LmHead op;
    op.x = x;
    if (stepInputs_.rowIds.count > 0) {
        op.rows = input(stepInputs_.rowIds);
    }
    op.norm = model_.decoder().finalNorm();
    op.head = model_.decoder().head();
    op.softCap = static_cast<float>(model_.config().finalSoftCap);
    op.logits = logits.view();
    runWithScratch(op);
    if (stepInputs_.batch.sampling.empty()) {
        endCapture();
    }
    if (stepInputs_.batch.logitsOut != nullptr && context_.can().computesValues) {
        context_.download(logits.view().data, stepInputs_.batch.logitsOut, logits.view().bytes());
    }
    return stepInputs_.batch.sampling.empty() ? StepOutput{} : sample(logits.view());
}

StepOutput StepRunner::sample(const TensorView& logits) {
    const std::int32_t best = stepInputs_.batch.topLogprobs;
    const kernels::Tensor ids = make(MemoryCategory::Logits, "sampled_ids", DType::I32, Shape{stepInputs_.rows});
    const kernels::Tensor logprobs = make(MemoryCategory::Logits, "logprobs", DType::F32, Shape{stepInputs_.rows});
    kernels::Tensor topIds;
    kernels::Tensor topLogprobs;
    if (best > 0) {
        topIds = make(MemoryCategory::Logits, "top_ids", DType::I32, Shape{stepInputs_.rows, best});
        topLogprobs = make(MemoryCategory::Logits, "top_logprobs", DType::F32, Shape{stepInputs_.rows, best});
    }
    kernels::Sample op;
    op.logits = logits;
    op.parameters = stepInputs_.batch.sampling;
    if (stepInputs_.sampling.count > 0) {
        op.packed = input(stepInputs_.sampling);
    }
    op.ids = ids.view();
    op.logprobs = logprobs.view();
    op.topLogprobs = best;
    op.topIds = topIds.view();
    op.topLogprobValues = topLogprobs.view();
    const kernels::Tensor space = takeScratch(op);
    execute(op);
    endCapture();
    if (stepInputs_.batch.idsOut != nullptr) {
        context_.copy(ids.view().data, stepInputs_.batch.idsOut, ids.view().bytes());
    }
    if (options_.capture != nullptr) {
        options_.capture->ids = ids.view();
        options_.capture->logprobs = logprobs.view();
        options_.capture->topIds = topIds.view();
        options_.capture->topLogprobs = topLogprobs.view();
    }

    StepOutput out;
    if (options_.fetchLater) {
        options_.fetchLater({ids.view(), logprobs.view(), topIds.view(), topLogprobs.view()});
        return out;
    }
    const auto fetch = [&](const kernels::Tensor& tensor, auto& values) {
        if (!tensor.empty()) {
            values.resize(static_cast<std::size_t>(tensor.view().shape.count()));
            context_.download(tensor.view().data, values.data(), tensor.view().bytes());
        }
    };
    fetch(ids, out.ids);
    fetch(logprobs, out.logprobs);
    fetch(topIds, out.topIds);
    fetch(topLogprobs, out.topLogprobs);
    if (!context_.can().computesValues) {
        for (std::size_t row = 0; row < out.ids.size(); ++row) {
            out.ids[row] = kernels::metaToken(stepInputs_.batch.sampling[row], model_.config().vocab);
        }
    }
    return out;
}

} // namespace vitrine::engine
