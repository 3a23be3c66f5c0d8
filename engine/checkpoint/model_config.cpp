// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/checkpoint/config_checks.h"
#include "engine/checkpoint/config_keys.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/expert_config.h"
#include "engine/checkpoint/latent_config.h"
#include "engine/checkpoint/quantization_files.h"
#include "engine/checkpoint/rope_config.h"
#include "engine/checkpoint/token_ids.h"
#include "engine/checkpoint/unused_keys.h"
#include "engine/quant/storage_scheme.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/ops/attention/attention.h"
#include "kernels/ops/attention/kv_view.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;

/// What transformers' configuration class takes for a missing key.
struct ClassDefaults {
    Family family;
    std::string_view name;
    std::int64_t vocab, hidden, intermediate, layers, heads;
    std::int64_t kvHeads; ///< 0: as many as heads
    std::int64_t headDim; ///< 0: hidden / heads
    std::int64_t maxPositions;
    double normEps;
    std::int64_t window; ///< 0: none
    bool tied;
    std::int32_t bos, eos, pad; ///< -1: none
};

constexpr std::array<ClassDefaults, 9> kClassDefaults{{
    {Family::GptOss, "gpt_oss", 201088, 2880, 2880, 36, 64, 8, 64, 131072, 1e-5, 128, false, -1, -1, -1},
    {Family::Llama, "llama", 32000, 4096, 11008, 32, 32, 0, 0, 2048, 1e-6, 0, false, 1, 2, -1},
    {Family::Mistral, "mistral", 32000, 4096, 14336, 32, 32, 8, 0, 131072, 1e-6, 4096, false, 1, 2, -1},
    {Family::Qwen2, "qwen2", 151936, 4096, 22016, 32, 32, 32, 0, 32768, 1e-6, 4096, false, -1, -1, -1},
    {Family::Qwen3, "qwen3", 151936, 4096, 22016, 32, 32, 32, 128, 32768, 1e-6, 4096, false, -1, -1, -1},
    {Family::Qwen3Moe, "qwen3_moe", 151936, 2048, 6144, 24, 32, 4, 0, 32768, 1e-6, 4096, false, -1, -1, -1},
    {Family::Gemma2, "gemma2", 256000, 2304, 9216, 26, 8, 4, 256, 8192, 1e-6, 4096, true, 2, 1, 0},
    {Family::DeepseekV3, "deepseek_v3", 129280, 7168, 18432, 61, 128, 0, 64, 4096, 1e-6, 0, false, 0, 1, -1},
    {Family::DeepseekV3, "kimi_k2", 129280, 7168, 18432, 61, 128, 0, 64, 4096, 1e-6, 0, false, 0, 1, -1},
}};

const ClassDefaults& findFamily(ConfigReader& reader) {
    const std::string type = reader.text("model_type", "");
    std::string known;
    for (const ClassDefaults& defaults : kClassDefaults) {
        if (defaults.name == type) {
            return defaults;
        }
        known += (known.empty() ? "" : ", ") + std::string(defaults.name);
    }
    if (type.empty()) {
        reader.bad("model_type", "is missing; it must be one of " + known);
    }
    reader.unsupported("model_type", fmt::format("{} is not supported; known are {}", quotedText(type), known));
}

