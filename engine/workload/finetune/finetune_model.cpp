// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "engine/quant/conversion_target.h"
#include "engine/quant/format_options.h"
#include "engine/training/quantized/packed_targets.h"
#include "engine/training/quantized/quantized_training.h"
#include "engine/workload/finetune/finetune_run.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

constexpr std::uint64_t kLeastLogits = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostLogits = std::uint64_t{1} << 30;
constexpr std::uint64_t kFreeShare = 16;   ///< logits may take one part in so many of the free memory
constexpr std::int64_t kTiledFrom = 65536; ///< tokens from which tiles pay
constexpr std::int64_t kLeastTile = 1024;  ///< smaller tiles do not fill a GPU

std::int64_t partOf(std::int64_t tokens, std::int64_t parts) {
    return (tokens + parts - 1) / parts;
}

/// Tokens whose logits fit a share of the memory that is free now.
std::int64_t automaticChunk(const ModelConfig& config, kernels::Context& context) {
    const kernels::Memory& memory = context.memory();
    const std::uint64_t free = memory.budget() - std::min(memory.budget(), memory.statistics().current);
    const std::uint64_t bytes = std::clamp(free / kFreeShare, kLeastLogits, kMostLogits);
    return std::max<std::int64_t>(
        static_cast<std::int64_t>(bytes / kernels::bytesOf(kernels::DType::F32, config.vocab)), 16);
}

std::int64_t lossChunk(const Run& run, const ModelConfig& config, kernels::Context& context, std::int64_t tokens) {
    const std::string chunks = run.spec.text("loss_chunks");
    const std::int64_t chunk =
        chunks == "auto" ? automaticChunk(config, context) : partOf(tokens, std::max(std::stoll(chunks), 1LL));
    return std::min(chunk, tokens);
}

/// ceil(tokens / hidden) tiles, as TiledMLP of Arctic Long Sequence Training (Bekman and others 2025).
std::int64_t mlpTile(const Run& run, const ModelConfig& config, std::int64_t tokens) {
    const std::string tiled = run.spec.text("tiled_mlp");
    if (tiled == "off" || (tiled == "auto" && tokens < kTiledFrom)) {
        return 0;
    }
    const std::int64_t tile = partOf(tokens, partOf(tokens, config.hidden));
    return tiled == "auto" ? std::max(tile, kLeastTile) : tile;
}

/// Bytes that the layers keep of a token where the backward pass computes nothing again.
std::uint64_t keptBytesOfToken(const ModelConfig& config, kernels::DType compute) {
    const std::int64_t attention = 4 * config.hidden + 2 * config.queryWidth() + 2 * config.kvWidth();
    std::int64_t elements = 0;
    for (const LayerConfig& layer : config.layers) {
        elements += attention + (layer.moe ? config.expertsPerToken * (config.hidden + 2 * config.moeIntermediate) +
                                                 config.experts * 2
                                           : 2 * config.intermediate);
    }
    return kernels::bytesOf(compute, elements);
}

/// Where the option is unset: nothing is computed again as long as half of the free memory holds all activations.
Checkpointing automaticCheckpointing(const Run& run, const ModelConfig& config, kernels::Context& context,
                                     std::int64_t tokens) {
    const kernels::Memory& memory = context.memory();
    const std::uint64_t free = memory.budget() - std::min(memory.budget(), memory.statistics().current);
    const kernels::DType compute = modelOptions(run, context, run.spec.text("weights")).computeDType;
    const std::uint64_t kept = keptBytesOfToken(config, compute) * static_cast<std::uint64_t>(tokens);
    return kept <= free / 2 ? Checkpointing::None : Checkpointing::Layer;
}

std::string packedName(const Model& model, const ParameterChoice& choice) {
    for (const Parameter& parameter : model.parameters()) {
        if (choice.contains(parameter) && !parameter.trainable) {
            return parameter.name;
        }
    }
    return {};
}

