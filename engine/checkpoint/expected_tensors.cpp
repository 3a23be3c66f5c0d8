// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/tied_head.h"
#include "engine/quant/storage_scheme.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {
namespace {

using kernels::DType;

class SpecList {
public:
    explicit SpecList(const ModelConfig& config) : config_(config) {}

    std::vector<TensorSpec> take() { return std::move(specs_); }

    void add(std::string name, std::vector<std::int64_t> shape, ModelPart part, DType dtype = DType::BF16) {
        specs_.push_back({std::move(name), dtype, std::move(shape), part, layer_});
    }
    const std::vector<PackableWeight>& packable() const { return packable_; }

    /// A weight that may be packed; `dense` is the shape that files have when it is not.
    void weight(const std::string& name, const std::vector<std::int64_t>& shape, ModelPart part,
                std::vector<std::int64_t> dense) {
        packable_.push_back({name, shape, part});
        const WeightPacking* packing = config_.packing(name);
        if (packing == nullptr) {
            add(name, std::move(dense), part);
            return;
        }
        for (StoredTensor& tensor : storedTensors(*packing, name, shape)) {
            add(tensor.name, tensor.shape, part, tensor.dtype);
            TensorSpec& spec = specs_.back();
            spec.weight = name;
            spec.weightShape = kernels::Shape(shape);
            spec.packing = *packing;
            spec.stored = std::move(tensor);
        }
    }
    void linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias, ModelPart part) {
        weight(name + ".weight", {out, in}, part, {out, in});
        if (bias) {
            add(name + ".bias", {out}, part);
        }
    }

    void decoderLayer(std::int32_t index) {
        layer_ = index;
        const std::string prefix = fmt::format("model.layers.{}.", index);
        add(prefix + "input_layernorm.weight", {config_.hidden}, ModelPart::Norm);
        if (config_.latent.used()) {
            latentAttention(prefix + "self_attn.");
        } else {
            attention(prefix + "self_attn.");
        }
        add(prefix + "post_attention_layernorm.weight", {config_.hidden}, ModelPart::Norm);
        if (config_.postNorms) {
            add(prefix + "pre_feedforward_layernorm.weight", {config_.hidden}, ModelPart::Norm);
        }
        const std::string mlp = prefix + "mlp.";
        if (!config_.layers[static_cast<std::size_t>(index)].moe) {
            dense(mlp, config_.intermediate);
        } else if (config_.family == Family::GptOss) {
            gptOssExperts(mlp);
        } else {
            qwenExperts(mlp);
            if (config_.sharedIntermediate > 0) {
                dense(mlp + "shared_experts.", config_.sharedIntermediate);
            }
        }
        if (config_.postNorms) {
            add(prefix + "post_feedforward_layernorm.weight", {config_.hidden}, ModelPart::Norm);
        }
        layer_ = -1;
    }

private:
    void attention(const std::string& prefix) {
        const ModelPart part = ModelPart::Attention;
        linear(prefix + "q_proj", config_.queryWidth(), config_.hidden, config_.qkvBias, part);
        linear(prefix + "k_proj", config_.kvWidth(), config_.hidden, config_.qkvBias, part);
        linear(prefix + "v_proj", config_.kvWidth(), config_.hidden, config_.qkvBias, part);
        linear(prefix + "o_proj", config_.hidden, config_.queryWidth(), config_.outBias, part);
        if (config_.qkNorm) {
            add(prefix + "q_norm.weight", {config_.headDim}, ModelPart::Norm);
            add(prefix + "k_norm.weight", {config_.headDim}, ModelPart::Norm);
        }
        if (config_.sinks) {
            add(prefix + "sinks", {config_.heads}, part);
        }
    }