void parseSizes(ConfigReader& reader, const ClassDefaults& defaults, ModelConfig& config) {
    config.vocab = reader.integer("vocab_size", defaults.vocab, 1, kMaxVocab);
    config.hidden = reader.integer("hidden_size", defaults.hidden, 1, kMaxDim);
    config.intermediate = reader.integer("intermediate_size", defaults.intermediate, 1, kMaxDim);
    config.layers.resize(static_cast<std::size_t>(reader.integer("num_hidden_layers", defaults.layers, 1, kMaxLayers)));
    config.heads = reader.integer("num_attention_heads", defaults.heads, 1, kMaxDim);
    const bool nullKvHeads = reader.present("num_key_value_heads") && reader.find("num_key_value_heads") == nullptr;
    const std::int64_t defaultKvHeads = defaults.kvHeads == 0 || nullKvHeads ? config.heads : defaults.kvHeads;
    config.kvHeads = reader.optionalInteger("num_key_value_heads", 1, kMaxDim).value_or(defaultKvHeads);
    if (config.heads % config.kvHeads != 0) {
        reader.bad("num_key_value_heads",
                   fmt::format("{} does not divide the {} heads of num_attention_heads", config.kvHeads, config.heads));
    }
    const bool nullHeadDim = reader.present("head_dim") && reader.find("head_dim") == nullptr;
    config.headDim = reader.optionalInteger("head_dim", 1, kMaxDim).value_or(nullHeadDim ? 0 : defaults.headDim);
    if (config.headDim == 0) {
        if (config.hidden % config.heads != 0) {
            reader.bad("hidden_size",
                       fmt::format("{} is no multiple of num_attention_heads ({}), and head_dim is missing",
                                   config.hidden, config.heads));
        }
        config.headDim = config.hidden / config.heads;
    }
    if (config.headDim > kernels::kMaxHeadDim) {
        reader.bad("head_dim", fmt::format("{} is not supported; at most {} is", config.headDim, kernels::kMaxHeadDim));
    }
    if (config.headDim % 2 != 0) {
        reader.bad("head_dim", fmt::format("{} is odd, but rotary embeddings turn pairs", config.headDim));
    }
    if (config.queryWidth() > kMaxDim) {
        reader.bad("head_dim",
                   fmt::format("{} heads of {} elements are more than {}", config.heads, config.headDim, kMaxDim));
    }
    config.maxPositions = reader.integer("max_position_embeddings", defaults.maxPositions, 1, kMaxPositions);
    config.normEps = reader.number("rms_norm_eps", defaults.normEps, 0, 1);
    config.tiedEmbeddings = reader.boolean("tie_word_embeddings", defaults.tied);
    config.attentionScale = 1 / std::sqrt(static_cast<double>(config.headDim));
}

void parseActivation(ConfigReader& reader, const char* key, const char* defaultName, ModelConfig& config) {
    const std::string name = reader.text(key, defaultName);
    if (name == "silu" || name == "swish") {
        config.activation = kernels::Activation::Silu;
    } else if (name == "gelu_pytorch_tanh" || name == "gelu_new") {
        config.activation = kernels::Activation::GeluTanh;
    } else {
        reader.unsupported(key, fmt::format("{} is not supported; silu and gelu_pytorch_tanh are", quotedText(name)));
    }
}

/// Whether the file says otherwise than config.json, or cannot be read.
bool differs(const Quantization& own, const QuantizationFile& beside) {
    try {
        return parseQuantization(*beside.object, beside.file, "").packing != own.packing;
    } catch (const base::Error&) {
        return true;
    }
}

/// What quantization_config says, or the file beside config.json where it has none.
std::optional<Quantization> declaredQuantization(ConfigReader& reader, const QuantizationFile* beside) {
    const json* older = reader.find("compression_config"); // of compressed-tensors, before transformers had a name
    for (const char* key : {"quantization_config", "compression_config"}) {
        const json* value = key == std::string_view("compression_config") ? older : reader.find(key);
        if (value == nullptr) {
            continue;
        }
        Quantization own = parseQuantization(*value, reader.file(), std::string(key) + ".");
        if (beside != nullptr && differs(own, *beside)) {
            base::logWarning(fmt::format("{}: differs from {} of config.json, which is used", beside->file, key));
        }
        return own;
    }
    return beside == nullptr ? std::nullopt : std::optional(parseQuantization(*beside->object, beside->file, ""));
}

/// Stacks of packed experts of gpt_oss, and packed linears of the other families.
void parseQuantizationOf(ConfigReader& reader, const QuantizationFile* beside, ModelConfig& config) {
    std::optional<Quantization> quantization = declaredQuantization(reader, beside);
    if (quantization && quantization->allLinears == (config.family == Family::GptOss)) {
        const std::string method = quantizationConfig(*quantization).value("quant_method", std::string());
        reader.unsupported("quantization_config.quant_method",
                           fmt::format("{} is not supported for {}", quotedText(method), familyName(config.family)));
    }
    config.quantization = std::move(quantization);
}

/// Stacks of experts are whole groups: config.json alone shows it.
void checkWholeGroups(ConfigReader& reader, const ModelConfig& config) {
    if (!config.quantization || config.family != Family::GptOss) {
        return;
    }
    const kernels::PackedFormat& packed = kernels::packedFormat(config.quantization->packing.format);
    for (const auto& [field, size] :
         {std::pair{"hidden_size", config.hidden}, std::pair{"intermediate_size", config.moeIntermediate}}) {
        if (size % packed.group != 0) {
            reader.bad(field, fmt::format("must be a multiple of {} for {} weights", packed.group, packed.title));
        }
    }
}