ModelOptions finetuneModelOptions(const Run& run, kernels::Context& context) {
    ModelOptions options = modelOptions(run, context, run.spec.text("weights"));
    options.widen = finetuneMethod(run.spec) == FinetuneMethod::Full && options.computeDType == kernels::DType::F32;
    return options;
}

/// Weights of these files were rounded so that products with typical inputs change least. Rounding them anew to the
/// nearest would spoil that.
void refuseCalibratedBase(const ModelConfig& source) {
    for (const auto& [name, packing] : source.packings) {
        if (const std::string_view method = calibratedMethod(packing); !method.empty()) {
            throw base::BadInput(fmt::format("qat: {} is packed by {}, which is not trained so; give the model that it "
                                             "was made of",
                                             name, method));
        }
    }
}

kernels::IntegerRule ruleOfFiles(const ModelConfig& source) {
    return source.packings.empty() ? kernels::IntegerRule::CompressedTensors : source.packings.begin()->second.rule;
}

/// The first weight that is packed in that format; null where none is.
const Parameter* packedParameter(const Model& model, kernels::WeightFormat format) {
    const auto found = std::ranges::find_if(
        model.parameters(), [format](const Parameter& parameter) { return parameter.view.format == format; });
    return found == model.parameters().end() ? nullptr : &*found;
}

OptimizerOptions optimizerOptions(const Run& run) {
    OptimizerOptions out;
    out.kind = run.spec.text("optimizer") == "adamw8bit" ? OptimizerKind::AdamW8Bit : OptimizerKind::AdamW;
    out.weightDecay = run.spec.real("weight_decay");
    out.clipNorm = run.spec.real("clip_norm");
    return out;
}

} // namespace

FinetuneMethod finetuneMethod(const Experiment& experiment) {
    const std::string method = experiment.text("method");
    return method == "full" ? FinetuneMethod::Full : method == "qlora" ? FinetuneMethod::Qlora : FinetuneMethod::Lora;
}

std::optional<WeightPacking> qatPacking(const Experiment& experiment) {
    const std::string name = experiment.text("qat");
    if (name == "none") {
        return std::nullopt;
    }
    const bool integers = hasGroups(name);
    const auto group = experiment.maybeInteger("group_size");
    const std::string rule = experiment.has("int4_rule") ? experiment.text("int4_rule") : std::string();
    const std::string usual = integers ? std::string(kQatInt4Rule) : std::string();
    return conversionTarget(name, integers ? std::optional(group.value_or(kQatInt4Group)) : group, std::nullopt,
                            rule.empty() ? usual : rule)
        ->packing;
}

MemoryTechniques memoryTechniques(const Run& run, const ModelConfig& config, kernels::Context& context,
                                  std::int64_t tokens) {
    MemoryTechniques out;
    const std::string checkpoint = run.spec.text("checkpoint");
    out.checkpointing = !run.spec.has("checkpoint") ? automaticCheckpointing(run, config, context, tokens)
                        : checkpoint == "none"      ? Checkpointing::None
                        : checkpoint == "offload"   ? Checkpointing::Offload
                                                    : Checkpointing::Layer;
    out.lossChunk = lossChunk(run, config, context, tokens);
    out.mlpTile = mlpTile(run, config, tokens);
    return out;
}

std::string_view checkpointingName(const MemoryTechniques& techniques) {
    return techniques.checkpointing == Checkpointing::None      ? "none"
           : techniques.checkpointing == Checkpointing::Offload ? "offload"
                                                                : "layer";
}

FinetuneModel::FinetuneModel(const Run& run, const ModelSource& source, kernels::Context& context) {
    model_ = std::make_unique<Model>(context, source, finetuneModelOptions(run, context), run.sinks.progress);
    addLoadMetrics(run.metrics, model_->loadReport());
    if (finetuneMethod(run.spec) == FinetuneMethod::Full) {
        chooseWeights(run, source);
    } else {
        addAdapter(run, source);
    }
}

