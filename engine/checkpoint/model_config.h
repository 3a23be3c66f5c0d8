// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The architecture of a model as numbers, read from config.json in the v4 form (rope_theta, rope_scaling) and the v5
// form (rope_parameters), with transformers' class defaults for missing keys.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/quant/packing.h"
#include "kernels/core/dtype.h"
#include "kernels/core/layer_forms.h"
#include "kernels/core/weight_view.h"

namespace vitrine::engine {

struct QuantizationFile;

enum class Family : std::uint8_t { GptOss, Llama, Mistral, Qwen2, Qwen3, Qwen3Moe, Gemma2, DeepseekV3 };

/// model_type: "gpt_oss", "llama", ... Of DeepseekV3, which kimi_k2 is too, "deepseek_v3".
std::string_view familyName(Family family);

enum class RopeType : std::uint8_t { Default, Linear, Dynamic, Llama3, Yarn, LongRope };

struct RopeConfig {
    RopeType type = RopeType::Default;
    double theta = 10000;
    double factor = 1;
    std::int64_t originalMaxPositions = 0;        ///< L0; for Dynamic it is maxPositions
    double betaFast = 32, betaSlow = 1;           ///< yarn
    bool truncate = true;                         ///< yarn
    double attentionFactor = 0;                   ///< yarn, longrope; 0: from factor or mscale
    double mscale = 0, mscaleAllDim = 0;          ///< yarn
    double lowFreqFactor = 1, highFreqFactor = 4; ///< llama3
    std::vector<double> shortFactors;             ///< longrope: for sequences of at most originalMaxPositions, one for
    std::vector<double> longFactors;              ///< each frequency; and for longer ones

    bool operator==(const RopeConfig&) const = default;
    /// Whether frequencies depend on how long a sequence is, so that its keys differ from those of a shorter one.
    bool followsLength() const {
        return type == RopeType::Dynamic || (type == RopeType::LongRope && shortFactors != longFactors);
    }
};

/// One decoder layer.
struct LayerConfig {
    std::int64_t window = 0; ///< sliding window in tokens, 0: full attention
    bool moe = false;
};

/// Sizes of multi-head latent attention (kernels/ops/fused/latent_blocks.h). The key rank is 0 in models without it.
struct LatentConfig {
    std::int64_t queryRank = 0; ///< 0: queries are made in one product
    std::int64_t keyRank = 0;   ///< elements of a token's latent
    std::int64_t nopeDim = 0;   ///< of a head's key, not rotated
    std::int64_t ropeDim = 0;   ///< of every head's key and query, rotated
    std::int64_t valueDim = 0;  ///< of a head's value
    bool interleaved = true;    ///< the pairs that are rotated are neighbours
    double normEps = 1e-6;      ///< of the norms of latents: transformers does not take rms_norm_eps there

    bool used() const { return keyRank > 0; }
    std::int64_t queryDim() const { return nopeDim + ropeDim; } ///< of a head
    std::int64_t upDim() const { return nopeDim + valueDim; }   ///< rows of kv_b_proj for a head
};

struct ModelConfig {
    Family family = Family::Llama;
    std::int64_t vocab = 0;
    std::int64_t hidden = 0;
    std::int64_t intermediate = 0;    ///< of dense MLPs
    std::int64_t moeIntermediate = 0; ///< of one expert
    /// Of latent attention the shape of what the cache holds: one head, as wide as a latent and the rotated part.
    std::int64_t heads = 0, kvHeads = 0, headDim = 0;
    LatentConfig latent;
    std::int64_t experts = 0, expertsPerToken = 0;
    std::int64_t sharedIntermediate = 0; ///< of the experts that every token passes, as one MLP; 0: none
    std::int64_t maxPositions = 0;
    std::vector<LayerConfig> layers;
    RopeConfig rope;

