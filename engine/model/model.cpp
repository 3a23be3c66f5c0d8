// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/model/layer.h"
#include "engine/model/step.h"
#include "kernels/jit/kernel_library.h"
#include "kernels/ops/floats.h"

namespace vitrine::engine {
namespace {

constexpr std::size_t kMaxGraphs = 32;                      ///< each holds some device memory
constexpr std::uint64_t kDryBytes = std::uint64_t{1} << 44; ///< more than any step; Meta gives out addresses only

/// Ends the tracer's step however it is left.
class TracedStep {
public:
    TracedStep(kernels::Tracer& tracer, const StepBatch& batch, std::int64_t tokens) : tracer_(tracer) {
        tracer_.beginStep(batch.name, batch.index, tokens);
    }
    ~TracedStep() { tracer_.endStep(); }
    TracedStep(const TracedStep&) = delete; // one begin, one end
    TracedStep& operator=(const TracedStep&) = delete;

private:
    kernels::Tracer& tracer_;
};

std::int64_t tokensOf(const StepBatch& batch) {
    std::int64_t tokens = 0;
    for (const StepSequence& sequence : batch.sequences) {
        tokens += static_cast<std::int64_t>(sequence.tokens.size());
    }
    return tokens;
}

/// Gemma2 multiplies embeddings by sqrt(hidden) rounded to the compute type.
float embeddingScale(const ModelConfig& config, kernels::DType compute) {
    if (!config.scaleEmbedding) {
        return 1;
    }
    const auto scale = static_cast<float>(std::sqrt(static_cast<double>(config.hidden)));
    return compute == kernels::DType::BF16 ? kernels::bf16ToFloat(kernels::floatToBf16(scale)) : scale;
}

} // namespace

Model::Model(kernels::Context& context, const ModelSource& source, const ModelOptions& options,
             base::ProgressSink* progress)
    : context_(context), config_(source.config), options_(options) {
    const LoadOptions load{options.dequantize, options.seed};
    const bool kept = WeightStore::wouldKeep(context, source, load);
    const kernels::TraceScope phase(context.tracer(), base::ScopeKind::Phase,
                                    kept ? "weights kept from the run before" : "load");
    weights_ = std::make_unique<WeightStore>(context, source, load, progress);
    if (kernels::MetaContext* meta = context.meta()) {
        meta->joinStreams(); // nothing computes before the weights are there
    }
    embeddingScale_ = embeddingScale(config_, options_.computeDType);
    bindLayers();
    if (config_.rope.type != RopeType::Dynamic) {
        const RopeTable table = makeRopeTable(config_, config_.maxPositions);
        ropeFrequencies_ = kernels::Tensor(context.memory().general(), base::MemoryCategory::Other,
                                           "rope.inverse_frequency", kernels::DType::F32,
                                           kernels::Shape{static_cast<std::int64_t>(table.inverseFrequency.size())});
        context.upload(table.inverseFrequency.data(), ropeFrequencies_.view().data, ropeFrequencies_.view().bytes());
        ropeScale_ = static_cast<float>(table.attentionScale);
    }
}

Model::~Model() {
    dropLaunched();
}

kernels::NormWeights Model::norm(const std::string& name) const {
    return {weights_->get(name + ".weight"), static_cast<float>(config_.normEps), config_.normForm};
}

kernels::LinearView Model::linear(const std::string& name) const {
    kernels::LinearView out;
    out.weight.dense = weights_->get(name + ".weight");
    out.bias = weights_->find(name + ".bias");
    return out;
}

kernels::LinearView Model::experts(const std::string& name) const {
    kernels::LinearView out;
    if (weights_->has(name)) {
        out.weight.dense = weights_->get(name);
        // Dense gpt-oss checkpoints hold (experts, in, out); what was expanded from MXFP4 is (experts, out, in).
        out.weight.transposed = config_.family == Family::GptOss && !config_.mxfp4;
    } else {
        out.weight.mxfp4 = {weights_->get(name + "_blocks"), weights_->get(name + "_scales")};
    }
    out.bias = weights_->find(name + "_bias");
    return out;
}

void Model::bindLayers() {
    for (std::size_t i = 0; i < config_.layers.size(); ++i) {
        const std::string prefix = fmt::format("model.layers.{}.", i);
        const std::string attention = prefix + "self_attn.";
        const std::string mlp = prefix + "mlp.";
        Layer layer;
        layer.config = config_.layers[i];
        layer.attentionNorm = norm(prefix + "input_layernorm");
        layer.q = linear(attention + "q_proj");
        layer.k = linear(attention + "k_proj");
        layer.v = linear(attention + "v_proj");
        layer.o = linear(attention + "o_proj");
        if (config_.qkNorm) {
            layer.qNorm = norm(attention + "q_norm");
            layer.kNorm = norm(attention + "k_norm");
        }
        layer.sinks = weights_->find(attention + "sinks");
        if (config_.postNorms) {
            layer.attentionPostNorm = norm(prefix + "post_attention_layernorm");
            layer.mlpNorm = norm(prefix + "pre_feedforward_layernorm");
            layer.mlpPostNorm = norm(prefix + "post_feedforward_layernorm");
        } else {
            layer.mlpNorm = norm(prefix + "post_attention_layernorm");
        }
        if (layer.config.moe) {
            layer.router = linear(mlp + (config_.family == Family::GptOss ? "router" : "gate"));
            layer.gateUp = experts(mlp + "experts.gate_up_proj");
            layer.down = experts(mlp + "experts.down_proj");
        } else {
            layer.gate = linear(mlp + "gate_proj");
            layer.up = linear(mlp + "up_proj");
            layer.down = linear(mlp + "down_proj");
        }
        layers_.push_back(layer);
    }
    embedding_ = weights_->get("model.embed_tokens.weight");
    finalNorm_ = norm("model.norm");
    head_.weight.dense = config_.tiedEmbeddings ? embedding_ : weights_->get("lm_head.weight");
}

StepOutput Model::step(const StepBatch& batch, KvCache& cache) {
    context_.throwIfStopped();
    const TracedStep traced(context_.tracer(), batch, tokensOf(batch));
    std::vector<KvAppend> appends;
    appends.reserve(batch.sequences.size());
    for (const StepSequence& sequence : batch.sequences) {
        appends.push_back({sequence.sequence, static_cast<std::int64_t>(sequence.tokens.size())});
    }
    cache.reserve(appends);
    const StepPlan plan(*this, batch, cache);
    context_.memory().step().ensureCapacity(arenaBytes(plan, cache));
    StepOutput out = runStep(plan, cache);
    if (kernels::MetaContext* meta = context_.meta()) {
        meta->joinStreams();
    }
    cache.commit(appends);
    if (batch.expertUse != nullptr && !context_.isMeta()) {
        ++batch.expertUse->steps;
        batch.expertUse->tokens += plan.tokens;
    }
    return out;
}

std::vector<std::int64_t> Model::graphKey(const StepPlan& plan, const KvCache& cache) const {
    std::vector<std::int64_t> key = plan.signature();
    // The arena's address changes only when it grows.
    key.push_back(static_cast<std::int64_t>(context_.memory().step().capacity()));
    for (const KvGroup& group : cache.groups()) {
        const kernels::KvView view = cache.layerView(group.layers.front());
        key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(view.keys.data)));
        key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(view.values.data)));
        key.push_back(view.keys.stride0());
        key.push_back(view.keys.shape[1]);
        key.push_back(static_cast<std::int64_t>(view.keys.dtype));
    }
    return key;
}