    void latentAttention(const std::string& prefix) {
        const ModelPart part = ModelPart::Attention;
        const LatentConfig& latent = config_.latent;
        const std::int64_t queries = config_.heads * latent.queryDim();
        if (latent.queryRank > 0) {
            linear(prefix + "q_a_proj", latent.queryRank, config_.hidden, config_.qkvBias, part);
            add(prefix + "q_a_layernorm.weight", {latent.queryRank}, ModelPart::Norm);
            linear(prefix + "q_b_proj", queries, latent.queryRank, false, part);
        } else {
            linear(prefix + "q_proj", queries, config_.hidden, false, part);
        }
        linear(prefix + "kv_a_proj_with_mqa", config_.headDim, config_.hidden, config_.qkvBias, part);
        add(prefix + "kv_a_layernorm.weight", {latent.keyRank}, ModelPart::Norm);
        linear(prefix + "kv_b_proj", config_.heads * latent.upDim(), latent.keyRank, false, part);
        linear(prefix + "o_proj", config_.hidden, config_.heads * latent.valueDim, config_.outBias, part);
    }

    void dense(const std::string& prefix, std::int64_t inner) {
        linear(prefix + "gate_proj", inner, config_.hidden, config_.mlpBias, ModelPart::DenseMlp);
        linear(prefix + "up_proj", inner, config_.hidden, config_.mlpBias, ModelPart::DenseMlp);
        linear(prefix + "down_proj", config_.hidden, inner, config_.mlpBias, ModelPart::DenseMlp);
    }

    void gptOssExperts(const std::string& prefix) {
        const std::int64_t experts = config_.experts;
        const std::int64_t hidden = config_.hidden;
        const std::int64_t inner = config_.moeIntermediate;
        linear(prefix + "router", experts, hidden, config_.routerBias, ModelPart::Router);
        const auto product = [&](const std::string& name, std::int64_t out, std::int64_t in) {
            weight(name, {experts, out, in}, ModelPart::Experts, {experts, in, out}); // dense: used as x @ W
            add(name + "_bias", {experts, out}, ModelPart::Experts);
        };
        product(prefix + "experts.gate_up_proj", 2 * inner, hidden);
        product(prefix + "experts.down_proj", hidden, inner);
    }

    void qwenExperts(const std::string& prefix) {
        const std::int64_t hidden = config_.hidden;
        const std::int64_t inner = config_.moeIntermediate;
        linear(prefix + "gate", config_.experts, hidden, false, ModelPart::Router);
        if (config_.routerOrder == kernels::RouterOrder::SigmoidThenTopK) {
            add(prefix + "gate.e_score_correction_bias", {config_.experts}, ModelPart::Router);
        }
        if (config_.fusedExperts) {
            add(prefix + "experts.gate_up_proj", {config_.experts, 2 * inner, hidden}, ModelPart::Experts);
            add(prefix + "experts.down_proj", {config_.experts, hidden, inner}, ModelPart::Experts);
            return;
        }
        for (std::int64_t j = 0; j < config_.experts; ++j) {
            const std::string expert = fmt::format("{}experts.{}.", prefix, j);
            linear(expert + "gate_proj", inner, hidden, false, ModelPart::Experts);
            linear(expert + "up_proj", inner, hidden, false, ModelPart::Experts);
            linear(expert + "down_proj", hidden, inner, false, ModelPart::Experts);
        }
    }

    const ModelConfig& config_;
    std::vector<TensorSpec> specs_;
    std::vector<PackableWeight> packable_;
    std::int32_t layer_ = -1;
};

std::string shapeText(const std::vector<std::int64_t>& shape) {
    return fmt::format("({})", fmt::join(shape, ", "));
}

bool dtypeFits(DType wanted, DType found) {
    if (wanted == DType::BF16) {
        return kernels::isFloat(found);
    }
    return wanted == found;
}

