// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/step.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "engine/model/embed_tokens.h"
#include "kernels/context/equal_work.h"
#include "kernels/core/floats.h"
#include "kernels/ops/comm/all_gather.h"
#include "kernels/ops/experts/pack_experts.h"
#include "kernels/ops/fused/blocks.h"
#include "kernels/ops/loss/log_probs.h"
#include "kernels/ops/rowwise/elementwise.h"
#include "kernels/ops/sampling/greedy_parts.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::TensorView;

void StepRunner::upload(const void* host, const TensorView& device) {
    context_.upload(host, device.data, device.bytes());
}

TensorView StepRunner::input(const StepInputs::Slice& slice) const {
    return inputOf(inputs_.view(), slice);
}

kernels::KvView StepRunner::kvView(int layer) const {
    const StepInputs::GroupSlices& group = stepInputs_.groups[static_cast<std::size_t>(cache_->groupOf(layer))];
    kernels::KvView view = cache_->layerView(layer, rank_.cachePlace());
    view.blockTable = kernels::reshaped(input(group.pages),
                                        Shape{static_cast<std::int64_t>(stepInputs_.appends.size()), group.columns});
    view.first = input(group.first);
    view.lengths = input(group.lengths);
    view.totalTokens = group.totalTokens;
    return view;
}

StepOutput StepRunner::run() {
    const ModelConfig& config = rank_.config();
    context_.memory().step().beginStep();
    inputs_ = runner_.make(MemoryCategory::Activations, "step.inputs", DType::I32, Shape{stepInputs_.inputCount});
    upload(stepInputs_.inputs.data(), inputs_.view());
    copyCarried(context_, stepInputs_, inputs_.view());
    if (!stepInputs_.frequencies.empty()) {
        frequencies_ = runner_.make(MemoryCategory::Activations, "rope.inverse_frequency", DType::F32,
                                    Shape{static_cast<std::int64_t>(stepInputs_.frequencies.size())});
        upload(stepInputs_.frequencies.data(), frequencies_.view());
    }
    makeChoices();
    std::optional<kernels::GraphCapture> capture;
    if (options_.capture != nullptr) {
        options_.capture->inputs = inputs_.view();
        capture_ = &capture.emplace(context_);
    }
    const kernels::Tensor x = runner_.activation("hidden", Shape{stepInputs_.tokens, config.hidden});
    embedTokens(runner_, rank_.decoder(), input(stepInputs_.ids), x.view());
    lookAt(x.view(), BrokenPlace::kEmbedding);
    runLayers(x.view());
    return stepInputs_.rows == 0 ? results({}) : head(x.view());
}

/// Room for the experts of all layers, where they are wanted.
void StepRunner::makeChoices() {
    const auto layers =
        std::ranges::count_if(rank_.layers(), [](const DecoderLayer& layer) { return layer.config.moe; });
    if (rank_.leads() && stepInputs_.batch.experts && layers > 0) {
        const DType id = rank_.config().experts <= ExpertChoices::kExpertsOfAByte ? DType::U8 : DType::U16;
        choices_ = runner_.make(MemoryCategory::Activations, "expert_choices", id,
                                Shape{stepInputs_.tokens, layers, rank_.config().expertsPerToken});
    }
}

void StepRunner::runLayers(const TensorView& x) {
    const LayerTokens tokens = layerTokens(rank_, stepInputs_, inputs_.view(), frequencies_.view());
    std::int64_t moeLayer = -1; // the last one that came
    const RouterObserver notes{[&](const kernels::RouterTopK& done) { noteExperts(done.ids, moeLayer); }};
    const bool observes = (rank_.leads() && stepInputs_.batch.expertUse != nullptr) || !choices_.empty();
    kernels::EqualWork equal(context_);
    for (std::size_t i = 0; i < rank_.layers().size(); ++i) {
        context_.throwIfStopped();
        const auto layer = static_cast<int>(i);
        moeLayer += rank_.layers()[i].config.moe ? 1 : 0;
        equal.run(options_.layerKinds.empty() ? layer : options_.layerKinds[i],
                  [&] { runLayer(layer, tokens, x, observes ? &notes : nullptr); });
    }
}

void StepRunner::runLayer(int index, const LayerTokens& tokens, const TensorView& x, const RouterObserver* observer) {
    const kernels::TraceScope scope(context_.tracer(), base::ScopeKind::Layer, "layer", index);
    const DecoderLayer& layer = rank_.layers()[static_cast<std::size_t>(index)];
    std::optional<LayerCache> cache;
    if (cache_ != nullptr) {
        cache = layerCache(index);
    }
    attentionForward(runner_, {rank_.config(), layer, tokens, cache ? &*cache : nullptr}, x, x, nullptr);
    mlpForward(runner_, rank_.config(), layer, x, x, nullptr, observer);
    lookAt(x, index);
}