void parseGptOss(ConfigReader& reader, ModelConfig& config) {
    config.normForm = kernels::RmsNormOrder::ScaleThenCast;
    config.qkvBias = config.outBias = reader.boolean("attention_bias", true);
    config.routerBias = config.expertBias = config.sinks = true;
    const std::string activation = reader.text("hidden_act", "silu");
    if (activation != "silu" && activation != "swish") {
        reader.unsupported("hidden_act",
                           fmt::format("{} is not supported for gpt_oss; silu is", quotedText(activation)));
    }
    config.activation = kernels::Activation::ClampedSwiglu;
    config.gateLayout = kernels::GateLayout::Interleaved;
    config.swigluAlpha = reader.number("swiglu_alpha", 1.702, 0, 1e6);
    config.swigluLimit = reader.number("swiglu_limit", 7, 1e-6, 1e30);
    config.routerOrder = kernels::RouterOrder::TopKThenSoftmax;
    config.moeIntermediate = config.intermediate;
    parseExperts(reader, {}, 128, 4, config);
    if (config.experts == 0) {
        reader.bad("num_local_experts", "must be at least 1 for gpt_oss");
    }
}

void parseQwen3Moe(ConfigReader& reader, ModelConfig& config) {
    config.routerOrder = kernels::RouterOrder::SoftmaxThenTopK;
    config.routerNormalize = reader.boolean("norm_topk_prob", false);
    config.moeIntermediate = reader.integer("moe_intermediate_size", 768, 1, kMaxDim);
    parseExperts(reader, {}, 128, 8, config);
    const std::int64_t step = reader.integer("decoder_sparse_step", 1, 1, kMaxLayers);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
        config.layers[i].moe = config.experts > 0 && static_cast<std::int64_t>(i + 1) % step == 0;
    }
    if (const json* dense = reader.find("mlp_only_layers")) {
        if (!dense->is_array()) {
            reader.bad("mlp_only_layers", "must be a list of layer numbers");
        }
        for (const json& layer : *dense) {
            if (!layer.is_number_integer()) {
                reader.bad("mlp_only_layers", "must be a list of layer numbers");
            }
            // transformers accepts numbers that no layer has, too.
            if (const auto index = layer.get<std::uint64_t>(); index < config.layers.size()) {
                config.layers[index].moe = false;
            }
        }
    }
}

void parseGemma2(ConfigReader& reader, ModelConfig& config) {
    config.normForm = kernels::RmsNormOrder::OnePlusWeight;
    config.postNorms = config.scaleEmbedding = true;
    config.qkvBias = config.outBias = reader.boolean("attention_bias", false);
    parseActivation(reader, "hidden_activation", "gelu_pytorch_tanh", config);
    config.attentionScale = 1 / std::sqrt(reader.number("query_pre_attn_scalar", 256, 1e-6, 1e9));
    const auto softCap = [&](const char* key, double defaultValue) {
        // null switches the cap off; a missing key takes the class default.
        return reader.present(key) ? reader.number(key, 0, 1e-6, 1e9) : defaultValue;
    };
    config.attentionSoftCap = softCap("attn_logit_softcapping", 50);
    config.finalSoftCap = softCap("final_logit_softcapping", 30);
    if (reader.boolean("use_bidirectional_attention", false)) {
        reader.unsupported("use_bidirectional_attention", "only causal attention is supported");
    }
}

void parseFamily(ConfigReader& reader, ModelConfig& config) {
    switch (config.family) {
    case Family::GptOss:
        parseGptOss(reader, config);
        return;
    case Family::Gemma2:
        parseGemma2(reader, config);
        return;
    case Family::Llama:
        config.qkvBias = config.outBias = reader.boolean("attention_bias", false);
        config.mlpBias = reader.boolean("mlp_bias", false);
        break;
    case Family::Mistral:
        break;
    case Family::Qwen2:
        config.qkvBias = true;
        break;
    case Family::Qwen3:
    case Family::Qwen3Moe:
        config.qkNorm = true;
        config.qkvBias = config.outBias = reader.boolean("attention_bias", false);
        if (config.family == Family::Qwen3Moe) {
            parseQwen3Moe(reader, config);
        }
        break;
    case Family::DeepseekV3:
        parseDeepseekV3(reader, config);
        break;
    }
    parseActivation(reader, "hidden_act", "silu", config);
}