bool shapeFits(const TensorSpec& spec, const TensorEntry& entry) {
    // Some writers store the scales of a linear, one after the other, as one row.
    const bool row = entry.shape.size() == 2 && entry.shape[0] == 1 && spec.shape.size() == 1 && spec.packed();
    // A scale for a whole tensor is (1, 1), (1) or a number without dimensions.
    const bool one = spec.packed() && kernels::Shape(spec.shape).count() == 1 && entry.shape.size() <= 2 &&
                     kernels::Shape(entry.shape).count() == 1;
    return row ? entry.shape[1] == spec.shape[0] : one || entry.shape == spec.shape;
}

/// Packed tensors of a weight that config.json describes as dense.
std::string packedHint(const TensorSpec& spec, const Checkpoint& checkpoint) {
    const std::string module(moduleOf(spec.name));
    for (const char* ending : {".qweight", ".weight_packed"}) {
        if (!spec.packed() && findModelTensor(checkpoint, module + ending) != nullptr) {
            return fmt::format("; {}{} is there, but no quantization_config describes it", module, ending);
        }
    }
    return {};
}

void checkTensor(const TensorSpec& spec, const Checkpoint& checkpoint, bool tied) {
    const Checkpoint::Location* location = findModelTensor(checkpoint, spec.name);
    const bool otherName = location != nullptr && !tied && spec.part == ModelPart::Embedding &&
                           location == checkpoint.find("lm_head.weight");
    if (location == nullptr || otherName) {
        throw base::BadInput(fmt::format("{}: {}: is missing; config.json needs it with shape {}{}",
                                         checkpoint.folder(), spec.name, shapeText(spec.shape),
                                         packedHint(spec, checkpoint)));
    }
    const TensorEntry& entry = *location->entry;
    if (!shapeFits(spec, entry)) {
        throw base::BadInput(fmt::format("{}: {}: has shape {}, but config.json needs {}", location->file->path(),
                                         spec.name, shapeText(entry.shape), shapeText(spec.shape)));
    }
    if (!dtypeFits(spec.dtype, entry.dtype)) {
        throw base::BadInput(
            fmt::format("{}: {}: has dtype {}, but must be {}", location->file->path(), spec.name,
                        kernels::safetensorsName(entry.dtype),
                        spec.dtype == DType::BF16 ? "BF16, F16 or F32" : kernels::safetensorsName(spec.dtype)));
    }
}

/// Which of the two forms of experts the files have: that of the first MoE layer counts.
void detectExpertForm(ModelConfig& config, const Checkpoint& checkpoint) {
    const auto layer =
        std::find_if(config.layers.begin(), config.layers.end(), [](const LayerConfig& l) { return l.moe; });
    if (layer == config.layers.end()) {
        return;
    }
    const std::string stacked = fmt::format("model.layers.{}.mlp.experts.gate_up_proj", layer - config.layers.begin());
    config.fusedExperts = config.family != Family::GptOss && findModelTensor(checkpoint, stacked) != nullptr;
}

std::string_view titleOf(const WeightPacking& packing) {
    return kernels::packedFormat(packing.format).title;
}

/// Kernels multiply by any packed linear, but experts that lie by themselves are put into one stack.
void requireSupported(const ModelConfig& config, const PackableWeight& weight, const WeightPacking& packing,
                      const std::string& folder) {
    try {
        storedTensors(packing, weight.name, weight.shape);
    } catch (const base::Unsupported& error) {
        throw base::Unsupported(fmt::format("{}: {}", folder, error.message()));
    }
    const bool single = weight.part == ModelPart::Experts && weight.shape.size() == 2;
    if (single && !canStack(packing)) {
        throw base::Unsupported(fmt::format("{}: {}: is packed as {}{}, which is not supported for experts", folder,
                                            weight.name, titleOf(packing),
                                            packing.ordered ? " with an order of its inputs" : ""));
    }
    const std::int64_t out = weight.shape[weight.shape.size() - 2];
    if (single && out % rowGroupOf(packing, out) != 0) {
        throw base::Unsupported(fmt::format("{}: {}: has {} outputs, but blocks of {} of them share a scale", folder,
                                            weight.name, out, packing.rowGroup));
    }
    if (weight.part == ModelPart::Router && config.family == Family::GptOss) {
        throw base::Unsupported(fmt::format("{}: {}: a packed router is not supported", folder, weight.name));
    }
}

