// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapters/adapter_tensor_name.h"

#include <gtest/gtest.h>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace vitrine::engine {
namespace {

using Part = AdapterTensorName::Part;

TEST(AdapterTensorName, ReadsAndWritesEveryKind) {
    const std::vector<std::tuple<std::string, std::string, int, Part>> table = {
        {"base_model.model.model.layers.0.mlp.up_proj.lora_A.weight", "model.layers.0.mlp.up_proj", 0, Part::A},
        {"base_model.model.model.layers.0.mlp.experts.base_layer.lora_B.weight", "model.layers.0.mlp.experts", 1,
         Part::B},
        {"base_model.model.m.base_layer.base_layer.lora_A.weight", "m", 2, Part::A},
        {"base_model.model.m.lora_B.bias", "m", 0, Part::BiasOfB},
        {"base_model.model.model.embed_tokens.lora_embedding_A", "model.embed_tokens", 0, Part::EmbeddingA},
        {"base_model.model.model.embed_tokens.lora_embedding_B", "model.embed_tokens", 0, Part::EmbeddingB},
        {"base_model.model.q_proj.lora_magnitude_vector", "q_proj", 0, Part::Magnitude},
        {"base_model.model.lm_head.weight", "lm_head", 0, Part::Whole},
        {"base_model.model.lm_head.base_layer.weight", "lm_head", 1, Part::Whole},
        {"base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta", "model.embed_tokens", 0,
         Part::Rows},
    };
    for (const auto& [text, module, inner, part] : table) {
        const auto name = AdapterTensorName::parse(text);
        ASSERT_TRUE(name.has_value()) << text;
        EXPECT_EQ(name->module, module);
        EXPECT_EQ(name->inner, inner);
        EXPECT_EQ(name->part, part);
        EXPECT_EQ(name->text(), text);
    }
}

TEST(AdapterTensorName, OtherSpellingsMeanTheSame) {
    const std::vector<std::pair<std::string, std::string>> table = {
        {"base_model.model.m.q_proj.lora_A.default.weight", "base_model.model.m.q_proj.lora_A.weight"},
        {"m.q_proj.lora_A.weight", "base_model.model.m.q_proj.lora_A.weight"},
        {"layers.0.q_proj.lora_B.weight", "base_model.model.model.layers.0.q_proj.lora_B.weight"},
        {"module.base_model.model.m.lora_A.x.weight", "base_model.model.m.lora_A.weight"},
        {"_orig_mod.base_model.model.m._fsdp_wrapped_module.q.lora_A.weight", "base_model.model.m.q.lora_A.weight"},
        {"base_model.model.m.lora_embedding_A.default", "base_model.model.m.lora_embedding_A"},
        {"base_model.model.m.lora_magnitude_vector.default.weight", "base_model.model.m.lora_magnitude_vector"},
        {"base_model.model.lm_head.modules_to_save.default.weight", "base_model.model.lm_head.weight"},
        {"base_model.model.mlp.modules_to_save.default.up.weight", "base_model.model.mlp.up.weight"},
        {"embed_tokens.weight", "base_model.model.model.embed_tokens.weight"},
    };
    for (const auto& [spelling, text] : table) {
        const auto name = AdapterTensorName::parse(spelling);
        ASSERT_TRUE(name.has_value()) << spelling;
        EXPECT_EQ(name->text(), text) << spelling;
    }
    EXPECT_EQ(AdapterTensorName::parse("m.lora_A.default.weight")->adapter, "default");
    EXPECT_TRUE(AdapterTensorName::parse("lm_head.modules_to_save.default.weight")->saved);
    EXPECT_EQ(AdapterTensorName::parse("lm_head.original_module.weight")->part, Part::Unused);
}

TEST(AdapterTensorName, NamesWithoutAModuleAreNone) {
    for (const char* text : {"", "base_model.model.", "base_model.model.lora_A.weight", "lora_A.weight", "weight",
                             "base_model.model..lora_A.weight", "m.lora_A.a.b.weight", "m.lora_A.bias"}) {
        EXPECT_FALSE(AdapterTensorName::parse(text).has_value()) << text;
    }
}

} // namespace
} // namespace vitrine::engine