/// The load-balancing loss of training, as transformers' classes read it.
void parseAuxLoss(ConfigReader& reader, ModelConfig& config) {
    const double coefficient = reader.number("router_aux_loss_coef", 0.001, 0, 1e6);
    if (config.experts > 0 && reader.boolean("output_router_logits", false)) {
        config.routerAuxLoss = coefficient;
    }
}

ModelConfig parse(ConfigReader& reader, const QuantizationFile* beside) {
    const ClassDefaults& defaults = findFamily(reader);
    ModelConfig config;
    config.family = defaults.family;
    parseSizes(reader, defaults, config);
    for (LayerConfig& layer : config.layers) {
        layer.moe = config.family == Family::GptOss;
    }
    parseFamily(reader, config);
    parseAuxLoss(reader, config);
    parseQuantizationOf(reader, beside, config);
    checkWholeGroups(reader, config);
    parseLayerWindows(reader, defaults.window, config);
    RopeConfig rope;
    if (config.family == Family::GptOss) {
        rope.type = RopeType::Yarn;
        rope.theta = 150000;
        rope.factor = 32;
        rope.originalMaxPositions = 4096;
        rope.truncate = false;
    }
    config.rope = parseRope(reader, config, rope);
    if (config.latent.used()) {
        scaleLatentScores(config);
    }
    refuseForeignFields(reader, config);
    checkWholeSize(reader, config);
    config.eosTokens = parseTokenIds(reader, "eos_token_id", defaults.eos);
    config.bosToken = parseTokenId(reader, "bos_token_id", defaults.bos);
    config.padToken = parseTokenId(reader, "pad_token_id", defaults.pad);
    return config;
}

} // namespace

std::string_view familyName(Family family) {
    for (const ClassDefaults& defaults : kClassDefaults) {
        if (defaults.family == family) {
            return defaults.name;
        }
    }
    throw base::Internal("unknown model family");
}

const WeightPacking* ModelConfig::packing(std::string_view weight) const {
    const auto found = packings.find(weight);
    return found == packings.end() ? nullptr : &found->second;
}

std::int64_t ModelConfig::attentionWeights() const {
    if (!latent.used()) {
        return hidden * (2 * queryWidth() + 2 * kvWidth());
    }
    const std::int64_t queries = heads * latent.queryDim();
    const std::int64_t query = latent.queryRank == 0 ? hidden * queries : latent.queryRank * (hidden + queries);
    return query + hidden * headDim + heads * (latent.upDim() * latent.keyRank + latent.valueDim * hidden);
}

std::uint64_t ModelConfig::kvBytes(std::int64_t tokens, kernels::DType dtype, bool slidingSaves) const {
    std::uint64_t kept = 0;
    for (const LayerConfig& layer : layers) {
        const bool saves = slidingSaves && layer.window > 0;
        const auto inLayer = static_cast<std::uint64_t>(saves ? std::min(tokens, layer.window - 1) : tokens);
        if (__builtin_add_overflow(kept, inLayer, &kept)) {
            return std::numeric_limits<std::uint64_t>::max();
        }
    }
    const std::uint64_t perToken =
        static_cast<std::uint64_t>(kvHalves() * kvHeads) * kernels::kvRowBytes(dtype, headDim);
    std::uint64_t bytes = 0;
    return __builtin_mul_overflow(kept, perToken, &bytes) ? std::numeric_limits<std::uint64_t>::max() : bytes;
}

ModelConfig parseModelConfig(const json& root, const std::string& name, const QuantizationFile* beside) {
    ConfigReader reader(root, name);
    ModelConfig config = parse(reader, beside);
    std::vector<std::string> unread;
    for (const auto& [key, value] : reader.unread()) {
        if (!isHarmlessKey(key, *value)) {
            unread.push_back(quotedText(key));
        }
    }
    if (config.quantization) {
        std::ranges::transform(config.quantization->unread, std::back_inserter(unread), quotedText);
    }
    warnOfUnusedKeys(name, std::move(unread));
    return config;
}

std::set<std::string, std::less<>> knownConfigFields(const json& root, const std::string& name) {
    ConfigReader reader(root, name);
    parse(reader, nullptr);
    return reader.asked();
}

} // namespace vitrine::engine