StepGraph* Model::graphOf(const StepPlan& plan, const KvCache& cache) {
    const bool decode = plan.tokens == static_cast<std::int64_t>(plan.appends.size()) && plan.rows == plan.tokens &&
                        plan.batch.logits == StepLogits::Last && plan.batch.logitsOut == nullptr &&
                        plan.batch.expertUse == nullptr;
    if (context_.cuda() == nullptr || !decode || !plan.frequencies.empty() || context_.memory().guarded() ||
        !context_.tracer().foldsSteps()) {
        return nullptr;
    }
    std::vector<std::int64_t> key = graphKey(plan, cache);
    if (graphs_.size() >= kMaxGraphs && graphs_.count(key) == 0) {
        graphs_.clear();
    }
    std::unique_ptr<StepGraph>& graph = graphs_[std::move(key)];
    if (graph == nullptr) {
        graph = std::make_unique<StepGraph>();
    }
    return graph.get();
}

StepGraph* Model::capturedGraph(const StepPlan& plan, const KvCache& cache) const {
    const auto size = arenaSizes_.find(plan.signature());
    if (size == arenaSizes_.end() || size->second > context_.memory().step().capacity()) {
        return nullptr;
    }
    const auto found = graphs_.find(graphKey(plan, cache));
    return found == graphs_.end() || found->second->graph.empty() ? nullptr : found->second.get();
}

