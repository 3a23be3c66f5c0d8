// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Models whose linears are packed, in the file or while they load.

#include "tests/engine/model/packed_linears.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightFormat;
using test::failure;
using test::PackedTwins;

std::vector<float> logitsOf(const std::string& folder, const ModelOptions& options = {},
                            std::uint64_t* resident = nullptr) {
    const auto context = test::makeContext(kernels::Backend::Cpu);
    Model model(*context, openModel(folder), options, nullptr);
    std::vector<float> logits = test::stepLogits(model, {5, 9, 200, 31, 77, 5, 12, 140, 8, 8, 17});
    if (resident != nullptr) {
        *resident = model.loadReport().residentBytes;
    }
    return logits;
}

float difference(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    float largest = 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        largest = std::max(largest, std::abs(a[i] - b[i]));
    }
    return largest;
}

class PackedLinears : public testing::TestWithParam<std::string> {};

TEST_P(PackedLinears, GiveTheLogitsOfTheirDenseTwins) {
    for (const bool packedScales : {false, true}) {
        PackedTwins twins(GetParam(), packedScales);
        std::uint64_t packed = 0;
        std::uint64_t dense = 0;
        const std::vector<float> logits = logitsOf(twins.writePacked(), {}, &packed);
        EXPECT_LT(difference(logits, logitsOf(twins.writeDense(), {}, &dense)), 2e-5F);
        EXPECT_LT(packed, dense);
    }
}

TEST_P(PackedLinears, ExpandToTheirTwinsInBf16) {
    PackedTwins twins(GetParam(), true, DType::BF16);
    ModelOptions options;
    options.dequantize = true;
    EXPECT_EQ(logitsOf(twins.writePacked(), options), logitsOf(twins.writeDense()));
}

TEST_P(PackedLinears, ArePackedAtLoadAsInAFile) {
    PackedTwins twins(GetParam());
    ModelOptions options;
    options.pack = WeightFormat::Nf4;
    std::uint64_t atLoad = 0;
    std::uint64_t inFile = 0;
    const std::vector<float> logits = logitsOf(twins.writeBefore(), options, &atLoad);
    EXPECT_LT(difference(logits, logitsOf(twins.writePacked(), {}, &inFile)),
              2e-2F); // a weight between two codes may take either
    EXPECT_EQ(atLoad, inFile);
}

TEST_P(PackedLinears, TakeTheSameMemoryOnMeta) {
    PackedTwins twins(GetParam());
    const kernels::DeviceTraits traits = test::testTraits();
    const std::string synthetic = "synthetic:tiny-" + GetParam();
    const auto lines = [&](kernels::Backend backend, const ModelSource& source, WeightFormat pack, bool dequantize) {
        test::RecordingSink sink;
        const auto context = test::makeContext(backend, &sink, &traits);
        ModelOptions options;
        options.pack = pack;
        options.dequantize = dequantize;
        const Model model(*context, source, options, nullptr);
        return sink.lines();
    };
    const auto expectSame = [&](const ModelSource& source, WeightFormat pack, bool dequantize = false) {
        EXPECT_EQ(lines(kernels::Backend::Cpu, source, pack, dequantize),
                  lines(kernels::Backend::Meta, source, pack, dequantize));
    };
    expectSame(openModel(twins.writePacked()), WeightFormat::Dense);
    expectSame(openModel(twins.writePacked()), WeightFormat::Dense, true);
    expectSame(openModel(twins.writeBefore()), WeightFormat::Nf4);
    expectSame(openModel(synthetic, {{"intermediate_size", "192"}}), WeightFormat::Nf4);
}

INSTANTIATE_TEST_SUITE_P(Every, PackedLinears, testing::Values("llama", "mistral", "qwen2", "qwen3", "gemma2"));

TEST(PackedLinearFiles, LinearsThatAreLeftOutStayDense) {
    PackedTwins twins("qwen2");
    const std::string name = "model.layers.1.self_attn.k_proj.weight";
    std::erase_if(twins.packed, [&](const auto& tensor) { return tensor.first.starts_with(name); });
    twins.packed[name] = twins.dense[name];
    EXPECT_LT(difference(logitsOf(twins.writePacked()), logitsOf(twins.writeDense())), 2e-5F);
}

TEST(PackedLinearFiles, ScalesMayBeOneRow) {
    PackedTwins twins("llama", false);
    for (auto& [name, tensor] : twins.packed) {
        if (name.ends_with(".absmax")) {
            tensor.shape.insert(tensor.shape.begin(), 1);
        }
    }
    EXPECT_LT(difference(logitsOf(twins.writePacked()), logitsOf(twins.writeDense())), 2e-5F);
}

