// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/config_keys.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/checkpoint/log_capture.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using test::failure;
using test::warningsOf;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> configWarnings(const std::string& family, const json& keys) {
    json config = keys;
    config["model_type"] = family;
    return warningsOf([&] { parseModelConfig(config, "config.json"); });
}

std::string configRefusal(const std::string& family, const std::string& key, const json& value) {
    return failure([&] { parseModelConfig({{"model_type", family}, {key, value}}, "config.json"); });
}

TEST(ConfigKeys, WhatNothingReadsIsNamedInOneWarning) {
    const json keys = {
        {"some_new_scale", 3},  {"another", json::object()},
        {"nothing", nullptr},   {"use_cache", true},
        {"sliding_window", 16}, {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}, {"mscale", 0.5}}}};
    EXPECT_THAT(configWarnings("llama", keys),
                ElementsAre(AllOf(HasSubstr("config.json: not used: \"another\", \"rope_scaling.mscale\", "
                                            "\"sliding_window\", \"some_new_scale\""),
                                  Not(HasSubstr("nothing")), Not(HasSubstr("use_cache")))));
    EXPECT_THAT(configWarnings("llama", {{"architectures", {"LlamaForSequenceClassification"}}}),
                ElementsAre(HasSubstr("architectures")));
    EXPECT_THAT(configWarnings("llama", {{"rope_scaling", {{"factor", 4.0}}}}),
                ElementsAre(HasSubstr("\"rope_scaling.factor\"")))
        << "without a type the frequencies are the plain ones, as in transformers";
}

TEST(ConfigKeys, ConfigsOfTransformersNeedNoWarning) {
    for (const char* family : {"gpt_oss", "llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "gemma2", "deepseek_v3"}) {
        EXPECT_THAT(configWarnings(family, {{"initializer_range", 0.02},
                                            {"architectures", {"LlamaForCausalLM"}},
                                            {"attention_dropout", 0.0},
                                            {"transformers_version", "5.24.0"},
                                            {"torch_dtype", "bfloat16"},
                                            {"use_cache", true},
                                            {"temperature", 1.0},
                                            {"num_beams", 1},
                                            {"router_aux_loss_coef", 0.001},
                                            {"use_sliding_window", false}}),
                    IsEmpty())
            << family;
    }
}

TEST(ConfigKeys, ConfigsOfKnownModelsNeedNoWarning) {
    for (const std::string& name : syntheticNames()) {
        EXPECT_THAT(warningsOf([&] { openModel("synthetic:" + name); }), IsEmpty()) << name;
    }
}

TEST(ConfigKeys, WhatChangesTheArithmeticIsRefused) {
    for (const auto& [key, value] :
         {std::pair{"embedding_multiplier", json(12.0)}, std::pair{"scale_depth", json(1.4)},
          std::pair{"rope_local_base_freq", json(1e4)}, std::pair{"is_causal", json(false)},
          std::pair{"pruned_heads", json{{"0", {1}}}}, std::pair{"text_config", json{{"hidden_size", 8}}},
          std::pair{"no_rope_layers", json{1, 0}}, std::pair{"quantization", json{{"bits", 4}}},
          std::pair{"use_bidirectional_attention", json(true)}}) {
        EXPECT_THAT(configRefusal("llama", key, value), HasSubstr(std::string("unsupported: config.json: ") + key));
    }
    EXPECT_THAT(configRefusal("mistral", "attention_bias", true), HasSubstr("attention_bias"));
    EXPECT_THAT(configRefusal("qwen2", "attention_bias", false), HasSubstr("attention_bias"));
    EXPECT_THAT(configRefusal("qwen2", "mlp_bias", true), HasSubstr("mlp_bias"));
    for (const auto& [key, value] : {std::pair{"embedding_multiplier", json(1)}, std::pair{"is_causal", json(true)},
                                     std::pair{"pruned_heads", json::object()}, std::pair{"mlp_bias", json(true)},
                                     std::pair{"no_rope_layers", json::array()}}) {
        EXPECT_EQ(configRefusal("llama", key, value), "no error") << key;
    }
}

TEST(GenerationKeys, OnlyWhatChangesAnswersIsNamed) {
    const auto warnings = [](const json& keys) {
        return warningsOf([&] { parseGenerationConfig(keys, "generation_config.json"); });
    };
    EXPECT_THAT(warnings({{"num_beams", 1},
                          {"typical_p", 1.0},
                          {"no_repeat_ngram_size", 0},
                          {"suppress_tokens", json::array()},
                          {"max_length", 20},
                          {"transformers_version", "4.40.0"},
                          {"epsilon_cutoff", 0.0},
                          {"bad_words_ids", nullptr},
                          {"temperature", 0.5}}),
                IsEmpty());
    EXPECT_THAT(warnings({{"num_beams", 4},
                          {"no_repeat_ngram_size", 3},
                          {"suppress_tokens", {7}},
                          {"forced_eos_token_id", 2},
                          {"a_new_rule", 1}}),
                ElementsAre(HasSubstr("generation_config.json: not used: \"a_new_rule\", \"forced_eos_token_id\", "
                                      "\"no_repeat_ngram_size\", \"num_beams\", \"suppress_tokens\"")));
}

TEST(GenerationKeys, AMissingTopKIsThatOfTransformers) {
    EXPECT_EQ(parseGenerationConfig(json::object(), "g").topK, 50);
    EXPECT_EQ(parseGenerationConfig({{"top_k", nullptr}}, "g").topK, 50);
    EXPECT_EQ(parseGenerationConfig({{"top_k", 0}}, "g").topK, 0);
}

} // namespace
} // namespace vitrine::engine