StepOutput Model::runStep(const StepPlan& plan, const KvCache& cache) {
    StepGraph* const graph = graphOf(plan, cache);
    if (graph == nullptr || !graph->known) {
        // The first of its kind compiles and loads what it needs, which a capture should not.
        StepOutput out = StepRunner(*this, plan, cache, context_).run();
        if (graph != nullptr) {
            graph->known = true;
        }
        return out;
    }
    if (graph->graph.empty()) {
        return StepRunner(*this, plan, cache, context_, StepMode::Capture, graph).run();
    }
    kernels::CudaContext& gpu = *context_.cuda();
    gpu.copyToDevice(plan.inputs.data(), graph->inputs.data, graph->inputs.bytes());
    gpu.replay(graph->graph);
    // The books are kept while the device works.
    return StepRunner(*this, plan, cache, context_, StepMode::Account, graph).run();
}

bool Model::launch(const StepBatch& batch, KvCache& cache, bool idsFromLast) {
    context_.throwIfStopped();
    kernels::CudaContext* const gpu = context_.cuda();
    // A full profile places every kernel under the scope of its step, which has to be open when the graph is launched.
    if (gpu == nullptr || batch.expertUse != nullptr || batch.logitsOut != nullptr || batch.sampling.empty() ||
        context_.memory().guarded() || context_.tracer().level() == kernels::ProfileLevel::Full ||
        launched_.size() >= resultSlots_.size() || (idsFromLast && launched_.empty())) {
        return false;
    }
    std::vector<KvAppend> appends;
    std::vector<int> sequences;
    for (const StepSequence& sequence : batch.sequences) {
        appends.push_back({sequence.sequence, static_cast<std::int64_t>(sequence.tokens.size())});
        sequences.push_back(sequence.sequence);
    }
    if (cache.roomBeforeGrowth(sequences) < 1) {
        // Pages are added between steps, so that the order of allocations is the same on every backend.
        return false;
    }
    auto step = std::make_unique<LaunchedStep>(batch);
    const StepPlan& plan = step->plan.emplace(*this, step->batch, cache);
    step->graph = capturedGraph(plan, cache);
    if (step->graph == nullptr || step->graph->ids.empty()) {
        return false;
    }
    const kernels::TensorView& inputs = step->graph->inputs;
    std::int64_t known = 0; // inputs that the device has already
    if (idsFromLast) {
        const kernels::TensorView& ids = launched_.back()->graph->ids;
        if (plan.ids.offset != 0 || ids.shape.count() != plan.ids.count) {
            return false;
        }
        gpu->copyOnDevice(ids.data, inputs.data, ids.bytes());
        known = plan.ids.count;
    }
    gpu->copyToDevice(plan.inputs.data() + known, inputs.as<std::int32_t>() + known,
                      inputs.bytes() - static_cast<std::uint64_t>(known) * sizeof(std::int32_t));
    gpu->replay(step->graph->graph);
    fetch(*step);
    cache.commit(appends);
    launched_.push_back(std::move(step));
    return true;
}

void Model::fetch(LaunchedStep& step) {
    kernels::CudaContext& gpu = *context_.cuda();
    const std::array<kernels::TensorView, 4> parts = {step.graph->ids, step.graph->logprobs, step.graph->topIds,
                                                      step.graph->topLogprobs};
    std::uint64_t bytes = 0;
    for (const kernels::TensorView& part : parts) {
        bytes += part.empty() ? 0 : part.bytes();
    }
    kernels::Buffer& slot = resultSlots_[nextSlot_++ % resultSlots_.size()];
    if (slot.bytes() < bytes) {
        slot = kernels::Buffer(context_.memory().host(), bytes, {base::MemoryCategory::Logits, "step.results"});
    }
    step.results = static_cast<std::byte*>(slot.data());
    std::byte* out = step.results;
    for (const kernels::TensorView& part : parts) {
        if (!part.empty()) {
            gpu.copyToHost(part.data, out, part.bytes());
            out += part.bytes();
        }
    }
    step.fetched = gpu.record();
}

StepOutput Model::finishLaunched(const KvCache& cache) {
    const std::unique_ptr<LaunchedStep> step = std::move(launched_.front());
    launched_.pop_front();
    const TracedStep traced(context_.tracer(), step->batch, step->plan->tokens);
    // The books are kept while the device works.
    StepRunner(*this, *step->plan, cache, context_, StepMode::Books, step->graph).run();
    step->fetched.wait();
    StepOutput out;
    const std::byte* in = step->results;
    const auto read = [&](const kernels::TensorView& part, auto& values) {
        if (!part.empty()) {
            values.resize(static_cast<std::size_t>(part.shape.count()));
            std::memcpy(values.data(), in, part.bytes());
            in += part.bytes();
        }
    };
    read(step->graph->ids, out.ids);
    read(step->graph->logprobs, out.logprobs);
    read(step->graph->topIds, out.topIds);
    read(step->graph->topLogprobs, out.topLogprobs);
    return out;
}

