// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/gguf_keys.h"
#include "engine/checkpoint/model_config.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;

struct Architecture {
    std::string_view name;   ///< in the file
    std::string_view family; ///< model_type of config.json
};

constexpr std::array<Architecture, 5> kArchitectures = {
    {{"llama", "llama"}, {"qwen2", "qwen2"}, {"qwen3", "qwen3"}, {"qwen3moe", "qwen3_moe"}, {"gpt-oss", "gpt_oss"}}};

class ConfigMaker {
public:
    explicit ConfigMaker(const GgufFile& file) : file_(file), header_(file.header()) {
        const std::string_view name = header_.text("general.architecture").value_or("");
        const auto* const found = std::ranges::find(kArchitectures, name, &Architecture::name);
        if (found == kArchitectures.end()) {
            std::string known;
            for (const Architecture& architecture : kArchitectures) {
                known += (known.empty() ? "" : ", ") + std::string(architecture.name);
            }
            header_.unsupported("general.architecture",
                                fmt::format("{} is not supported; {} are", quotedText(name), known));
        }
        prefix_ = std::string(name) + ".";
        family_ = found->family;
    }

    json make() {
        out_["model_type"] = family_;
        sizes();
        if (family_ == "llama") {
            llama();
        } else if (family_ == "qwen3_moe") {
            qwen3Moe();
        } else if (family_ == "gpt_oss") {
            gptOss();
        }
        rope();
        tokens();
        GgufKeySizes known{family_, out_["hidden_size"].get<std::int64_t>(), headDim(),
                           out_["rope_theta"].get<double>()};
        checkGgufKeys(header_, prefix_, ggufModelKeys(known), true);
        return std::move(out_);
    }

private:
    std::string key(std::string_view name) const { return prefix_ + std::string(name); }

    std::int64_t required(std::string_view name) const {
        const auto value = header_.integer(key(name));
        if (!value) {
            header_.bad(key(name), "is missing");
        }
        return *value;
    }

    /// One number for all layers; some files have a list of them.
    std::int64_t ofAllLayers(std::string_view name) const {
        const std::vector<std::int32_t> values = header_.integers(key(name));
        if (values.empty()) {
            header_.bad(key(name), "is missing");
        }
        if (std::ranges::any_of(values, [&](std::int32_t value) { return value != values.front(); })) {
            header_.unsupported(key(name), "differs between layers, which is not supported");
        }
        return values.front();
    }

    void copy(const char* field, std::string_view name) {
        if (const auto value = header_.integer(key(name))) {
            out_[field] = *value;
        }
    }

    void sizes() {
        const GgufTensor* embedding = header_.tensor("token_embd.weight");
        if (embedding == nullptr || embedding->axes != 2) {
            header_.bad("token_embd.weight", "is missing or is no matrix; this file holds no model");
        }
        out_["vocab_size"] = embedding->dims[0];
        out_["hidden_size"] = required("embedding_length");
        out_["num_hidden_layers"] = required("block_count");
        out_["max_position_embeddings"] = required("context_length");
        const std::int64_t heads = ofAllLayers("attention.head_count");
        out_["num_attention_heads"] = heads;
        const bool fewer = header_.find(key("attention.head_count_kv")) != nullptr;
        out_["num_key_value_heads"] = fewer ? ofAllLayers("attention.head_count_kv") : heads;
        const auto headDim = header_.integer(key("attention.key_length"));
        const auto valueDim = header_.integer(key("attention.value_length"));
        out_["head_dim"] = headDim.value_or(required("embedding_length") / std::max<std::int64_t>(heads, 1));
        if (headDim.value_or(0) != valueDim.value_or(headDim.value_or(0))) {
            header_.unsupported(key("attention.value_length"), "values of another length than keys are not supported");
        }
        if (family_ != "gpt_oss" && (family_ != "qwen3_moe" || header_.find(key("feed_forward_length")) != nullptr)) {
            out_["intermediate_size"] = ofAllLayers("feed_forward_length");
        }
        const auto eps = header_.number(key("attention.layer_norm_rms_epsilon"));
        if (!eps) {
            header_.bad(key("attention.layer_norm_rms_epsilon"), "is missing");
        }
        out_["rms_norm_eps"] = *eps;
        out_["tie_word_embeddings"] = header_.tensor("output.weight") == nullptr;
    }