/// Notes the layer when its output is not finite, and the first one.
void StepRunner::lookAt(const TensorView& x, std::int32_t layer) const {
    BrokenPlace* const broken = stepInputs_.batch.broken;
    if (!rank_.leads() || broken == nullptr || broken->layer != BrokenPlace::kNowhere ||
        !context_.can().computesValues) {
        return;
    }
    std::vector<std::byte> bytes(x.bytes());
    context_.download(x.data, bytes.data(), x.bytes());
    std::vector<float> values(static_cast<std::size_t>(x.shape.count()));
    kernels::loadFloats(x.dtype, bytes.data(), 0, x.shape.count(), values.data());
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
        broken->layer = layer;
    }
}

LayerCache StepRunner::layerCache(int index) const {
    LayerCache out;
    out.before = kvView(index);
    out.after = viewAfter(index, out.before);
    out.writesFirst = writesBeforeAttention(index);
    // Many rows of a quantized cache's own tokens are read faster as they are.
    const bool manyRows = stepInputs_.tokens > static_cast<std::int64_t>(stepInputs_.appends.size());
    out.readsNew = out.before.ring || (out.before.quantized() && manyRows);
    out.newKeyType = newKeyType(out.before);
    return out;
}

/// Attention may read a step's own keys and values before a cache of bytes returns them. On a CPU both are the same
/// number to the last bit, so that no token depends on how a prompt is cut: a byte times its scale fits float32, not 16
/// bits.
DType StepRunner::newKeyType(const kernels::KvView& view) const {
    const DType type = rank_.options().computeDType;
    const bool narrow = type == DType::BF16 || type == DType::F16;
    return view.quantized() && narrow && context_.traits().features.floatsForByteKeys ? DType::F32 : type;
}

