// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapters/adapter_config.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine {
namespace {

AdapterConfig parsedConfig(const std::string& members) {
    return AdapterConfig::parse(R"({"target_modules": ["q_proj"])" + (members.empty() ? "" : ", " + members) + "}",
                                "F");
}

std::string configError(const std::string& text) {
    try {
        AdapterConfig::parse(text, "F");
    } catch (const base::Error& error) {
        return error.message();
    }
    return "no error";
}

TEST(AdapterConfig, ReadsWhatPeftWrites) {
    const auto config = AdapterConfig::read(test::fixture("llama-lora/adapter-start/adapter_config.json"));
    EXPECT_EQ(config.rank, 4);
    EXPECT_EQ(config.alpha, 8);
    EXPECT_EQ(config.targetModules.size(), 7U);
    EXPECT_EQ(config.baseModel, "llama");
    EXPECT_EQ(config.initLoraWeights, "true");
    EXPECT_TRUE(config.targetRegex.empty());
    EXPECT_TRUE(config.targetParameters.empty());
    EXPECT_FALSE(config.rsLora);
    EXPECT_EQ(config.scaling(config.rank, config.alpha), 2);
}

TEST(AdapterConfig, WhatIsWrittenIsReadAgain) {
    AdapterConfig config;
    config.rank = 3;
    config.alpha = 4.5;
    config.dropout = 0.25;
    config.rsLora = true;
    config.dora = true;
    config.targetRegex = ".*\\.q_proj";
    config.targetParameters = {"mlp.experts.down_proj"};
    config.rankPattern = {{"k_proj", 7}};
    config.alphaPattern = {{"k_proj", 0.5}, {"v_proj", 16}};
    config.baseModel = "some/model";
    config.excludeModules = {"lm_head"};
    config.modulesToSave = {"embed_tokens"};
    config.initLoraWeights = "gaussian";
    const AdapterConfig again = AdapterConfig::parse(config.text(), "F");
    EXPECT_EQ(again.text(), config.text());
    EXPECT_EQ(again.rank, 3);
    EXPECT_EQ(again.alpha, 4.5);
    EXPECT_EQ(again.dropout, 0.25);
    EXPECT_TRUE(again.rsLora && again.dora);
    EXPECT_EQ(again.targetRegex, config.targetRegex);
    EXPECT_EQ(again.targetParameters, config.targetParameters);
    EXPECT_EQ(again.rankPattern, config.rankPattern);
    EXPECT_EQ(again.alphaPattern, config.alphaPattern);
    EXPECT_EQ(again.excludeModules, config.excludeModules);
    EXPECT_EQ(again.modulesToSave, config.modulesToSave);
    EXPECT_EQ(again.initLoraWeights, "gaussian");
    EXPECT_DOUBLE_EQ(again.scaling(9, 6), 2);
}

TEST(AdapterConfig, ListsMatchWholeNamesAndEnds) {
    const AdapterNames names(parsedConfig(R"("target_parameters": ["mlp.experts.down_proj"])"), "F");
    EXPECT_TRUE(names.targetsModule("q_proj", false));
    EXPECT_TRUE(names.targetsModule("model.layers.3.self_attn.q_proj", false));
    EXPECT_FALSE(names.targetsModule("model.layers.3.self_attn.aq_proj", false));
    EXPECT_FALSE(names.targetsModule("model.layers.3.self_attn.q_proj.weight", false));
    EXPECT_TRUE(names.targetsParameter("model.layers.0.mlp.experts.down_proj"));
    EXPECT_FALSE(names.targetsParameter("model.layers.0.mlp.down_proj"));
}

TEST(AdapterConfig, TextsMatchWholeNames) {
    const AdapterNames some(AdapterConfig::parse(R"({"target_modules": ".*\\.[01]\\..*(q|v)_proj"})", "F"), "F");
    EXPECT_TRUE(some.targetsModule("model.layers.1.self_attn.v_proj", false));
    EXPECT_FALSE(some.targetsModule("model.layers.2.self_attn.v_proj", false));
    EXPECT_FALSE(some.targetsModule("model.layers.1.self_attn.v_proj.x", false));
    const AdapterNames either(AdapterConfig::parse(R"({"target_modules": "a|b"})", "F"), "F");
    EXPECT_TRUE(either.targetsModule("b", false));
    EXPECT_FALSE(either.targetsModule("ab", false));
    const AdapterNames all(
        AdapterConfig::parse(R"({"target_modules": "All-Linear", "exclude_modules": ["k_proj"]})", "F"), "F");
    EXPECT_TRUE(all.targetsModule("model.layers.1.self_attn.v_proj", false));
    EXPECT_FALSE(all.targetsModule("model.layers.1.self_attn.k_proj", false));
    EXPECT_FALSE(all.targetsModule("lm_head", true));
}

TEST(AdapterConfig, PatternsGiveRanksAndAlphas) {
    const AdapterNames names(
        parsedConfig(R"("r": 2, "lora_alpha": 4, "rank_pattern": {"layers.1.self_attn.q_proj": 5, "v_.*": 6},
                     "alpha_pattern": {"q_proj": 9})"),
        "F");
    EXPECT_EQ(names.rankOf("model.layers.0.self_attn.q_proj"), 2);
    EXPECT_EQ(names.rankOf("model.layers.1.self_attn.q_proj"), 5);
    EXPECT_EQ(names.rankOf("model.layers.11.self_attn.q_proj"), 2);
    EXPECT_EQ(names.rankOf("model.layers.1.self_attn.v_proj"), 6);
    EXPECT_EQ(names.rankOf("model.layers.1.self_attn.av_proj"), 2);
    EXPECT_EQ(names.alphaOf("model.layers.1.self_attn.q_proj"), 9);
    EXPECT_EQ(names.alphaOf("model.layers.1.self_attn.v_proj"), 4);
}

TEST(AdapterConfig, ValuesThatMeanNothingAreTaken) {
    parsedConfig(R"("bias": "none", "lora_bias": false, "layers_to_transform": null, "loftq_config": {},
                 "megatron_core": "megatron.core", "alora_invocation_tokens": [], "something_new": 3)");
    EXPECT_EQ(parsedConfig(R"("init_lora_weights": false)").initLoraWeights, "false");
    EXPECT_EQ(parsedConfig(R"("fan_in_fan_out": true, "something_new": 3)").unknownKeys,
              std::vector<std::string>{"something_new"});
}

TEST(AdapterConfig, LayersAreChosenByTheirNumbers) {
    const AdapterNames names(parsedConfig(R"("layers_to_transform": [1, 12])"), "F");
    EXPECT_TRUE(names.targetsModule("model.layers.1.self_attn.q_proj", false));
    EXPECT_TRUE(names.targetsModule("model.layers.12.self_attn.q_proj", false));
    EXPECT_FALSE(names.targetsModule("model.layers.2.self_attn.q_proj", false));
    EXPECT_FALSE(names.targetsModule("model.layers.11.self_attn.q_proj", false));
    const AdapterNames one(parsedConfig(R"("layers_to_transform": 0, "layers_pattern": "layers")"), "F");
    EXPECT_TRUE(one.targetsModule("model.layers.0.self_attn.q_proj", false));
    EXPECT_FALSE(one.targetsModule("model.layers.1.self_attn.q_proj", false));
}

TEST(AdapterConfig, SavedModulesAreNoTargets) {
    const AdapterNames names(parsedConfig(R"("modules_to_save": ["self_attn"])"), "F");
    EXPECT_FALSE(names.targetsModule("model.layers.2.self_attn.q_proj", false));
    EXPECT_TRUE(names.targetsModule("model.layers.2.other.q_proj", false));
}

TEST(AdapterConfig, WhatIsWrittenAgainKeepsAllKeys) {
    const AdapterConfig config =
        parsedConfig(R"("something_new": 3, "another": null, "revision": "main", "layers_to_transform": [1])");
    const AdapterConfig again = AdapterConfig::parse(config.text(), "F");
    EXPECT_EQ(again.unknownKeys, std::vector<std::string>{"something_new"});
    EXPECT_EQ(again.layers, config.layers);
    EXPECT_NE(again.text().find("\"revision\": \"main\""), std::string::npos);
}

TEST(AdapterConfig, BadFilesAreNamed) {
    const std::vector<std::pair<std::string, std::string>> table = {
        {"", "F: "},
        {"[]", "F: must be a JSON object"},
        {"{}", "F: target_modules: names no module"},
        {R"({"target_modules": []})", "F: target_modules: names no module"},
        {R"({"target_modules": ""})", "F: target_modules: is empty"},
        {R"({"target_modules": 3})", "F: target_modules: must be a list"},
        {R"({"target_modules": [3]})", "F: target_modules: must hold names"},
        {R"({"target_modules": [""]})", "F: target_modules: must hold names"},
        {R"({"target_parameters": "x"})", "F: target_parameters: must be a list"},
        {R"({"target_modules": ["q"], "r": 0})", "F: r: must be from 1"},
        {R"({"target_modules": ["q"], "r": 1e3})", "F: r: must be an integer"},
        {R"({"target_modules": ["q"], "lora_alpha": "8"})", "F: lora_alpha: must be a number"},
        {R"({"target_modules": ["q"], "lora_dropout": 2})", "F: lora_dropout: must be from 0 to 1"},
        {R"({"target_modules": ["q"], "rank_pattern": {"q": 0}})", "F: rank_pattern.q: must be from 1"},
        {R"({"target_modules": ["q"], "rank_pattern": {"q": null}})", "F: rank_pattern.q: must be a name"},
        {R"({"target_modules": ["q"], "rank_pattern": [1]})", "F: rank_pattern: must be a JSON object"},
        {R"({"target_modules": ["q"], "alpha_pattern": {"q": "x"}})", "F: alpha_pattern.q: must be a number"},
        {R"({"target_modules": ["q"], "bias": "some"})", "F: bias: "},
        {R"({"target_modules": ["q"], "lora_bias": true})", "F: lora_bias: biases of B are not supported"},
        {R"({"target_modules": ["q"], "layers_to_transform": -1})", "F: layers_to_transform: must hold whole numbers"},
        {R"({"target_modules": "q", "layers_to_transform": 0})", "F: layers_to_transform: needs target_modules"},
        {R"({"target_modules": ["q"], "trainable_token_indices": ["a"]})", "F: trainable_token_indices: must hold"},
        {R"({"target_modules": ["q"], "megatron_config": {"a": 1}})", "F: megatron_config: "},
        {R"({"target_modules": ["q"], "alora_invocation_tokens": [1]})", "F: alora_invocation_tokens: "},
        {R"({"target_modules": ["q"], "task_type": "SEQ_CLS"})", "F: task_type: "},
        {R"({"target_modules": ["q"], "layer_replication": [[0, 1]]})", "F: layer_replication: "},
        {R"({"target_modules": ["q"], "peft_type": "IA3"})", "F: peft_type: \"IA3\" adapters"},
        {R"({"target_modules": ["q"], "init_lora_weights": "PiSSA_niter_4"})", "F: init_lora_weights: with"},
        {R"({"target_modules": ["q"], "init_lora_weights": 4})", "F: init_lora_weights: must be a text"},
        {R"({"target_modules": ["q"], "r": 1, "r": 2})", "F: "},
    };
    for (const auto& [text, message] : table) {
        EXPECT_EQ(configError(text).rfind(message, 0), 0U) << text << " gives: " << configError(text);
    }
    EXPECT_THROW(AdapterNames(AdapterConfig::parse(R"({"target_modules": "(q"})", "F"), "F"), base::BadInput);
    EXPECT_THROW(AdapterNames(parsedConfig(R"("rank_pattern": {"(": 2})"), "F"), base::BadInput);
    EXPECT_THROW(AdapterConfig::read("/no/such/file"), base::BadInput);
}

} // namespace
} // namespace vitrine::engine