    void llama() {
        if (header_.integer(key("expert_count")).value_or(0) > 0) {
            header_.unsupported(key("expert_count"), "mixtures of experts of this architecture are not supported");
        }
        const auto window = header_.integer(key("attention.sliding_window"));
        if (window.value_or(0) > 0) { // files of Mistral say that they are llama
            out_["model_type"] = "mistral";
            out_["sliding_window"] = *window;
            return;
        }
        out_["attention_bias"] = header_.tensor("blk.0.attn_output.bias") != nullptr;
        out_["mlp_bias"] = header_.tensor("blk.0.ffn_gate.bias") != nullptr;
    }

    void qwen3Moe() {
        out_["num_experts"] = required("expert_count");
        out_["num_experts_per_tok"] = required("expert_used_count");
        out_["moe_intermediate_size"] = required("expert_feed_forward_length");
        out_["norm_topk_prob"] = header_.boolean(key("expert_weights_norm")).value_or(true);
    }

    void gptOss() {
        out_["num_local_experts"] = required("expert_count");
        out_["num_experts_per_tok"] = required("expert_used_count");
        out_["intermediate_size"] = required("expert_feed_forward_length");
        out_["sliding_window"] = required("attention.sliding_window");
        out_["layer_types"] = layerTypes();
    }

    /// Layers with a window come in periods of two, of which the last is a full one. A file may say another period, or
    /// list the layers.
    json layerTypes() const {
        const std::string name = key("attention.sliding_window_pattern");
        const GgufValue* pattern = header_.find(name);
        const std::int64_t layers = std::min<std::int64_t>(required("block_count"), 1 << 16);
        const bool listed = pattern != nullptr && pattern->array;
        if (listed && (pattern->type != GgufValueType::Bool || pattern->count < layers)) {
            header_.bad(name, "must be a number, or true or false for each layer");
        }
        const std::int64_t period = listed ? 0 : header_.integer(name).value_or(2);
        json types = json::array();
        for (std::int64_t layer = 0; layer < layers; ++layer) {
            const bool window = listed ? pattern->data[layer] != 0 : period == 0 || layer % period < period - 1;
            types.push_back(window ? "sliding_attention" : "full_attention");
        }
        return types;
    }

    std::int64_t headDim() const { return out_["head_dim"].get<std::int64_t>(); }

    void rope() {
        const double base = header_.number(key("rope.freq_base")).value_or(10000);
        out_["rope_theta"] = base;
        if (const auto turned = header_.integer(key("rope.dimension_count"))) {
            const std::int64_t whole = headDim();
            if (*turned != whole) {
                header_.unsupported(
                    key("rope.dimension_count"),
                    fmt::format("{} of {} elements of a head are turned; only whole heads are supported", *turned,
                                whole));
            }
        }
        json scaling = ropeScaling();
        if (const GgufTensor* factors = header_.tensor("rope_freqs.weight")) {
            if (!scaling.is_null()) {
                header_.unsupported("rope_freqs.weight", "is not supported beside rope.scaling");
            }
            scaling = llama3Scaling(*factors, base);
        }
        if (!scaling.is_null()) {
            out_["rope_scaling"] = std::move(scaling);
        }
    }

    /// As llama.cpp takes it: a factor without a type is linear, and a type without a factor is none. Files of 2023
    /// have the factor under another name.
    json ropeScaling() const {
        const std::string_view type = header_.text(key("rope.scaling.type")).value_or("linear");
        if (type != "none" && type != "linear" && type != "yarn") {
            header_.unsupported(key("rope.scaling.type"),
                                fmt::format("{} is not supported; none, linear and yarn are", quotedText(type)));
        }
        const char* const name =
            header_.find(key("rope.scaling.factor")) == nullptr ? "rope.scale_linear" : "rope.scaling.factor";
        const double given = header_.number(key(name)).value_or(1);
        const double factor = given == 0 ? 1 : given;
        const double attention = header_.number(key("rope.scaling.attn_factor")).value_or(1) *
                                 header_.number(key("rope.scaling.yarn_attn_factor")).value_or(1);
        if (!(factor > 0)) {
            header_.bad(key(name), fmt::format("must be larger than 0, not {}", factor));
        }
        if (attention != 1 && type != "yarn") {
            header_.unsupported(key("rope.scaling.attn_factor"),
                                fmt::format("is {}, which is supported only with yarn", attention));
        }
        if (type == "none" || (factor == 1 && attention == 1)) {
            return nullptr;
        }
        json scaling = {{"rope_type", type}, {"factor", factor}};
        if (type == "yarn") {
            yarn(scaling, factor, attention);
        }
        return scaling;
    }

