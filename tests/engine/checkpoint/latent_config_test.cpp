// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/latent_config.h"

#include <cmath>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/engine/checkpoint/checkpoint_test_files.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using test::failure;
using testing::HasSubstr;

ModelConfig parseWith(const json& fields, const char* type = "deepseek_v3") {
    json config = fields;
    config["model_type"] = type;
    return parseModelConfig(config, "config.json");
}

std::string refusalOf(const json& fields) {
    return failure([&] { parseWith(fields); });
}

TEST(LatentConfig, MissingKeysTakeTheClassDefaults) {
    for (const char* type : {"deepseek_v3", "kimi_k2"}) {
        const ModelConfig config = parseWith(json::object(), type);
        EXPECT_EQ(config.family, Family::DeepseekV3);
        EXPECT_EQ(config.latent.queryRank, 1536);
        EXPECT_EQ(config.latent.queryDim(), 192);
        EXPECT_EQ(config.latent.upDim(), 256);
        EXPECT_TRUE(config.latent.interleaved);
        EXPECT_EQ(config.headDim, 576);
        EXPECT_EQ(config.kvHeads, 1);
        EXPECT_EQ(config.ropeDim(), 64);
        EXPECT_EQ(config.experts, 256);
        EXPECT_EQ(config.sharedIntermediate, 2048);
        EXPECT_EQ(config.routerGroups, 8);
        EXPECT_EQ(config.routerKeptGroups, 4);
        EXPECT_EQ(config.routerScale, 2.5);
        EXPECT_TRUE(config.routerNormalize);
        EXPECT_FALSE(config.layers[2].moe);
        EXPECT_TRUE(config.layers[3].moe);
        EXPECT_DOUBLE_EQ(config.attentionScale, 1 / std::sqrt(192.0));
    }
    const ModelConfig other = parseWith({{"q_lora_rank", nullptr}, {"n_shared_experts", nullptr}});
    EXPECT_EQ(other.latent.queryRank, 0);
    EXPECT_EQ(other.sharedIntermediate, 0);
}

TEST(LatentConfig, YarnScalesTheScores) {
    const json yarn = {{"type", "yarn"},
                       {"factor", 40},
                       {"original_max_position_embeddings", 4096},
                       {"mscale", 1.0},
                       {"mscale_all_dim", 1.0}};
    const double scale = 0.1 * std::log(40.0) + 1;
    const ModelConfig config = parseWith({{"rope_scaling", yarn}});
    EXPECT_DOUBLE_EQ(config.attentionScale, scale * scale / std::sqrt(192.0));
    EXPECT_DOUBLE_EQ(makeRopeTable(config, 1).attentionScale, 1); // the two scales cancel
    EXPECT_EQ(makeRopeTable(config, 1).inverseFrequency.size(), 32U);
}

TEST(LatentConfig, RefusesWhatItWouldComputeWrongly) {
    EXPECT_THAT(refusalOf({{"scoring_func", "softmax"}}), HasSubstr("scoring_func: \"softmax\" is not supported"));
    EXPECT_THAT(refusalOf({{"topk_method", "greedy"}}), HasSubstr("topk_method: \"greedy\" is not supported"));
    EXPECT_THAT(refusalOf({{"moe_layer_freq", 2}}), HasSubstr("moe_layer_freq: only 1"));
    EXPECT_THAT(refusalOf({{"num_key_value_heads", 8}}), HasSubstr("num_key_value_heads: 8 is not supported"));
    EXPECT_THAT(refusalOf({{"qk_rope_head_dim", 63}}), HasSubstr("qk_rope_head_dim: 63 is odd"));
    EXPECT_THAT(refusalOf({{"kv_lora_rank", 1000}}), HasSubstr("kv_lora_rank: with qk_rope_head_dim it makes 1064"));
    EXPECT_THAT(refusalOf({{"n_group", 7}}), HasSubstr("n_group: 7 does not divide the 256 experts"));
    EXPECT_THAT(refusalOf({{"topk_group", 9}}), HasSubstr("topk_group: 9 of 8 groups"));
    EXPECT_THAT(refusalOf({{"n_group", 256}}), HasSubstr("n_group: groups of one expert"));
    EXPECT_THAT(refusalOf({{"n_group", 128}, {"topk_group", 2}}), HasSubstr("num_experts_per_tok: 8 of the 4 experts"));
    EXPECT_THAT(refusalOf({{"v_head_dim", 1 << 20}}), HasSubstr("v_head_dim: 128 heads of 1048704 elements"));
    EXPECT_THAT(refusalOf({{"n_routed_experts", 8}, {"num_local_experts", 4}}),
                HasSubstr("is 8, but num_local_experts"));
}

} // namespace
} // namespace vitrine::engine
