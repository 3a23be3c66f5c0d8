// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cmath>
#include <gmock/gmock.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using test::failure;
using testing::HasSubstr;
using testing::StartsWith;

ModelConfig parse(const json& config) {
    return parseModelConfig(config, "config.json");
}

std::string refusal(const std::string& modelType, const std::string& key, const json& value) {
    return failure([&] { parse({{"model_type", modelType}, {key, value}}); });
}

std::int64_t slidingLayers(const ModelConfig& config) {
    return std::count_if(config.layers.begin(), config.layers.end(), [](const LayerConfig& l) { return l.window > 0; });
}

TEST(ModelConfig, MissingKeysTakeTheClassDefaults) {
    const ModelConfig oss = parse({{"model_type", "gpt_oss"}});
    EXPECT_EQ(oss.layers.size(), 36U);
    EXPECT_EQ(oss.experts, 128);
    EXPECT_EQ(oss.expertsPerToken, 4);
    EXPECT_EQ(oss.layers[0].window, 128);
    EXPECT_EQ(oss.layers[1].window, 0);
    EXPECT_FALSE(oss.quantization.has_value());
    const ModelConfig llama = parse({{"model_type", "llama"}});
    EXPECT_EQ(llama.kvHeads, 32);
    EXPECT_EQ(llama.headDim, 128);
    EXPECT_EQ(llama.intermediate, 11008);
    EXPECT_EQ(llama.eosTokens, std::vector<std::int32_t>{2});
    EXPECT_EQ(llama.bosToken, 1);
    const ModelConfig mistral = parse({{"model_type", "mistral"}});
    EXPECT_EQ(mistral.kvHeads, 8);
    EXPECT_EQ(slidingLayers(mistral), 32);
    EXPECT_EQ(mistral.layers[0].window, 4096);
    const ModelConfig qwen2 = parse({{"model_type", "qwen2"}});
    EXPECT_EQ(qwen2.kvHeads, 32);
    EXPECT_EQ(slidingLayers(qwen2), 0);
    EXPECT_EQ(parse({{"model_type", "qwen3"}}).headDim, 128);
    const ModelConfig moe = parse({{"model_type", "qwen3_moe"}});
    EXPECT_EQ(moe.headDim, 64);
    EXPECT_EQ(moe.experts, 128);
    EXPECT_EQ(moe.moeIntermediate, 768);
    EXPECT_FALSE(moe.routerNormalize);
    const ModelConfig gemma = parse({{"model_type", "gemma2"}});
    EXPECT_TRUE(gemma.tiedEmbeddings);
    EXPECT_EQ(gemma.attentionScale, 1.0 / 16);
    EXPECT_EQ(gemma.attentionSoftCap, 50);
    EXPECT_EQ(slidingLayers(gemma), 13);
    EXPECT_EQ(gemma.padToken, 0);
}

TEST(ModelConfig, NullsMeanWhatTransformersMeans) {
    const ModelConfig llama = parse(
        {{"model_type", "llama"}, {"num_key_value_heads", nullptr}, {"head_dim", nullptr}, {"eos_token_id", nullptr}});
    EXPECT_EQ(llama.kvHeads, 32);
    EXPECT_EQ(llama.headDim, 128);
    EXPECT_TRUE(llama.eosTokens.empty());
    EXPECT_EQ(slidingLayers(parse({{"model_type", "mistral"}, {"sliding_window", nullptr}})), 0);
    const ModelConfig gemma =
        parse({{"model_type", "gemma2"}, {"attn_logit_softcapping", nullptr}, {"final_logit_softcapping", nullptr}});
    EXPECT_EQ(gemma.attentionSoftCap, 0);
    EXPECT_EQ(gemma.finalSoftCap, 0);
}

TEST(ModelConfig, SlidingLayers) {
    json qwen = {{"model_type", "qwen2"}, {"use_sliding_window", true}, {"max_window_layers", 30}};
    EXPECT_EQ(slidingLayers(parse(qwen)), 2);
    qwen["sliding_window"] = nullptr;
    EXPECT_EQ(slidingLayers(parse(qwen)), 0);
    const json moe = {{"model_type", "qwen3_moe"}, {"use_sliding_window", true}, {"sliding_window", 100}};
    EXPECT_EQ(slidingLayers(parse(moe)), 24);
    json gemma = {{"model_type", "gemma2"}, {"num_hidden_layers", 2}};
    gemma["layer_types"] = {"full_attention", "sliding_attention"};
    EXPECT_EQ(parse(gemma).layers[0].window, 0);
    EXPECT_EQ(parse(gemma).layers[1].window, 4096);
    gemma["layer_types"] = {"full_attention"};
    EXPECT_THAT(failure([&] { parse(gemma); }), HasSubstr("layer_types: has 1 entries, but num_hidden_layers is 2"));
    gemma["layer_types"] = {"full_attention", "chunked_attention"};
    EXPECT_THAT(failure([&] { parse(gemma); }),
                HasSubstr("unsupported: config.json: layer_types: \"chunked_attention\""));
    gemma["layer_types"] = {"full_attention", "sliding_attention"};
    gemma["sliding_window"] = nullptr;
    EXPECT_THAT(failure([&] { parse(gemma); }), HasSubstr("sliding_window: is missing or switched off"));
    const json llama = {{"model_type", "llama"},
                        {"num_hidden_layers", 2},
                        {"sliding_window", 64},
                        {"layer_types", {"full_attention", "full_attention"}}};
    EXPECT_EQ(slidingLayers(parse(llama)), 0);
}