void FinetuneModel::chooseWeights(const Run& run, const ModelSource& source) {
    const ParameterChoice choice(run.spec.has("train") ? run.spec.text("train") : "all", "train");
    if (const std::string packed = packedName(*model_, choice); !packed.empty()) {
        throw base::BadInput(fmt::format("method: full: {} is packed, so it cannot be trained; load with weights "
                                         "dequantized, or train an adapter",
                                         packed));
    }
    std::vector<TrainedTensor> tensors;
    for (const Parameter& parameter : model_->parameters()) {
        if (choice.contains(parameter)) {
            tensors.push_back({parameter.name, parameter.view.data});
        }
    }
    model_->markWeightsChanged();
    packWeights(run, source, std::move(tensors));
}

void FinetuneModel::packWeights(const Run& run, const ModelSource& source, std::vector<TrainedTensor> tensors) {
    std::vector<PackedTarget> targets;
    if (const auto packing = qatPacking(run.spec)) {
        quantizes_ = true;
        refuseCalibratedBase(source.config);
        const QuantizedTraining quantized(*packing, run.spec.text("qat_weights"), model_->parameters());
        targets = masterTargets(quantized, *model_, tensors);
    } else if (run.spec.flag("merge_aware")) {
        targets = packedInSource(source.config, tensors);
        if (targets.empty()) {
            throw base::BadInput("merge_aware: none of the trained weights is packed in the model's files; train "
                                 "experts of a model that has them packed, or leave merge_aware out");
        }
    }
    state_ = std::make_unique<TrainedState>(model_->context(), std::move(tensors), optimizerOptions(run));
    if (!targets.empty()) {
        packed_ = std::make_unique<PackedCopies>(*model_, targets, state_.get(), nullptr);
    }
}

UnquantizedWeights::UnquantizedWeights(FinetuneModel& model) : model_(model) {
    if (model.adapter() == nullptr) {
        model.state().valuesFromMasters();
    } else if (model.packed() != nullptr) {
        model.packed()->attach(false);
    }
}

UnquantizedWeights::~UnquantizedWeights() {
    if (model_.packed() == nullptr) {
        return;
    }
    try {
        if (model_.adapter() != nullptr) {
            model_.packed()->attach(true);
        } else {
            model_.packed()->refresh();
        }
    } catch (...) {
        // The run was stopped or its device is lost: nothing computes with the values any more.
    }
}

void FinetuneModel::addAdapter(const Run& run, const ModelSource& source) {
    const bool packed = std::any_of(model_->parameters().begin(), model_->parameters().end(),
                                    [](const Parameter& parameter) { return parameter.view.quantized(); });
    if (finetuneMethod(run.spec) == FinetuneMethod::Qlora && !packed && !qatPacking(run.spec)) {
        throw base::BadInput("method: qlora: the model has no packed weights; use lora, pack them with qat, or give a "
                             "model that has some");
    }
    if (const std::string folder = run.spec.text("adapter"); !folder.empty()) {
        continueAdapter(folder);
    } else {
        adapterConfig_.rank = run.spec.integer("rank");
        adapterConfig_.alpha = run.spec.maybeReal("alpha").value_or(2 * static_cast<double>(adapterConfig_.rank));
        adapterConfig_.rsLora = run.spec.flag("rslora");
        adapterConfig_.dropout = run.spec.real("dropout");
        adapterConfig_.baseModel = source.name;
        const ParameterChoice choice(run.spec.has("train") ? run.spec.text("train") : "attention", "train");
        adapter_ = std::make_unique<Adapter>(*model_, adapterTargets(model_->parameters(), choice, adapterConfig_));
        adapter_->initialise(run.seed());
        std::vector<std::string> adapted;
        for (const AdapterPart& part : adapter_->parts()) {
            adapted.push_back(part.parameter);
        }
        setTargets(adapterConfig_, model_->parameters(), adapted);
    }
    refuseDropoutOfExperts();
    refuseMergeOfTiedEmbedding(run);
    packBesideAdapter(run, source);
    state_ = std::make_unique<TrainedState>(model_->context(), adapter_->tensors(), optimizerOptions(run));
}

