// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/model.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/model/step.h"
#include "engine/model/step_prices.h"
#include "engine/parallel/shard_plan.h"
#include "kernels/context/device_group.h"

namespace vitrine::engine {
namespace {

/// What a part of a model is like where it is not like the whole.
ModelConfig configOfRank(const ModelConfig& config, const ShardPlan& plan) {
    ModelConfig part = config;
    part.heads = plan.heads(0).count();
    part.kvHeads = plan.keyHeads(0).count();
    return part;
}

} // namespace

Model::Model(kernels::Context& context, const ModelSource& source, const ModelOptions& options,
             base::ProgressSink* progress)
    : context_(context), config_(source.config), options_(options), stepPrices_(std::make_unique<StepPrices>()) {
    if (options_.parallel.ranks() == 1) {
        ranks_.push_back(std::make_unique<ModelRank>(context, source, config_, options_, nullptr, true, progress));
        return;
    }
    if (options_.parallel.ranks() != context.ranks()) {
        throw base::Internal("a model is divided among more or fewer ranks than there are");
    }
    const auto plan = std::make_shared<const ShardPlan>(source.config, options_.parallel);
    config_ = configOfRank(source.config, *plan);
    loadRanks(source, plan, progress);
}

/// Every rank at once. Only the leading one reports progress.
void Model::loadRanks(const ModelSource& source, const std::shared_ptr<const ShardPlan>& plan,
                      base::ProgressSink* progress) {
    const auto load = [&](kernels::Context& context) {
        auto shards = std::make_shared<RankShards>(plan, context.rank(), source.checkpoint, source.config);
        const bool leads = &context == &context_;
        return std::make_unique<ModelRank>(context, source, config_, options_, std::move(shards), leads,
                                           leads ? progress : nullptr);
    };
    kernels::DeviceGroup* const group = context_.group();
    if (group == nullptr) { // a plan: one rank stands for others
        ranks_.push_back(load(context_));
        return;
    }
    ranks_.resize(static_cast<std::size_t>(group->size()));
    try {
        group->run(
            [&](kernels::Context& context) { ranks_[static_cast<std::size_t>(context.rank())] = load(context); });
    } catch (...) {
        group->run([&](kernels::Context& context) { ranks_[static_cast<std::size_t>(context.rank())].reset(); });
        throw;
    }
}

/// A rank's memory goes on its thread.
Model::~Model() {
    dropLaunched();
    if (ranks_.size() > 1) {
        context_.group()->run(
            [&](kernels::Context& context) { ranks_[static_cast<std::size_t>(context.rank())].reset(); });
    }
}

void Model::onEveryRank(const std::function<void(ModelRank&)>& work) {
    if (ranks_.size() == 1) {
        work(lead());
        return;
    }
    context_.group()->run([&](kernels::Context& context) { work(*ranks_[static_cast<std::size_t>(context.rank())]); });
}

void Model::dropGraphs() {
    requireNoneLaunched();
    graphs_.clear();
}

void Model::giveBackSteps() {
    dropGraphs();
    onEveryRank([](ModelRank& rank) { rank.context().memory().step().giveBack(); });
}

/// Their ops are others now.
void Model::forgetSteps() {
    lead().forgetSteps();
    stepPrices_->clear();
    graphs_.clear();
}

void Model::requireWhole(std::string_view what) const {
    if (leader().shards() != nullptr) {
        throw base::Unsupported(fmt::format("tp, ep: a model that is divided among ranks cannot have {} yet", what));
    }
}

void Model::setAdapter(const std::string& weight, const kernels::AdapterView& adapter) {
    requireNoneLaunched();
    requireWhole("an adapter");
    lead().decoder().setAdapter(weight, adapter);
    forgetSteps();
}

void Model::setMerged(const std::string& weight, const kernels::WeightView& merged,
                      const kernels::AdapterView& adapter) {
    requireNoneLaunched();
    requireWhole("an adapter");
    lead().decoder().setMerged(weight, merged, adapter);
    forgetSteps();
}

void Model::replaceWeight(const std::string& weight, const kernels::WeightView& replacement) {
    requireNoneLaunched();
    requireWhole("replaced weights");
    lead().decoder().replaceWeight(weight, replacement);
    forgetSteps();
}

WeightBytes Model::weightBytes() const {
    WeightBytes out;
    const kernels::TensorView& embedding = decoder().embedding();
    out.head = decoder().head().weight.bytes();
    out.embeddingRow = kernels::bytesOf(embedding.dtype, config_.hidden);
    out.shared = loadReport().residentBytes - out.head - (config_.tiedEmbeddings ? 0 : embedding.bytes());
    for (const DecoderLayer& layer : layers()) {
        if (layer.config.moe) {
            std::uint64_t all = 0;
            for (const kernels::LinearView* linear : {&layer.gateUp, &layer.down}) {
                all += linear->weight.bytes() + (linear->bias.empty() ? 0 : linear->bias.bytes());
            }
            out.shared -= all;
            out.expert = all / static_cast<std::uint64_t>(layer.gateUp.weight.experts());
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
    return asked > 0 ? asked : traits.features.prefillTokens;
}

} // namespace vitrine::engine