TEST(ModelConfig, MixtureOfExperts) {
    const json base = {{"model_type", "qwen3_moe"}, {"num_hidden_layers", 4}};
    const auto moeLayers = [&](const json& extra) {
        json config = base;
        config.update(extra);
        std::string layers;
        for (const LayerConfig& layer : parse(config).layers) {
            layers += layer.moe ? '1' : '0';
        }
        return layers;
    };
    EXPECT_EQ(moeLayers(json::object()), "1111");
    EXPECT_EQ(moeLayers({{"decoder_sparse_step", 2}}), "0101");
    EXPECT_EQ(moeLayers({{"mlp_only_layers", {0, 3, 77}}}), "0110");
    EXPECT_EQ(moeLayers({{"num_experts", 0}}), "0000");
    EXPECT_EQ(parse({{"model_type", "qwen3_moe"}, {"num_local_experts", 16}}).experts, 16);
    EXPECT_EQ(parse({{"model_type", "gpt_oss"}, {"num_experts", 16}}).experts, 16);
    EXPECT_THAT(failure([&] { parse({{"model_type", "gpt_oss"}, {"num_experts", 16}, {"num_local_experts", 8}}); }),
                HasSubstr("num_experts: is 16, but num_local_experts is 8"));
    EXPECT_THAT(failure([&] { parse({{"model_type", "gpt_oss"}, {"num_experts", 2}}); }),
                HasSubstr("num_experts_per_tok: 4 of 2"));
}

TEST(ModelConfig, FieldsThatChangeTheArithmeticAreRefusedByName) {
    EXPECT_THAT(refusal("llama", "hidden_act", "relu"), StartsWith("unsupported: config.json: hidden_act: "));
    EXPECT_THAT(refusal("gemma2", "hidden_activation", "gelu"),
                StartsWith("unsupported: config.json: hidden_activation"));
    EXPECT_THAT(refusal("gpt_oss", "hidden_act", "gelu_pytorch_tanh"),
                StartsWith("unsupported: config.json: hidden_act"));
    EXPECT_THAT(refusal("gemma2", "use_bidirectional_attention", true), StartsWith("unsupported: "));
    EXPECT_THAT(refusal("llama", "clip_qkv", 8.0), StartsWith("unsupported: config.json: clip_qkv"));
    EXPECT_THAT(refusal("llama", "partial_rotary_factor", 0.5),
                StartsWith("unsupported: config.json: partial_rotary_factor"));
    EXPECT_THAT(refusal("llama", "attn_logit_softcapping", 50.0), StartsWith("unsupported: "));
    EXPECT_THAT(refusal("llama", "quantization_config", {{"quant_method", "aqlm"}}),
                StartsWith("unsupported: config.json: quantization_config.quant_method: \"aqlm\""));
    EXPECT_THAT(refusal("llama", "quantization_config", {{"quant_method", "mxfp4"}}), StartsWith("unsupported: "));
    EXPECT_THAT(refusal("gpt_oss", "quantization_config", {{"bits", 4}}),
                StartsWith("unsupported: config.json: quantization_config.quant_method"));
    EXPECT_THAT(refusal("deepseek_v2", "x", 1), StartsWith("unsupported: config.json: model_type: \"deepseek_v2\""));
    EXPECT_THAT(failure([] { parse({{"hidden_size", 3}}); }),
                StartsWith("bad_input: config.json: model_type: is missing"));
    // What makes no difference is no error.
    EXPECT_EQ(refusal("llama", "clip_qkv", nullptr), "no error");
    EXPECT_EQ(refusal("llama", "attention_dropout", 0.1), "no error");
    EXPECT_EQ(refusal("llama", "hidden_act", "gelu_pytorch_tanh"), "no error");
    EXPECT_EQ(refusal("llama", "embedding_multiplier", 1.0), "no error");
    EXPECT_EQ(refusal("llama", "is_encoder_decoder", false), "no error");
    EXPECT_EQ(refusal("llama", "something_new", {{"deep", {1, 2}}}), "no error");
}