void Model::dropLaunched() noexcept {
    for (const auto& step : launched_) {
        try {
            step->fetched.wait();
        } catch (const base::Error&) {
            // The next call to the device tells of the fault.
            break;
        }
    }
    launched_.clear();
}

std::uint64_t Model::arenaBytes(const StepPlan& plan, const KvCache& cache) {
    std::vector<std::int64_t> signature = plan.signature();
    const auto known = arenaSizes_.find(signature);
    if (known != arenaSizes_.end()) {
        return known->second;
    }
    kernels::Context& dry = dryContext();
    if (kernels::CudaContext* gpu = context_.cuda()) {
        {
            const kernels::CudaPrefetch prefetch(*gpu);
            StepRunner(*this, plan, cache, dry, StepMode::Prefetch).run();
        }
        gpu->library().waitForPrefetch(nullptr, context_.stop());
    } else {
        StepRunner(*this, plan, cache, dry).run();
    }
    const std::uint64_t bytes = dry.memory().step().highWater();
    arenaSizes_.emplace(std::move(signature), bytes);
    return bytes;
}

kernels::Context& Model::dryContext() {
    if (dryContext_ == nullptr) {
        kernels::ContextOptions options;
        options.backend = kernels::Backend::Meta;
        options.traits = context_.traits();
        options.memory.deviceBudget = 4 * kDryBytes;
        dryContext_ = std::make_unique<kernels::Context>(options);
        // The weights may have addresses of another Meta context: the dry run's stay clear of them.
        dryGap_ = kernels::Buffer(dryContext_->memory().general(), kDryBytes, {base::MemoryCategory::Other, "gap"});
        dryContext_->memory().step().ensureCapacity(kDryBytes);
    }
    return *dryContext_;
}

void Model::prepare(std::span<const StepBatch> steps, const KvCacheOptions& options, base::ProgressSink* progress) {
    kernels::CudaContext* const gpu = context_.cuda();
    if (gpu == nullptr) {
        return;
    }
    kernels::Context& dry = dryContext();
    KvCache cache(dry, config_, options);
    std::vector<int> sequences;
    for (const StepBatch& batch : steps) {
        std::vector<KvAppend> appends;
        for (const StepSequence& item : batch.sequences) {
            while (static_cast<int>(sequences.size()) <= item.sequence) {
                sequences.push_back(cache.addSequence());
            }
            appends.push_back({item.sequence, static_cast<std::int64_t>(item.tokens.size())});
        }
        cache.reserve(appends);
        const StepPlan plan(*this, batch, cache);
        {
            const kernels::CudaPrefetch prefetch(*gpu);
            StepRunner(*this, plan, cache, dry, StepMode::Prefetch).run();
        }
        cache.commit(appends);
    }
    gpu->library().waitForPrefetch(progress, context_.stop());
}

WeightBytes Model::weightBytes() const {
    WeightBytes out;
    out.head = head_.weight.bytes();
    out.embeddingRow = kernels::bytesOf(embedding_.dtype, config_.hidden);
    out.shared = weights_->report().residentBytes - out.head - (config_.tiedEmbeddings ? 0 : embedding_.bytes());
    for (const Layer& layer : layers_) {
        if (layer.config.moe) {
            std::uint64_t all = 0;
            for (const kernels::LinearView* linear : {&layer.gateUp, &layer.down}) {
                all += linear->weight.bytes() + (linear->bias.empty() ? 0 : linear->bias.bytes());
            }
            out.shared -= all;
            out.expert = all / static_cast<std::uint64_t>(config_.experts);
            ++out.moeLayers;
        }
    }
    return out;
}

std::uint64_t Model::weightBytesPerToken() const {
    const WeightBytes bytes = weightBytes();
    return bytes.shared + bytes.head + (config_.tiedEmbeddings ? 0 : bytes.embeddingRow) +
           bytes.expert * static_cast<std::uint64_t>(bytes.moeLayers * config_.expertsPerToken);
}

std::int64_t prefillChunk(const kernels::DeviceTraits& traits, std::int64_t asked) {
    return asked > 0 ? asked : traits.arch.starts_with("cpu") ? 512 : 8192;
}

} // namespace vitrine::engine