TEST(PackedLinearFiles, WhatIsDamagedIsRefusedWithItsName) {
    const std::string name = "model.layers.1.mlp.up_proj.weight";
    const auto expectRefused = [&](const std::string& tensor, const auto& damage) {
        PackedTwins twins("llama");
        damage(twins.packed.at(name + tensor));
        const std::string folder = twins.writePacked();
        const std::string message = failure([&] { logitsOf(folder); });
        EXPECT_TRUE(message.starts_with("bad_input: " + folder) && message.find(name + tensor) != std::string::npos)
            << message;
    };
    const auto flip = [](test::StoredBytes& tensor) { tensor.bytes[7] ^= 0x40U; };
    const auto infinite = [](test::StoredBytes& tensor) {
        const float value = std::numeric_limits<float>::infinity();
        std::memcpy(tensor.bytes.data(), &value, sizeof(value));
    };
    expectRefused(".quant_map", flip);
    expectRefused(".nested_quant_map", flip);
    expectRefused(".nested_absmax", infinite);
    expectRefused(".quant_state.bitsandbytes__nf4", [](test::StoredBytes& tensor) { tensor.bytes[0] = '['; });
    expectRefused(".absmax", [](test::StoredBytes& tensor) {
        tensor.bytes.pop_back();
        --tensor.shape[0];
    });
    expectRefused("", [](test::StoredBytes& tensor) {
        tensor.bytes.resize(tensor.bytes.size() / 2);
        tensor.shape[0] /= 2;
    });
    for (const char* tensor : {".absmax", ".nested_absmax", ".quant_map", ".nested_quant_map"}) {
        PackedTwins twins("llama");
        twins.packed.erase(name + tensor);
        const std::string folder = twins.writePacked();
        EXPECT_NE(failure([&] { openModel(folder); }).find(name + tensor + ": is missing"), std::string::npos);
    }
}

TEST(PackedLinearFiles, OtherSettingsAreUnsupported) {
    for (const auto& [field, value] : std::map<std::string, nlohmann::json>{
             {"load_in_4bit", false}, {"bnb_4bit_quant_type", "fp4"}, {"bnb_4bit_quant_storage", "int16"}}) {
        PackedTwins twins("llama");
        twins.quantization[field] = value;
        const std::string folder = twins.writePacked();
        const std::string message = failure([&] { openModel(folder); });
        EXPECT_NE(message.find("config.json: quantization_config." + field), std::string::npos) << message;
    }
}

TEST(PackedLinearFiles, PackedBytesMayBeStoredUnderAnotherType) {
    for (const auto& [name, dtype] :
         {std::pair{"bfloat16", kernels::DType::BF16}, std::pair{"float16", kernels::DType::F16},
          std::pair{"float32", kernels::DType::F32}}) {
        PackedTwins twins("llama");
        const std::map<std::string, test::StoredBytes> bytes(twins.packed.begin(), twins.packed.end());
        for (auto& [tensor, stored] : twins.packed) {
            if (tensor.ends_with("_proj.weight") && stored.dtype == kernels::DType::U8) {
                stored.dtype = dtype;
                stored.shape[0] /= static_cast<std::int64_t>(kernels::bytesOf(dtype, 1));
            }
        }
        twins.quantization["bnb_4bit_quant_storage"] = name;
        const std::string folder = twins.writePacked();
        const auto context = test::makeContext(kernels::Backend::Cpu);
        const ModelSource source = openModel(folder);
        const Model model(*context, source, ModelOptions{}, nullptr);
        const std::string weight = "model.layers.0.self_attn.q_proj.weight";
        const kernels::WeightView& view = model.decoder().linear(weight)->weight;
        const std::vector<std::uint8_t>& expected = bytes.at(weight).bytes;
        ASSERT_EQ(view.data.bytes(), expected.size()) << name;
        EXPECT_EQ(std::memcmp(view.data.data, expected.data(), expected.size()), 0) << name;
    }
}

TEST(PackedAtLoad, WhatCannotBePackedIsRefused) {
    const auto context = test::makeContext(kernels::Backend::Meta);
    const auto load = [&](const ModelSource& source) {
        ModelOptions options;
        options.pack = WeightFormat::Nf4;
        return failure([&] { const Model model(*context, source, options, nullptr); });
    };
    EXPECT_NE(load(openModel("synthetic:tiny-gpt-oss")).find("stored as MXFP4"), std::string::npos);
    EXPECT_NE(load(openModel("synthetic:tiny-llama")).find("mlp.down_proj.weight: NF4 needs"), std::string::npos);
    PackedTwins twins("llama");
    EXPECT_NE(load(openModel(twins.writePacked())).find("stored as NF4"), std::string::npos);
    auto& tensor = twins.before["model.layers.0.mlp.up_proj.weight"];
    const float value = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(tensor.bytes.data() + 400, &value, sizeof(value));
    ModelOptions options;
    options.pack = WeightFormat::Nf4;
    const std::string folder = twins.writeBefore();
    EXPECT_NE(failure([&] { logitsOf(folder, options); }).find("mlp.up_proj.weight: NF4: a value is not finite"),
              std::string::npos);
}

} // namespace
} // namespace vitrine::engine