/// A ring's new tokens may replace older ones that attention still needs; a single one that has a place of its own does
/// not.
bool StepRunner::writesBeforeAttention(int index) const {
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

void StepRunner::noteExperts(const TensorView& ids, std::int64_t moeLayer) {
    if (!choices_.empty()) {
        runner_.run(kernels::PackExperts{ids, choices_.view(), moeLayer});
    }
    if (stepInputs_.batch.expertUse != nullptr && context_.can().computesValues) {
        countExperts(ids);
    }
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

/// Whether a few numbers of each rank's part are all that is wanted of the logits.
bool StepRunner::takesBest() const {
    return runner_.ranks() != nullptr && stepInputs_.onlyBest();
}

/// Greedy ids, without logits of the whole vocabulary on any rank.
StepOutput StepRunner::takeBest(const TensorView& part) {
    const std::int64_t rows = stepInputs_.rows;
    const kernels::Tensor own =
        runner_.make(MemoryCategory::Logits, "best", DType::F32, Shape{rows, kernels::kBestOfPart});
    const kernels::Tensor all = runner_.make(MemoryCategory::Logits, "best.all", DType::F32,
                                             Shape{rows, runner_.ranks()->size() * kernels::kBestOfPart});
    runner_.run(kernels::BestOfPart{part, rank_.decoder().firstId(), own.view()});
    gatherColumns(own.view(), all.view());
    if (!rank_.leads()) {
        return {};
    }
    const kernels::Tensor ids = runner_.make(MemoryCategory::Logits, "sampled_ids", DType::I32, Shape{rows});
    const kernels::Tensor logprobs = runner_.make(MemoryCategory::Logits, "logprobs", DType::F32, Shape{rows});
    runner_.run(kernels::BestOfParts{all.view(), ids.view(), logprobs.view()});
    return results({ids.view(), logprobs.view(), {}, {}, {}, {}});
}

/// Columns of all ranks, from those that each has.
void StepRunner::gatherColumns(const TensorView& part, const TensorView& whole) const {
    kernels::AllGather op;
    op.x = part;
    op.out = whole;
    op.axis = 1;
    op.communicator = runner_.ranks();
    runner_.run(op);
}

void StepRunner::makeLogits(const TensorView& x, const TensorView& logits) const {
    kernels::LmHead op;
    op.x = x;
    if (stepInputs_.rowIds.count > 0) {
        op.rows = input(stepInputs_.rowIds);
    }
    op.norm = rank_.decoder().finalNorm();
    op.head = rank_.decoder().head();
    op.softCap = static_cast<float>(rank_.config().finalSoftCap);
    op.logits = logits;
    runner_.run(op);
}

StepOutput StepRunner::head(const TensorView& x) {
    kernels::Tensor part;
    if (runner_.ranks() != nullptr) {
        part = runner_.make(MemoryCategory::Logits, "logits.part", DType::F32,
                            Shape{stepInputs_.rows, rank_.decoder().head().weight.outFeatures()});
        makeLogits(x, part.view());
        if (takesBest()) {
            return takeBest(part.view());
        }
    }
    const kernels::Tensor logits =
        runner_.make(MemoryCategory::Logits, "logits", DType::F32, Shape{stepInputs_.rows, rank_.config().vocab});
    if (part.empty()) {
        makeLogits(x, logits.view());
    } else {
        gatherColumns(part.view(), logits.view());
        part.reset();
    }
    if (stepInputs_.batch.sampling.empty()) {
        endCapture();
    }
    if (!rank_.leads()) {
        return {};
    }
    if (stepInputs_.batch.logitsOut != nullptr && context_.can().computesValues) {
        context_.download(logits.view().data, stepInputs_.batch.logitsOut, logits.view().bytes());
    }
    return stepInputs_.batch.sampling.empty() ? results({}) : sample(logits.view());
}

StepOutput StepRunner::sample(const TensorView& logits) {
    const std::int32_t best = stepInputs_.batch.topLogprobs;
    const kernels::Tensor ids =
        runner_.make(MemoryCategory::Logits, "sampled_ids", DType::I32, Shape{stepInputs_.rows});
    const kernels::Tensor logprobs =
        runner_.make(MemoryCategory::Logits, "logprobs", DType::F32, Shape{stepInputs_.rows});
    kernels::Tensor topIds;
    kernels::Tensor topLogprobs;
    if (best > 0) {
        topIds = runner_.make(MemoryCategory::Logits, "top_ids", DType::I32, Shape{stepInputs_.rows, best});
        topLogprobs = runner_.make(MemoryCategory::Logits, "top_logprobs", DType::F32, Shape{stepInputs_.rows, best});
    }
    kernels::Tensor drawLogprobs;
    if (stepInputs_.batch.drawLogprobs) {
        drawLogprobs = runner_.make(MemoryCategory::Logits, "draw_logprobs", DType::F32,
                                    Shape{stepInputs_.rows, kernels::kDrawLogprobs});
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
    op.drawLogprobs = drawLogprobs.view();
    const kernels::Tensor space = runner_.takeScratch(op);
    runner_.execute(op);
    if (stepInputs_.trainerTemperature > 0) {
        scoreAsTraining(logits, ids.view(), drawLogprobs.view());
    }
    endCapture();
    if (stepInputs_.batch.idsOut != nullptr) {
        context_.copy(ids.view().data, stepInputs_.batch.idsOut, ids.view().bytes());
    }
    return results({ids.view(), logprobs.view(), topIds.view(), topLogprobs.view(), drawLogprobs.view(), {}});
}

/// Takes the place of the tempered log-probabilities.
void StepRunner::scoreAsTraining(const TensorView& logits, const TensorView& ids,
                                 const TensorView& drawLogprobs) const {
    const Shape rows{stepInputs_.rows};
    const kernels::Tensor logProbs = runner_.make(MemoryCategory::Logits, "trainer_logprobs", DType::F32, rows);
    // Training makes the entropies with them.
    const kernels::Tensor entropies = runner_.make(MemoryCategory::Logits, "trainer_entropies", DType::F32, rows);
    kernels::LogProbs op;
    op.logits = logits;
    op.targets = ids;
    op.inverseTemperature = static_cast<float>(1 / static_cast<double>(stepInputs_.trainerTemperature));
    op.logProbs = logProbs.view();
    op.entropies = entropies.view();
    runner_.run(op);
    const Shape column{stepInputs_.rows, 1};
    TensorView tempered = drawLogprobs;
    tempered.data = tempered.as<float>() + static_cast<std::size_t>(kernels::DrawLogprob::Tempered);
    tempered.shape = column;
    tempered.strides[0] = kernels::kDrawLogprobs;
    runner_.run(kernels::Cast{kernels::reshaped(logProbs.view(), column), tempered});
}

/// Gives the host what was sampled, and the experts.
StepOutput StepRunner::results(SampledViews views) {
    views.back() = choices_.view();
    if (options_.capture != nullptr) {
        options_.capture->sampled = views;
    }
    StepOutput out;
    if (options_.fetchLater) {
        options_.fetchLater(views);
        return out;
    }
    const auto fetch = [&](const TensorView& part, auto& values) {
        if (!part.empty()) {
            values.resize(part.bytes() / sizeof(values[0]));
            context_.download(part.data, values.data(), part.bytes());
        }
    };
    fetch(views[0], out.ids);
    fetch(views[1], out.logprobs);
    fetch(views[2], out.topIds);
    fetch(views[3], out.topLogprobs);
    fetch(views[4], out.drawLogprobs);
    out.experts = choicesIn(views[5]);
    fetch(views[5], out.experts.bytes);
    if (!context_.can().computesValues) {
        sampleOnMeta(stepInputs_, rank_.config().vocab, out.ids);
    }
    return out;
}

} // namespace vitrine::engine