/// With lora the adapter is merged into the weights that are quantized; with qlora it stays beside them.
void FinetuneModel::packBesideAdapter(const Run& run, const ModelSource& source) {
    std::vector<PackedTarget> targets;
    if (const auto asked = qatPacking(run.spec)) {
        quantizes_ = true;
        refuseCalibratedBase(source.config);
        WeightPacking packing = *asked;
        const Parameter* packed = packedParameter(*model_, packing.format);
        if (packed != nullptr && !run.spec.has("int4_rule")) {
            packing.rule = ruleOfCodes(*model_, ruleOfFiles(source.config));
        }
        const QuantizedTraining quantized(packing, run.spec.text("qat_weights"), model_->parameters());
        targets = adapterTargetsOf(quantized, *model_, *adapter_, finetuneMethod(run.spec) == FinetuneMethod::Lora,
                                   !run.spec.has("group_size"));
    } else if (run.spec.flag("merge_aware")) {
        refuseCalibratedBase(source.config);
        targets = packedBesideAdapter(*model_, *adapter_, ruleOfCodes(*model_, ruleOfFiles(source.config)));
        if (targets.empty()) {
            throw base::BadInput("merge_aware: the adapter is beside no weight that can be packed again; name experts "
                                 "in train, and load them with weights quantized");
        }
    }
    if (!targets.empty()) {
        packed_ = std::make_unique<PackedCopies>(*model_, targets, nullptr, adapter_.get());
    }
}

void FinetuneModel::continueAdapter(const std::string& folder) {
    adapterBefore_ = std::make_unique<AdapterFile>(AdapterFile::open(folder));
    adapterConfig_ = adapterBefore_->config();
    if (adapterConfig_.dora) {
        throw base::Unsupported(adapterBefore_->configPath() +
                                ": use_dora: adapters of DoRA can be used, but not trained; give one without it");
    }
    const std::vector<AdapterTarget> targets = adapterBefore_->targets(model_->parameters());
    if (targets.empty()) {
        throw base::BadInput(adapterBefore_->configPath() +
                             ": target_modules: names no linear, so nothing can be trained; give an adapter with LoRA");
    }
    adapter_ = std::make_unique<Adapter>(*model_, targets);
    adapter_->read(*adapterBefore_);
    if (!adapterBefore_->wholes().empty() || !adapterConfig_.trainedRows.empty()) {
        base::logWarning(fmt::format("{}: what the adapter holds whole (modules_to_save, biases, embeddings, trained "
                                     "tokens) is kept as it is; only A and B are trained",
                                     adapterBefore_->tensors().path()));
    }
}

void FinetuneModel::refuseMergeOfTiedEmbedding(const Run& run) const {
    const auto embedding = [](const AdapterPart& part) { return part.embedding; };
    if (run.spec.text("merge") != "none" && model_->config().tiedEmbeddings &&
        std::any_of(adapter_->parts().begin(), adapter_->parts().end(), embedding)) {
        throw base::BadInput(
            "merge: the model's embedding is its head too, and the adapter changes only the embedding; "
            "train without embedding, or leave merge out");
    }
}

void FinetuneModel::refuseDropoutOfExperts() const {
    for (const AdapterPart& part : adapter_->parts()) {
        if (adapterConfig_.dropout > 0 && (part.embedding || part.view.a.shape.rank() == 3)) {
            throw base::BadInput(
                fmt::format("dropout: {} is the embedding or a stack of experts, whose adapters have no "
                            "dropout, as in PEFT; train without it, or with dropout 0",
                            part.parameter));
        }
    }
}

std::int64_t FinetuneModel::parameters() const {
    std::int64_t sum = 0;
    for (const Parameter& parameter : model_->parameters()) {
        sum += parameter.view.shape.count();
    }
    return sum + (adapter_ != nullptr ? state_->elements() : 0);
}

} // namespace vitrine::engine