TEST(ModelConfig, RefusesImpossibleValues) {
    EXPECT_THAT(refusal("llama", "hidden_size", -1), HasSubstr("hidden_size: must be from 1 to"));
    EXPECT_THAT(refusal("llama", "hidden_size", 0), HasSubstr("hidden_size"));
    EXPECT_THAT(refusal("llama", "hidden_size", 4096.0), HasSubstr("must be an integer, found 4096.0"));
    EXPECT_THAT(refusal("llama", "hidden_size", "4096"), HasSubstr("must be an integer, found \"4096\""));
    EXPECT_THAT(refusal("llama", "hidden_size", true), HasSubstr("must be an integer"));
    EXPECT_THAT(refusal("llama", "hidden_size", nullptr), HasSubstr("must be an integer, found null"));
    EXPECT_THAT(refusal("llama", "hidden_size", std::uint64_t{1} << 63), HasSubstr("hidden_size: must be from"));
    EXPECT_THAT(refusal("llama", "num_hidden_layers", 100000), HasSubstr("num_hidden_layers"));
    EXPECT_THAT(refusal("llama", "vocab_size", 1 << 23), HasSubstr("vocab_size"));
    EXPECT_THAT(refusal("llama", "num_key_value_heads", 5), HasSubstr("num_key_value_heads: 5 does not divide"));
    EXPECT_THAT(refusal("llama", "num_attention_heads", 5), HasSubstr("hidden_size: 4096 is no multiple"));
    EXPECT_THAT(refusal("llama", "head_dim", 3), HasSubstr("head_dim: 3 is odd"));
    EXPECT_THAT(refusal("llama", "head_dim", 1026), HasSubstr("head_dim: 1026 is not supported"));
    EXPECT_THAT(refusal("llama", "head_dim", 1 << 24), HasSubstr("head_dim"));
    EXPECT_THAT(refusal("llama", "rms_norm_eps", -1e-5), HasSubstr("rms_norm_eps"));
    EXPECT_THAT(refusal("llama", "tie_word_embeddings", 1), HasSubstr("must be true or false"));
    EXPECT_THAT(refusal("llama", "eos_token_id", {1, "2"}), HasSubstr("eos_token_id"));
    EXPECT_THAT(refusal("llama", "eos_token_id", 1LL << 40), HasSubstr("eos_token_id"));
    EXPECT_THAT(refusal("gpt_oss", "num_local_experts", 8000), HasSubstr("in all"));
    EXPECT_THAT(refusal("gpt_oss", "layer_types", "full_attention"), HasSubstr("layer_types: must be a list"));
    EXPECT_THAT(failure([] { parse(json::array()); }), HasSubstr("config.json: must be a JSON object, found a list"));
    const json huge = {{"model_type", "llama"},
                       {"hidden_size", 1 << 24},
                       {"head_dim", 128},
                       {"intermediate_size", 1 << 24},
                       {"num_hidden_layers", 1024}};
    EXPECT_THAT(failure([&] { parse(huge); }), HasSubstr("parameters, more than"));
    const json odd = {
        {"model_type", "gpt_oss"}, {"hidden_size", 100}, {"quantization_config", {{"quant_method", "mxfp4"}}}};
    EXPECT_THAT(failure([&] { parse(odd); }), HasSubstr("hidden_size: must be a multiple of 32"));
}

TEST(ModelConfig, MessagesStayOnOneLine) {
    const std::string message = refusal("llama", "hidden_act", "a\nb\x01" + std::string(500, 'x'));
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_LT(message.size(), 300U);
}

TEST(ModelConfig, KvBytes) {
    const ModelConfig oss = openModel("synthetic:gpt-oss-20b").config;
    // 12 full layers of 2 x 8 x 64 BF16 numbers a token, 12 sliding ones that keep 127 tokens (fact sheet, 4.2).
    EXPECT_EQ(oss.kvBytes(131072, kernels::DType::BF16, false), 131072ULL * 49152);
    EXPECT_EQ(oss.kvBytes(131072, kernels::DType::BF16), 131072ULL * 24576 + 3'121'152);
    EXPECT_EQ(oss.kvBytes(100, kernels::DType::BF16), 100U * 49152);
    EXPECT_EQ(oss.kvBytes(0, kernels::DType::BF16), 0U);
    EXPECT_EQ(oss.kvBytes(std::numeric_limits<std::int64_t>::max(), kernels::DType::F64),
              std::numeric_limits<std::uint64_t>::max());
}

TEST(GenerationConfig, DefaultsAndLists) {
    const GenerationConfig none = parseGenerationConfig(json::object(), "generation_config.json");
    EXPECT_TRUE(none.eosTokens.empty());
    EXPECT_FALSE(none.doSample);
    EXPECT_EQ(none.temperature, 1);
    const GenerationConfig oss = parseGenerationConfig({{"bos_token_id", 199998},
                                                        {"do_sample", true},
                                                        {"eos_token_id", {200002, 199999, 200012}},
                                                        {"pad_token_id", 199999},
                                                        {"temperature", 0.6},
                                                        {"top_k", 20},
                                                        {"top_p", 0.95}},
                                                       "generation_config.json");
    EXPECT_EQ(oss.eosTokens, (std::vector<std::int32_t>{200002, 199999, 200012}));
    EXPECT_EQ(oss.bosToken, 199998);
    EXPECT_TRUE(oss.doSample);
    EXPECT_EQ(oss.topK, 20);
    EXPECT_THAT(failure([] { parseGenerationConfig({{"temperature", -1}}, "generation_config.json"); }),
                HasSubstr("bad_input: generation_config.json: temperature"));
    EXPECT_THAT(failure([] { parseGenerationConfig({{"top_k", 1.5}}, "g.json"); }), HasSubstr("g.json: top_k"));
}

} // namespace
} // namespace vitrine::engine