    void yarn(json& scaling, double factor, double attention) const {
        if (const auto length = header_.integer(key("rope.scaling.original_context_length"))) {
            scaling["original_max_position_embeddings"] = *length;
        }
        scaling["beta_fast"] = header_.number(key("rope.scaling.yarn_beta_fast")).value_or(32);
        scaling["beta_slow"] = header_.number(key("rope.scaling.yarn_beta_slow")).value_or(1);
        if (attention != 1) {
            scaling["attention_factor"] = attention * (factor > 1 ? 0.1 * std::log(factor) + 1 : 1);
        }
        // The models of this family are trained without it, though llama.cpp rounds for all.
        scaling["truncate"] = family_ != "gpt_oss";
    }

    /// Llama 3's scaling is stored as what divides each frequency, not as the numbers that it comes from. The factor is
    /// the largest divisor. Published models have the same two low and high factors and a length that is a power of
    /// two, so the lengths are tried: the table that follows must be that of the file.
    json llama3Scaling(const GgufTensor& tensor, double base) const {
        constexpr std::uint64_t kMostBytes = 4096;
        if (tensor.type->floats != kernels::DType::F32 || tensor.bytes > kMostBytes) {
            header_.unsupported("rope_freqs.weight", "must be F32 with an element for each pair of a head");
        }
        std::vector<float> factors(tensor.bytes / sizeof(float));
        file_.read(tensor, 0, factors.data(), tensor.bytes);
        const float largest = *std::ranges::max_element(factors);
        for (std::int64_t positions = 32; positions <= 1 << 20; positions *= 2) {
            json scaling = {{"rope_type", "llama3"},
                            {"factor", largest},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", positions}};
            if (givesFactors(scaling, base, factors)) {
                return scaling;
            }
        }
        header_.unsupported("rope_freqs.weight", "is not the scaling of Llama 3; no other is supported");
    }

    bool givesFactors(const json& scaling, double base, const std::vector<float>& factors) const {
        const double factor = scaling["factor"].get<double>();
        ModelConfig config;
        config.headDim = 2 * std::ssize(factors);
        config.rope.theta = base;
        const RopeTable plain = makeRopeTable(config, 1);
        config.rope.type = RopeType::Llama3;
        config.rope.factor = factor;
        config.rope.lowFreqFactor = scaling["low_freq_factor"].get<double>();
        config.rope.highFreqFactor = scaling["high_freq_factor"].get<double>();
        config.rope.originalMaxPositions = scaling["original_max_position_embeddings"].get<std::int64_t>();
        const RopeTable scaled = makeRopeTable(config, 1);
        for (std::size_t i = 0; i < factors.size(); ++i) {
            const double expected = plain.inverseFrequency[i] / scaled.inverseFrequency[i];
            if (!(std::abs(expected - factors[i]) <= 1e-4 * expected)) {
                return false;
            }
        }
        return true;
    }

    void tokens() {
        json ends = json::array();
        for (const char* name :
             {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
            const auto id = header_.integer(name);
            if (id && std::ranges::find(ends, json(*id)) == ends.end()) {
                ends.push_back(*id);
            }
        }
        const auto token = [&](const char* name) {
            const auto id = header_.integer(name);
            return id ? json(*id) : json(nullptr);
        };
        out_["eos_token_id"] = ends.empty() ? json(nullptr) : ends;
        out_["bos_token_id"] = token("tokenizer.ggml.bos_token_id");
        out_["pad_token_id"] = token("tokenizer.ggml.padding_token_id");
    }

    const GgufFile& file_;
    const GgufHeader& header_;
    std::string prefix_;
    std::string_view family_;
    json out_ = json::object();
};

} // namespace

json ggufConfigJson(const GgufFile& file) {
    return ConfigMaker(file).make();
}

} // namespace vitrine::engine