/// Embeddings and heads are looked up and multiplied as dense matrices.
void refusePackedHead(const ModelConfig& config, const TensorLookup& files, const std::string& folder) {
    for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
        const std::vector<std::int64_t> shape{config.vocab, config.hidden};
        if (config.quantization && packingInFile(name, shape, &*config.quantization, files)) {
            throw base::Unsupported(
                fmt::format("{}: {}: is packed as {}, which is supported for linears of layers only", folder, name,
                            titleOf(config.quantization->packing)));
        }
    }
}

SideTensor readSideTensor(const Checkpoint& checkpoint, const std::string& name) {
    constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20; // groups of 262,144 inputs
    const Checkpoint::Location* location = findModelTensor(checkpoint, name);
    if (location == nullptr) {
        throw base::BadInput(
            fmt::format("{}: {}: is missing; the packed weight cannot be read without it", checkpoint.folder(), name));
    }
    SideTensor out{fmt::format("{}: {}", location->file->path(), name), location->entry->dtype, {}};
    if (location->entry->bytes > kMostBytes) {
        throw base::BadInput(
            fmt::format("{}: has {} bytes, but at most {} are expected", out.name, location->entry->bytes, kMostBytes));
    }
    out.bytes.resize(location->entry->bytes);
    location->file->read(*location->entry, 0, out.bytes.data(), out.bytes.size());
    return out;
}

/// The first bytes of a tensor that is there.
SideTensor readBegin(const Checkpoint& checkpoint, const std::string& name, std::uint64_t bytes) {
    const Checkpoint::Location& location = *findModelTensor(checkpoint, name);
    SideTensor out{fmt::format("{}: {}", location.file->path(), name), location.entry->dtype, {}};
    out.bytes.resize(std::min(bytes, location.entry->bytes));
    location.file->read(*location.entry, 0, out.bytes.data(), out.bytes.size());
    return out;
}

/// Which weights are packed: the files say it for each, whatever config.json names as left out.
void detectPackings(ModelConfig& config, const Checkpoint& checkpoint) {
    const auto find = [&](const std::string& name) { return findModelTensor(checkpoint, name); };
    std::set<std::string> remarks;
    const TensorLookup files{
        [&](const std::string& name) { return find(name) != nullptr; },
        [&](const std::string& name) { return find(name)->entry->shape; },
        [&](const std::string& name) { return readSideTensor(checkpoint, name); },
        [&](const std::string& name) { return find(name)->entry->dtype; },
        [&](const std::string& name, std::uint64_t bytes) { return readBegin(checkpoint, name, bytes); },
        [&](const std::string& what) { remarks.insert(what); }};
    config.packings.clear();
    const Quantization* declared = config.quantization ? &*config.quantization : nullptr;
    bool complete = true;
    for (const PackableWeight& weight : packableWeights(config)) {
        if (declared == nullptr && weight.shape.size() == 2) {
            continue; // linears are packed by a config only
        }
        auto packing = packingInFile(weight.name, weight.shape, declared, files);
        if (complete && !packing && declared != nullptr && !files.has(weight.name)) {
            // The model cannot be loaded. One weight decides what the message says: asking the patterns for every
            // weight could take hours.
            complete = false;
            const bool known = declared->packing.format != kernels::WeightFormat::Dense; // GGUF files do not say it
            if (known && declared->packs(weight.name)) {
                packing = declared->packing; // so that the message names the tensors that it should have
            }
        }
        if (packing) {
            requireSupported(config, weight, *packing, checkpoint.folder());
            config.packings[weight.name] = *packing;
        }
    }
    refusePackedHead(config, files, checkpoint.folder());
    for (const std::string& remark : remarks) {
        base::logWarning(fmt::format("{}: {}", checkpoint.folder(), remark));
    }
}

