// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/checkpoint/gguf_bytes.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using test::GgufBytes;
using ::testing::HasSubstr;

/// The least metadata of an architecture: four heads of eight elements.
GgufBytes metadataOf(const std::string& arch = "llama") {
    GgufBytes out;
    out.words("general.architecture", arch);
    for (const auto& [name, number] :
         std::initializer_list<std::pair<const char*, std::uint32_t>>{{"embedding_length", 32},
                                                                      {"block_count", 3},
                                                                      {"context_length", 64},
                                                                      {"feed_forward_length", 32},
                                                                      {"attention.head_count", 4},
                                                                      {"rope.dimension_count", 8}}) {
        out.integer(arch + "." + name, number);
    }
    out.value(arch + ".attention.layer_norm_rms_epsilon", GgufValueType::F32, GgufBytes::raw(1e-5F));
    if (arch == "gpt-oss") {
        out.integer("gpt-oss.expert_count", 4)
            .integer("gpt-oss.expert_used_count", 2)
            .integer("gpt-oss.expert_feed_forward_length", 32)
            .integer("gpt-oss.attention.sliding_window", 16);
    }
    out.tensor("token_embd.weight", 0, {4, 32}, std::string(512, '\0'));
    return out;
}

json configOf(const GgufBytes& bytes) {
    const test::TempFolder folder;
    return ggufConfigJson(GgufFile(folder.write("m.gguf", bytes.bytes())));
}

std::string configRefusal(const GgufBytes& bytes) {
    return test::failure([&] { configOf(bytes); });
}

GgufBytes withNumber(const std::string& key, float number) {
    return metadataOf().value("llama." + key, GgufValueType::F32, GgufBytes::raw(number));
}

TEST(GgufConfig, ScalingOfPositionsIsThatOfLlamaCpp) {
    EXPECT_FALSE(configOf(metadataOf()).contains("rope_scaling"));
    const json linear = {{"rope_type", "linear"}, {"factor", 4.0}};
    EXPECT_EQ(configOf(withNumber("rope.scale_linear", 4))["rope_scaling"], linear) << "the name of 2023";
    EXPECT_EQ(configOf(withNumber("rope.scaling.factor", 4))["rope_scaling"], linear) << "without a type";
    EXPECT_EQ(configOf(withNumber("rope.scaling.factor", 4)
                           .value("llama.rope.scale_linear", GgufValueType::F32, GgufBytes::raw(2.0F)))["rope_scaling"],
              linear)
        << "the new name counts";
    EXPECT_FALSE(configOf(withNumber("rope.scaling.factor", 0)).contains("rope_scaling")) << "0 is none";
    EXPECT_FALSE(configOf(metadataOf().words("llama.rope.scaling.type", "linear")).contains("rope_scaling"));
    EXPECT_FALSE(configOf(withNumber("rope.scaling.factor", 4).words("llama.rope.scaling.type", "none"))
                     .contains("rope_scaling"));
    const json yarn =
        configOf(withNumber("rope.scaling.factor", 4).words("llama.rope.scaling.type", "yarn"))["rope_scaling"];
    EXPECT_EQ(yarn["rope_type"], "yarn");
    EXPECT_FALSE(yarn.contains("attention_factor"));
    const json stronger = configOf(
        withNumber("rope.scaling.factor", 4)
            .words("llama.rope.scaling.type", "yarn")
            .value("llama.rope.scaling.attn_factor", GgufValueType::F32, GgufBytes::raw(0.5F)))["rope_scaling"];
    EXPECT_NEAR(stronger["attention_factor"].get<double>(), 0.5 * (1 + 0.1 * std::log(4.0)), 1e-12);
    EXPECT_THAT(configRefusal(metadataOf().words("llama.rope.scaling.type", "longrope")), HasSubstr("longrope"));
    EXPECT_THAT(configRefusal(withNumber("rope.scaling.attn_factor", 2)), HasSubstr("only with yarn"));
}

TEST(GgufConfig, HeadsDivideTheEmbeddingWhereNoLengthIsGiven) {
    EXPECT_EQ(configOf(metadataOf("qwen3"))["head_dim"], 8) << "and not the 128 that config.json would mean";
}

TEST(GgufConfig, AKeyThatWouldChangeTheNumbersIsRefused) {
    for (const char* key : {"logit_scale", "residual_scale", "embedding_scale", "attention.scale",
                            "attn_logit_softcapping", "final_logit_softcapping", "attention.clamp_kqv",
                            "attention.max_alibi_bias", "rope.freq_base_swa", "expert_weights_scale"}) {
        EXPECT_THAT(configRefusal(withNumber(key, 0.5F)), HasSubstr(std::string(": llama.") + key + ": is 0.5"));
    }
    const std::string no(1, '\0');
    EXPECT_THAT(configRefusal(metadataOf().value("llama.attention.causal", GgufValueType::Bool, no)),
                HasSubstr("llama.attention.causal: is 0"));
    EXPECT_THAT(configRefusal(metadataOf("qwen2").integer("qwen2.attention.sliding_window", 16)),
                HasSubstr("qwen2.attention.sliding_window: is 16"));
    EXPECT_THAT(configRefusal(metadataOf("qwen3").integer("qwen3.expert_count", 8)), HasSubstr("qwen3.expert_count"));
    EXPECT_EQ(configRefusal(withNumber("attention.scale", static_cast<float>(1 / std::sqrt(8.0)))), "no error");
    EXPECT_EQ(configRefusal(withNumber("logit_scale", 1)), "no error");
    EXPECT_EQ(configRefusal(withNumber("final_logit_softcapping", 0)), "no error");
}

TEST(GgufConfig, WhatIsNotKnownIsNamedOnce) {
    std::string warnings;
    base::setLogSink([&](base::LogLevel, std::string_view text) { warnings += std::string(text) + "\n"; });
    configOf(metadataOf().words("general.author", "x").integer("llama.novel", 1).integer("odd.key", 2));
    base::setLogSink({});
    EXPECT_THAT(warnings, HasSubstr("not used: \"llama.novel\", \"odd.key\"; where another program uses one of them, "
                                    "its answers may differ\n"));
    EXPECT_EQ(std::ranges::count(warnings, '\n'), 1);
}

TEST(GgufConfig, WindowsMayHaveAnotherPattern) {
    const std::string w = "sliding_attention", f = "full_attention";
    EXPECT_EQ(configOf(metadataOf("gpt-oss"))["layer_types"], json({w, f, w}));
    const std::string key = "gpt-oss.attention.sliding_window_pattern";
    EXPECT_EQ(configOf(metadataOf("gpt-oss").integer(key, 3))["layer_types"], json({w, w, f}));
    const std::string list =
        GgufBytes::raw(static_cast<std::uint32_t>(GgufValueType::Bool)) + GgufBytes::raw(std::uint64_t{3});
    EXPECT_EQ(configOf(metadataOf("gpt-oss").value(key, GgufValueType::Array,
                                                   list + std::string("\0\1\1", 3)))["layer_types"],
              json({f, w, w}));
}

} // namespace
} // namespace vitrine::engine
