// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/storage_scheme.h"

#include <array>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::Shape;
using kernels::WeightField;
using kernels::WeightFormat;
using nlohmann::json;
using Dims = std::vector<std::int64_t>;

std::string refusal(const json& quantization) {
    try {
        parseQuantization(quantization, "config.json");
        return "no error";
    } catch (const base::Error& error) {
        return error.message();
    }
}

json packQuantized(const json& weights) {
    return {{"quant_method", "compressed-tensors"},
            {"format", "pack-quantized"},
            {"ignore", {"lm_head", "re:.*self_attn.*"}},
            {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
}

TEST(StorageScheme, StacksOfGptOssHaveBlocksAndScales) {
    const std::array<std::int64_t, 3> shape{4, 6, 96};
    const std::vector<StoredTensor> tensors = storedTensors(stackPacking(), "w", shape);
    ASSERT_EQ(tensors.size(), 2U);
    EXPECT_EQ(tensors[0].name, "w_blocks");
    EXPECT_EQ(tensors[0].field, WeightField::Data);
    EXPECT_EQ(tensors[0].dtype, DType::U8);
    EXPECT_EQ(tensors[0].shape, (Dims{4, 6, 3, 16}));
    EXPECT_EQ(tensors[1].name, "w_scales");
    EXPECT_EQ(tensors[1].field, WeightField::Scales);
    EXPECT_EQ(tensors[1].shape, (Dims{4, 6, 3}));
}

TEST(StorageScheme, CompressedTensorsOfAnAsymmetricWeight) {
    const Quantization quantization = parseQuantization(packQuantized({{"num_bits", 4},
                                                                       {"type", "int"},
                                                                       {"symmetric", false},
                                                                       {"strategy", "group"},
                                                                       {"group_size", 32},
                                                                       {"actorder", "group"}}),
                                                        "config.json");
    EXPECT_EQ(quantization.packing.format, WeightFormat::Int4);
    EXPECT_EQ(quantization.packing.group, 32);
    EXPECT_TRUE(quantization.packing.zeros && quantization.packing.ordered);
    EXPECT_FALSE(quantization.packs("lm_head.weight"));
    EXPECT_FALSE(quantization.packs("model.layers.3.self_attn.q_proj.weight"));
    EXPECT_TRUE(quantization.packs("model.layers.3.mlp.up_proj.weight"));
    const std::array<std::int64_t, 2> shape{20, 64};
    const std::vector<StoredTensor> tensors = storedTensors(quantization.packing, "m.up_proj.weight", shape);
    ASSERT_EQ(tensors.size(), 4U);
    EXPECT_EQ(tensors[0].name, "m.up_proj.weight_packed");
    EXPECT_EQ(tensors[0].shape, (Dims{20, 8}));
    EXPECT_EQ(tensors[0].memoryShape, (Shape{20, 32}));
    EXPECT_FALSE(tensors[0].converts);
    EXPECT_EQ(tensors[1].name, "m.up_proj.weight_scale");
    EXPECT_EQ(tensors[1].shape, (Dims{20, 2}));
    EXPECT_EQ(tensors[2].name, "m.up_proj.weight_zero_point");
    EXPECT_EQ(tensors[2].shape, (Dims{3, 2})) << "eight outputs in a word, the last not full";
    EXPECT_TRUE(tensors[2].converts);
    EXPECT_EQ(tensors[3].name, "m.up_proj.weight_g_idx");
    EXPECT_EQ(sideTensorNames(quantization.packing, "m.up_proj.weight"),
              std::vector<std::string>{"m.up_proj.weight_shape"});
}

TEST(StorageScheme, GptqAndAwqHaveTheirAxesTheOtherWay) {
    const std::array<std::int64_t, 2> shape{16, 64};
    const Quantization gptq = parseQuantization(
        {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"desc_act", true}}, "config.json");
    EXPECT_TRUE(gptq.packing.zerosMinusOne);
    const std::vector<StoredTensor> columns = storedTensors(gptq.packing, "m.weight", shape);
    ASSERT_EQ(columns.size(), 4U);
    EXPECT_EQ(columns[0].name, "m.qweight");
    EXPECT_EQ(columns[0].shape, (Dims{8, 16}));
    EXPECT_EQ(columns[1].shape, (Dims{2, 2}));
    EXPECT_EQ(columns[2].shape, (Dims{2, 16}));
    EXPECT_EQ(columns[3].name, "m.g_idx");
    EXPECT_FALSE(
        parseQuantization({{"quant_method", "gptq"}, {"checkpoint_format", "gptq_v2"}}, "c").packing.zerosMinusOne);
    const Quantization awq = parseQuantization({{"quant_method", "awq"}, {"version", "GEMM"}, {"group_size", 64}}, "c");
    const std::vector<StoredTensor> rows = storedTensors(awq.packing, "m.weight", shape);
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(rows[0].shape, (Dims{64, 2}));
    EXPECT_EQ(rows[0].memoryShape, (Shape{16, 32}));
}

TEST(StorageScheme, Fp8SaysByItsScalesWhatTheyCover) {
    const Quantization declared = parseQuantization({{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}, "c");
    const std::array<std::int64_t, 2> shape{200, 300};
    const auto packing = [&](const std::string& name, const Dims& scales) {
        const TensorLookup files{[=](const std::string& asked) { return asked == "m.weight" || asked == name; },
                                 [=](const std::string&) { return scales; },
                                 {}};
        return packingInFile("m.weight", shape, &declared, files);
    };
    EXPECT_EQ(packing("other", {}), std::nullopt) << "no scales: the weight is dense";
    EXPECT_EQ(storedTensors(*packing("m.weight_scale_inv", {2, 3}), "m.weight", shape)[1].shape, (Dims{2, 3}));
    EXPECT_EQ(storedTensors(*packing("m.weight_scale", {200, 1}), "m.weight", shape)[1].shape, (Dims{200, 1}));
    EXPECT_EQ(storedTensors(*packing("m.weight_scale", {}), "m.weight", shape)[1].shape, (Dims{1, 1}));
}

TEST(StorageScheme, WhatIsNotSupportedIsRefusedByField) {
    const std::string start = "config.json: quantization_config.";
    EXPECT_EQ(refusal({{"quant_method", "aqlm"}}).find(start + "quant_method: \"aqlm\""), 0U);
    EXPECT_EQ(refusal({{"quant_method", "gptq"}, {"bits", 3}}).find(start + "bits"), 0U);
    EXPECT_EQ(refusal({{"quant_method", "gptq"}, {"group_size", 7}}).find(start + "group_size"), 0U);
    EXPECT_EQ(refusal({{"quant_method", "awq"}, {"version", "gemv"}}).find(start + "version"), 0U);
    EXPECT_EQ(refusal({{"quant_method", "fp8"}, {"fmt", "e5m2"}}).find(start + "fmt"), 0U);
    EXPECT_EQ(refusal({{"quant_method", "fp8"}, {"weight_block_size", {64, 64}}}).find(start + "weight_block_size"),
              0U);
    EXPECT_EQ(refusal(packQuantized({{"num_bits", 3}})).find(start + "config_groups.group_0.weights.num_bits"), 0U);
    EXPECT_EQ(refusal(packQuantized({{"strategy", 5}})).find(start + "config_groups.group_0.weights.strategy"), 0U);
    EXPECT_EQ(refusal(packQuantized(json::array())).find("config.json: "), 0U);
    EXPECT_EQ(refusal({{"quant_method", 4}}).find(start + "quant_method"), 0U);
    EXPECT_EQ(refusal(json::array()).find("config.json: quantization_config"), 0U);
}

TEST(StorageScheme, TextsOfAFileDoNotBreakTheLineOfAnError) {
    const std::string broken = "two\nlines";
    for (const json& config :
         {json{{"quant_method", broken}}, json{{"quant_method", "awq"}, {"version", broken}},
          json{{"quant_method", "gptq"}, {"checkpoint_format", broken}},
          json{{"quant_method", "compressed-tensors"}, {"format", broken}}, packQuantized({{"type", broken}}),
          packQuantized({{"strategy", broken}}),
          json{{"quant_method", "compressed-tensors"}, {"config_groups", {{broken, json::object()}}}}}) {
        EXPECT_NE(refusal(config).find("\"two\\nlines\""), std::string::npos) << refusal(config);
        EXPECT_EQ(refusal(config).find('\n'), std::string::npos) << config;
    }
}

TEST(StorageScheme, NumbersBeyond63BitsAreRefused) {
    // As a signed number it would be -1: whole rows.
    const json config{{"quant_method", "gptq"}, {"group_size", 18446744073709551615ULL}};
    EXPECT_EQ(refusal(config).find("config.json: quantization_config.group_size: must be a whole number"), 0U);
}

TEST(StorageScheme, AwqSaysWhichAxisDoesNotFit) {
    const Quantization awq = parseQuantization({{"quant_method", "awq"}}, "c");
    const std::array<std::int64_t, 2> shape{16, 63};
    try {
        storedTensors(awq.packing, "m.weight", shape);
        FAIL() << "an odd number of inputs was accepted";
    } catch (const base::Unsupported& error) {
        EXPECT_NE(error.message().find("an even number of inputs, and there are 16 and 63"), std::string::npos);
    }
}

TEST(StorageScheme, WrittenConfigsAreReadAgain) {
    for (const json& config :
         {packQuantized({{"num_bits", 8}, {"symmetric", false}, {"strategy", "group"}, {"group_size", 64}}),
          packQuantized({{"num_bits", 4}, {"strategy", "channel"}}),
          json{{"quant_method", "gptq"}, {"bits", 8}, {"group_size", 64}, {"checkpoint_format", "gptq_v2"}},
          json{{"quant_method", "awq"}, {"group_size", -1}},
          json{{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}, json{{"quant_method", "mxfp4"}},
          json{{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}}}) {
        const Quantization first = parseQuantization(config, "c");
        EXPECT_EQ(parseQuantization(quantizationConfig(first), "c").packing, first.packing) << config;
    }
}

TEST(StorageScheme, OnlyNumbersAreAccepted) {
    std::array<std::uint8_t, 3> bytes{1, 255, 3};
    const auto name = [] { return std::string("FILE: w_scales"); };
    const auto refused = [&](const WeightPacking& packing, WeightField field, DType dtype,
                             std::span<const std::uint8_t> data, std::uint64_t first) {
        try {
            checkStoredBytes(packing, field, dtype, data, name, first);
            return std::string("no error");
        } catch (const base::BadInput& error) {
            return error.message();
        }
    };
    EXPECT_EQ(
        refused(stackPacking(), WeightField::Scales, DType::U8, bytes, 10).find("FILE: w_scales: scale 11 is 255"), 0U);
    EXPECT_EQ(refused(stackPacking(), WeightField::Data, DType::U8, bytes, 0), "no error");
    EXPECT_EQ(refused(WeightPacking{}, WeightField::Data, DType::U8, bytes, 0), "no error");
    WeightPacking fp8;
    fp8.format = WeightFormat::Fp8;
    EXPECT_EQ(refused(fp8, WeightField::Data, DType::F8E4M3, bytes, 4).find("FILE: w_scales: element 5"), 0U);
    WeightPacking int4;
    int4.format = WeightFormat::Int4;
    const std::array<std::uint8_t, 4> infinite{0, 0x3C, 0, 0x7C};
    EXPECT_NE(refused(int4, WeightField::Scales, DType::F16, infinite, 0).find("scale 1 is not finite"),
              std::string::npos);
}

TEST(StorageScheme, AnOrderNamesGroupsThatAreThere) {
    WeightPacking packing;
    packing.format = WeightFormat::Int4;
    packing.group = 32;
    const auto name = [] { return std::string("FILE: g_idx"); };
    const auto check = [&](std::array<std::int32_t, 3> groups, WeightField field) {
        const std::span bytes(reinterpret_cast<const std::uint8_t*>(groups.data()), sizeof groups);
        checkStoredOrder(packing, field, 64, bytes, name, 8);
    };
    EXPECT_NO_THROW(check({0, 1, 0}, WeightField::Order));
    EXPECT_NO_THROW(check({0, 7, 0}, WeightField::Zeros));
    EXPECT_THROW(check({0, -1, 0}, WeightField::Order), base::BadInput);
    try {
        check({0, 1, 2}, WeightField::Order);
        FAIL();
    } catch (const base::BadInput& error) {
        EXPECT_EQ(error.message(), "FILE: g_idx: input 4 is in group 2, and there are 2 groups; the file is damaged");
    }
}

} // namespace
} // namespace vitrine::engine