/// Tensors inside the layers are no by-products: the file may describe another model than config.json.
bool isSuspicious(std::string_view name) {
    return (name.starts_with("model.layers.") || name.starts_with("layers.")) &&
           name.find("rotary_emb") == std::string_view::npos;
}

void logUnusedTensors(const ModelConfig& config, const std::vector<TensorSpec>& specs, const Checkpoint& checkpoint) {
    std::set<std::string_view> used;
    for (const auto& [weight, packing] : config.packings) {
        for (const std::string& name : sideTensorNames(packing, weight)) {
            if (const Checkpoint::Location* location = findModelTensor(checkpoint, name); location != nullptr) {
                used.insert(location->entry->name);
            }
        }
    }
    for (const TensorSpec& spec : specs) {
        const Checkpoint::Location* location = findModelTensor(checkpoint, spec.name);
        used.insert(location->entry->name);
    }
    std::size_t unused = 0;
    std::string_view shown;
    for (const auto& [name, location] : checkpoint.tensors()) {
        if (used.find(name) == used.end()) {
            ++unused;
            shown = shown.empty() || (isSuspicious(name) && !isSuspicious(shown)) ? std::string_view(name) : shown;
        }
    }
    if (unused > 0) {
        const base::LogLevel level = isSuspicious(shown) ? base::LogLevel::Warning : base::LogLevel::Info;
        base::log(level, fmt::format("{}: {} tensors are not used by the model that config.json describes, such as {}",
                                     checkpoint.folder(), unused, quotedText(shown)));
    }
}

} // namespace

namespace {

SpecList listOf(const ModelConfig& config) {
    SpecList list(config);
    list.add("model.embed_tokens.weight", {config.vocab, config.hidden}, ModelPart::Embedding);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
        list.decoderLayer(static_cast<std::int32_t>(i));
    }
    list.add("model.norm.weight", {config.hidden}, ModelPart::Norm);
    if (!config.tiedEmbeddings) {
        list.add("lm_head.weight", {config.vocab, config.hidden}, ModelPart::Head);
    }
    return list;
}

} // namespace

std::vector<TensorSpec> expectedTensors(const ModelConfig& config) {
    return listOf(config).take();
}

std::vector<PackableWeight> packableWeights(const ModelConfig& config) {
    return listOf(config).packable();
}

void packBySelection(ModelConfig& config) {
    config.packings.clear();
    if (!config.quantization) {
        return;
    }
    const Quantization& quantization = *config.quantization;
    for (const PackableWeight& weight : packableWeights(config)) {
        const bool chosen = quantization.allLinears ? weight.part != ModelPart::Router : weight.shape.size() == 3;
        if (chosen && quantization.packs(weight.name)) {
            WeightPacking& packing = config.packings[weight.name] = quantization.packing;
            packing.ordered = false; // random weights need no order
            packing.storageType = DType::U8;
            if (packing.rowGroup > 1) {
                requireSupported(config, weight, packing, "quantization_config");
            }
        }
    }
}

std::uint64_t bytesOf(const TensorSpec& spec) {
    std::int64_t count = 1;
    for (const std::int64_t dim : spec.shape) {
        count *= dim;
    }
    return kernels::bytesOf(spec.dtype, count);
}

void checkTensors(ModelConfig& config, const Checkpoint& checkpoint) {
    untieOwnHead(config, checkpoint);
    detectExpertForm(config, checkpoint);
    detectPackings(config, checkpoint);
    const std::vector<TensorSpec> specs = expectedTensors(config);
    for (const TensorSpec& spec : specs) {
        checkTensor(spec, checkpoint, config.tiedEmbeddings);
    }
    logUnusedTensors(config, specs, checkpoint);
}

} // namespace vitrine::engine