    double normEps = 1e-5;
    kernels::RmsNormOrder normForm = kernels::RmsNormOrder::CastThenScale;
    bool qkvBias = false, outBias = false, mlpBias = false; ///< mlpBias: dense MLP; gpt-oss experts always have biases.
                                                            ///< qkvBias of latent attention: q_a and kv_a
    bool routerBias = false, expertBias = false;
    bool qkNorm = false;         ///< Qwen3: norms over headDim before RoPE
    bool sinks = false;          ///< gpt-oss
    bool postNorms = false;      ///< Gemma2: norms on branch outputs
    double attentionScale = 0;   ///< what multiplies q.k
    double attentionSoftCap = 0; ///< 0: none
    double finalSoftCap = 0;     ///< 0: none
    double routerAuxLoss = 0;    ///< router_aux_loss_coef where output_router_logits asks for it, else 0
    bool scaleEmbedding = false; ///< Gemma2
    kernels::Activation activation = kernels::Activation::Silu;
    kernels::GateLayout gateLayout = kernels::GateLayout::Halves; ///< of fused gate_up
    double swigluAlpha = 1.702, swigluLimit = 7;
    kernels::RouterOrder routerOrder = kernels::RouterOrder::TopKThenSoftmax;
    bool routerNormalize = false;                        ///< norm_topk_prob
    std::int64_t routerGroups = 1, routerKeptGroups = 1; ///< see kernels::RouterGroups
    double routerScale = 1;                              ///< routed_scaling_factor
    bool tiedEmbeddings = false;
    bool fusedExperts = false; ///< Qwen3-MoE experts are stored stacked (experts.gate_up_proj); openModel sets it
    std::optional<Quantization> quantization; ///< what quantization_config says; none: nothing is packed by it
    /// How packed weights are stored, by the name of the weight; others are dense. openModel lists what the files
    /// have, or, for a synthetic model, what quantization_config says.
    std::map<std::string, WeightPacking, std::less<>> packings;
    std::vector<std::int32_t> eosTokens;
    std::int32_t bosToken = -1; ///< -1: none
    std::int32_t padToken = -1; ///< -1: none

    /// Null: the weight is dense.
    const WeightPacking* packing(std::string_view weight) const;
    std::int64_t ropeDim() const { return latent.used() ? latent.ropeDim : headDim; } ///< rotated elements of a head
    /// Rows that the cache has for a token and head: a key and a value, or one that is both.
    std::int64_t kvHalves() const { return latent.used() ? 1 : 2; }
    /// Elements of the weight matrices of one layer's attention.
    std::int64_t attentionWeights() const;
    std::int64_t queryWidth() const { return heads * headDim; }
    std::int64_t kvWidth() const { return kvHeads * headDim; }
    /// KV bytes of `tokens` tokens of one sequence in a cache of this type (scales of FP8 and INT8 included): a sliding
    /// layer keeps min(tokens, window - 1). `slidingSaves` false counts every layer as full. Largest uint64 when the
    /// product does not fit.
    std::uint64_t kvBytes(std::int64_t tokens, kernels::DType dtype, bool slidingSaves = true) const;
};

/// Parses config.json. `name` is the file's name for errors. `beside` is a file that says how weights are packed, or
/// null. Every key is read, is known to change nothing, or is named in one warning. Throws
/// Unsupported, which names FILE: FIELD, for an unknown model_type and for a known field with an unsupported value that
/// changes the arithmetic. Throws BadInput for impossible values. Dimensions are limited, so that no product of them
/// overflows.
ModelConfig parseModelConfig(const nlohmann::json& json, const std::string& name,
                             const QuantizationFile* beside = nullptr);

/// Names of the config fields that parseModelConfig looks at for a config of this family.
std::set<std::string, std::less<>> knownConfigFields(const nlohmann::json& json, const std::string& name);

/// The fields of generation_config.json. A missing file or key gives the default.
struct GenerationConfig {
    std::vector<std::int32_t> eosTokens; ///< empty: the model config's
    std::int32_t bosToken = -1, padToken = -1;
    bool doSample = false;
    double temperature = 1, topP = 1, minP = 0, repetitionPenalty = 1;
    std::int32_t topK = 0;
};
GenerationConfig parseGenerationConfig(const nlohmann::json& json, const std::string& name);

/// inverse frequencies (ropeDim / 2) and what multiplies cos and sin, by the formulas of transformers'
/// modeling_rope_utils, computed in double. `sequenceLength` matters for Dynamic, whose base grows once it exceeds
/// maxPositions, and for LongRope, which takes its long factors once it exceeds originalMaxPositions.
struct RopeTable {
    std::vector<float> inverseFrequency;
    double attentionScale = 1;
};
RopeTable makeRopeTable(const ModelConfig& config, std::int64_t sequenceLength);

} // namespace vitrine::engine
