// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/gptq_rules.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/quant/storage_scheme.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Quantization rulesOf(const std::string& method, json fields) {
    fields["quant_method"] = method;
    return parseQuantization(fields, "config.json");
}

std::string rulesRefusal(const std::string& method, const json& fields) {
    try {
        rulesOf(method, fields);
        return "no error";
    } catch (const base::Error& error) {
        return error.message();
    }
}

TEST(GptqRules, TheFormatHasTwoNames) {
    EXPECT_TRUE(rulesOf("gptq", json::object()).packing.zerosMinusOne);
    EXPECT_FALSE(rulesOf("gptq", {{"format", "gptq_v2"}}).packing.zerosMinusOne);
    EXPECT_FALSE(rulesOf("gptq", {{"format", "GPTQ_V2"}, {"checkpoint_format", "gptq_v2"}}).packing.zerosMinusOne);
    EXPECT_THAT(rulesRefusal("gptq", {{"format", "gptq_v2"}, {"checkpoint_format", "gptq"}}),
                HasSubstr("quantization_config.format: differs from checkpoint_format"));
    EXPECT_THAT(rulesRefusal("gptq", {{"format", "marlin"}}), HasSubstr("quantization_config.format: \"marlin\""));
    EXPECT_THAT(rulesRefusal("gptq", {{"is_marlin_format", true}}), HasSubstr("is_marlin_format"));
    EXPECT_THAT(rulesRefusal("awq", {{"format", "gemv"}}), HasSubstr("format: \"gemv\""));
    EXPECT_EQ(rulesOf("awq", {{"w_bit", 4}, {"q_group_size", 64}}).packing.group, 64);
    EXPECT_THAT(rulesRefusal("awq", {{"group_size", 64}, {"q_group_size", 32}}), HasSubstr("group_size: differs"));
}

TEST(GptqRules, ModulesMayBeLeftOutButNotDiffer) {
    const Quantization rules = rulesOf(
        "gptq", {{"dynamic", {{"-:.*down_proj", json::object()}, {"+:.*up_proj", {{"bits", 4}}}}}, {"bits", 4}});
    EXPECT_FALSE(rules.packs("model.layers.0.mlp.down_proj.weight"));
    EXPECT_TRUE(rules.packs("model.layers.0.mlp.up_proj.weight"));
    EXPECT_THAT(rulesRefusal("gptq", {{"dynamic", {{".*up_proj", {{"bits", 8}}}}}, {"bits", 4}}),
                HasSubstr("dynamic: the rule \".*up_proj\" has another bits"));
    EXPECT_THAT(rulesRefusal("gptq", {{"dynamic", {{".*up_proj", {{"group_size", 32}}}}}}), HasSubstr("group_size"));
    EXPECT_THAT(rulesRefusal("gptq", {{"dynamic", 3}}), HasSubstr("dynamic"));
}

TEST(GptqRules, FieldsThatNothingReadsAreListed) {
    EXPECT_THAT(rulesOf("gptq", {{"damp_percent", 0.1}, {"true_sequential", true}, {"meta", json::object()}}).unread,
                IsEmpty());
    EXPECT_THAT(rulesOf("gptq", {{"new_thing", 1}, {"null_thing", nullptr}}).unread,
                ElementsAre("quantization_config.new_thing"));
    EXPECT_THAT(rulesRefusal("gptq", {{"rotation", "hadamard"}}), HasSubstr("rotation"));
    EXPECT_THAT(rulesRefusal("gptq", {{"pack_dtype", "int64"}}), HasSubstr("pack_dtype"));
    EXPECT_THAT(rulesOf("fp8", {{"activation_scheme", "dynamic"}, {"ignored_layers", {"lm_head"}}}).unread, IsEmpty());
    EXPECT_THAT(rulesOf("fp8", {{"activation_scheme", "static"}}).unread,
                ElementsAre("quantization_config.activation_scheme"));
    const json weights = {{"num_bits", 4}, {"group_size", 32}, {"observer", "minmax"}, {"odd", 1}};
    const json compressed = {{"format", "pack-quantized"},
                             {"kv_cache_scheme", {{"num_bits", 8}}},
                             {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
    EXPECT_THAT(
        rulesOf("compressed-tensors", compressed).unread,
        ElementsAre("quantization_config.kv_cache_scheme", "quantization_config.config_groups.group_0.weights.odd"));
    json rotated = compressed;
    rotated["transform_config"] = {{"config_groups", {{"R1", json::object()}}}};
    EXPECT_THAT(rulesRefusal("compressed-tensors", rotated), HasSubstr("transform_config"));
    json sparse = compressed;
    sparse["sparsity_config"] = {{"format", "sparse-24-bitmask"}};
    EXPECT_THAT(rulesRefusal("compressed-tensors", sparse), HasSubstr("sparsity_config.format"));
}

TEST(GptqRules, PackedBytesOfNf4MayHaveAnotherType) {
    const Quantization halves =
        rulesOf("bitsandbytes",
                {{"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}, {"bnb_4bit_quant_storage", "bfloat16"}});
    const std::array<std::int64_t, 2> shape{6, 128};
    const StoredTensor data = storedTensors(halves.packing, "m.weight", shape).front();
    EXPECT_EQ(data.dtype, kernels::DType::BF16);
    EXPECT_EQ(data.shape, (std::vector<std::int64_t>{192, 1}));
    EXPECT_EQ(data.memoryType, kernels::DType::U8);
    EXPECT_EQ(data.memoryShape, (kernels::Shape{6, 64}));
    EXPECT_THAT(
        rulesRefusal("bitsandbytes",
                     {{"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}, {"bnb_4bit_quant_storage", "int16"}}),
        HasSubstr("bnb_4bit_quant_storage"));
    // Bytes that are no number as BF16 are no damage.
    const std::array<std::uint8_t, 2> bytes{0xFF, 0xFF};
    EXPECT_NO_THROW(checkStoredBytes(
        halves.packing, kernels::WeightField::Data, data.dtype, bytes, [] { return std::string("w"); }, 0));
}

} // namespace
} // namespace vitrine::engine
