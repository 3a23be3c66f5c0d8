// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/model.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/model/step.h"
#include "engine/model/step_prices.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {
namespace {

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
    : context_(context), config_(source.config), options_(options), stepPrices_(std::make_unique<StepPrices>()) {
    const LoadOptions load{options.dequantize, options.widen, options.seed, options.pack};
    const bool kept = WeightStore::wouldKeep(context, source, load);
    const kernels::TraceScope phase(context.tracer(), base::ScopeKind::Phase,
                                    kept ? "weights kept from the run before" : "load");
    weights_ = std::make_unique<WeightStore>(context, source, load, progress);
    context.joinStreams(); // nothing computes before the weights are there
    RopeValues rope;
    if (!config_.rope.followsLength()) {
        const RopeTable table = makeRopeTable(config_, config_.maxPositions);
        const kernels::Shape shape{static_cast<std::int64_t>(table.inverseFrequency.size())};
        // Of exactly this size, so that with more memory more is left.
        ropeArena_ = context.memory().reserveArena(kernels::bytesOf(kernels::DType::F32, shape.count()), "rope");
        ropeFrequencies_ = kernels::Tensor(*ropeArena_, base::MemoryCategory::Other, "rope.inverse_frequency",
                                           kernels::DType::F32, shape);
        context.upload(table.inverseFrequency.data(), ropeFrequencies_.view().data, ropeFrequencies_.view().bytes());
        rope = {ropeFrequencies_.view(), static_cast<float>(table.attentionScale)};
    }
    decoder_ = std::make_unique<Decoder>(config_, *weights_, rope, embeddingScale(config_, options_.computeDType));
}

Model::~Model() {
    dropLaunched();
}

void Model::dropGraphs() {
    requireNoneLaunched();
    graphs_.clear();
}

void Model::giveBackSteps() {
    dropGraphs();
    context_.memory().step().giveBack();
}

/// Their ops are others now.
void Model::forgetSteps() {
    arenaSizes_.clear();
    stepPrices_->clear();
    layerKinds_.clear();
    graphs_.clear();
}

void Model::setAdapter(const std::string& weight, const kernels::AdapterView& adapter) {
    requireNoneLaunched();
    decoder_->setAdapter(weight, adapter);
    forgetSteps();
}

void Model::setMerged(const std::string& weight, const kernels::WeightView& merged,
                      const kernels::AdapterView& adapter) {
    requireNoneLaunched();
    decoder_->setMerged(weight, merged, adapter);
    forgetSteps();
}

void Model::replaceWeight(const std::string& weight, const kernels::WeightView& replacement) {
    requireNoneLaunched();
    decoder_->replaceWeight(weight, replacement);
    forgetSteps();
}

WeightBytes Model::weightBytes() const {
    WeightBytes out;
    const kernels::TensorView& embedding = decoder_->embedding();
    out.head = decoder_->head().weight.bytes();
    out.embeddingRow = kernels::bytesOf(embedding.dtype, config_.hidden);
    out.shared = weights_->report().residentBytes - out.head - (config_.tiedEmbeddings ? 0 : embedding.bytes());
    for (const DecoderLayer& layer : layers()) {
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
    return asked > 0 ? asked : traits.features.prefillTokens;
}

} // namespace vitrine::engine
