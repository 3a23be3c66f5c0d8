// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/model_rank.h"

#include <cmath>
#include <utility>

#include "engine/model/layer_kinds.h"
#include "engine/model/model.h"
#include "engine/model/step.h"
#include "engine/parallel/shard_plan.h"
#include "kernels/context/context_options.h"
#include "kernels/context/thread_ranks.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {
namespace {

constexpr std::size_t kMaxSizes = 16384;                    ///< sizes of steps that are remembered: 3 MB
constexpr std::uint64_t kDryBytes = std::uint64_t{1} << 44; ///< more than any step; Meta gives out addresses only

/// Gemma2 multiplies embeddings by sqrt(hidden) rounded to the compute type.
float embeddingScale(const ModelConfig& config, kernels::DType compute) {
    if (!config.scaleEmbedding) {
        return 1;
    }
    const auto scale = static_cast<float>(std::sqrt(static_cast<double>(config.hidden)));
    return compute == kernels::DType::BF16 ? kernels::bf16ToFloat(kernels::floatToBf16(scale)) : scale;
}

} // namespace

ModelRank::ModelRank(kernels::Context& context, const ModelSource& source, const ModelConfig& config,
                     const ModelOptions& options, std::shared_ptr<const RankShards> shards, bool leads,
                     base::ProgressSink* progress)
    : context_(context), config_(config), options_(options), shards_(std::move(shards)), leads_(leads) {
    const LoadOptions load{options.dequantize, options.widen, options.seed, options.pack, shards_.get()};
    const bool kept = WeightStore::wouldKeep(context, source, load);
    const kernels::TraceScope phase(context.tracer(), base::ScopeKind::Phase,
                                    kept ? "weights kept from the run before" : "load");
    weights_ = std::make_unique<WeightStore>(context, source, load, progress);
    context.joinStreams(); // nothing computes before the weights are there
    const std::int64_t firstId = shards_ == nullptr ? -1 : shards_->plan->vocabulary(shards_->rank).begin;
    const std::int64_t firstExpert = shards_ == nullptr ? 0 : shards_->plan->experts(shards_->rank).begin;
    decoder_ = std::make_unique<Decoder>(config_, *weights_, makeRope(), embeddingScale(config_, options_.computeDType),
                                         firstId, firstExpert);
}

ModelRank::~ModelRank() = default;

kernels::Communicator* ModelRank::communicator() const {
    return shards_ == nullptr ? nullptr : context_.communicator();
}

RopeValues ModelRank::makeRope() {
    if (config_.rope.followsLength()) {
        return {};
    }
    const RopeTable table = makeRopeTable(config_, config_.maxPositions);
    const kernels::Shape shape{static_cast<std::int64_t>(table.inverseFrequency.size())};
    // Of exactly this size, so that with more memory more is left.
    ropeArena_ = context_.memory().reserveArena(kernels::bytesOf(kernels::DType::F32, shape.count()), "rope");
    ropeFrequencies_ =
        kernels::Tensor(*ropeArena_, base::MemoryCategory::Other, "rope.inverse_frequency", kernels::DType::F32, shape);
    context_.upload(table.inverseFrequency.data(), ropeFrequencies_.view().data, ropeFrequencies_.view().bytes());
    return {ropeFrequencies_.view(), static_cast<float>(table.attentionScale)};
}

void ModelRank::forgetSteps() {
    arenaSizes_.clear();
    layerKinds_.clear();
}

std::optional<std::uint64_t> ModelRank::knownArenaBytes(const StepInputs& stepInputs) const {
    const auto known = arenaSizes_.find(stepInputs.signature());
    return known == arenaSizes_.end() ? std::nullopt : std::optional(known->second);
}

std::uint64_t ModelRank::arenaBytes(const StepInputs& stepInputs, const KvCache* cache) {
    std::vector<std::int64_t> signature = stepInputs.signature();
    const auto known = arenaSizes_.find(signature);
    if (known != arenaSizes_.end()) {
        return known->second;
    }
    const bool compile = context_.can().compilesKernels;
    const std::uint64_t bytes = dryRun(stepInputs, cache, compile);
    if (compile) {
        context_.waitForKernels(nullptr);
    }
    if (arenaSizes_.size() >= kMaxSizes) {
        arenaSizes_.clear(); // a server meets ever new mixtures of prompts
    }
    arenaSizes_.emplace(std::move(signature), bytes);
    return bytes;
}

std::uint64_t ModelRank::dryRun(const StepInputs& stepInputs, const KvCache* cache, bool compile) {
    kernels::Context& dry = dryContext();
    std::optional<kernels::Prefetch> prefetch;
    StepRunOptions runOptions;
    if (compile) {
        runOptions.compile = &prefetch.emplace(context_); // of every layer
    } else {
        runOptions.layerKinds = kindsOfLayers();
    }
    StepRunner(*this, stepInputs, cache, dry, runOptions).run();
    return dry.memory().step().highWater();
}

const std::vector<int>& ModelRank::kindsOfLayers() {
    if (layerKinds_.empty()) {
        layerKinds_ = layerKinds(layers());
    }
    return layerKinds_;
}

kernels::Context& ModelRank::dryContext() {
    if (dryContext_ == nullptr) {
        kernels::ContextOptions options;
        options.backend = kernels::Backend::Meta;
        options.traits = context_.traits();
        if (communicator() != nullptr) {
            dryRanks_ = kernels::makeLoneRank(number(), communicator()->size());
            options.communicator = dryRanks_.get();
        }
        options.memory.deviceBudget = 4 * kDryBytes;
        dryContext_ = std::make_unique<kernels::Context>(options);
        // The weights may have addresses of another Meta context: the dry run's stay clear of them.
        dryGap_ = kernels::Buffer(dryContext_->memory().general(), kDryBytes, {base::MemoryCategory::Other, "gap"});
        dryContext_->memory().step().ensureCapacity(kDryBytes);
    }
    return *dryContext_;
}

} // namespace vitrine::engine
