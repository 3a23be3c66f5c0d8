// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Models whose weights are integers or FP8, in the layout of each writer: their logits are those of a dense model with
// the values that they unpack to.

#include <cmath>
#include <gtest/gtest.h>

#include "engine/quant/integer_codes.h"
#include "engine/quant/storage_scheme.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/engine/model/packed_linears.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightField;
using kernels::WeightFormat;
using nlohmann::json;
using test::storedAs;
using test::StoredBytes;
using test::StoredTensors;

std::vector<float> integerLogits(const std::string& folder, kernels::Backend backend = kernels::Backend::Cpu,
                                 bool dequantize = false) {
    const auto context = test::makeContext(backend);
    ModelOptions options;
    options.dequantize = dequantize;
    Model model(*context, openModel(folder), options, nullptr);
    return test::stepLogits(model, {5, 9, 200, 31, 77, 5, 12, 140, 8, 8, 17});
}

float farthestLogit(const std::vector<float>& a, const std::vector<float>& b) {
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::abs(a[i] - b[i]));
    }
    return largest;
}

/// A weight with random codes, as kernels read it.
struct RandomPacked {
    std::vector<std::uint8_t> codes, zeros;
    std::vector<float> scales;
    std::vector<std::int32_t> order;
    std::vector<float> values;
};

RandomPacked randomPacked(std::mt19937& random, const WeightPacking& packing, std::int64_t out, std::int64_t in) {
    const int bits = packing.format == WeightFormat::Int4 ? 4 : 8;
    const std::int64_t group = groupOf(packing, in), rowGroup = rowGroupOf(packing, out);
    const std::int64_t groups = (in + group - 1) / group, rows = (out + rowGroup - 1) / rowGroup;
    RandomPacked weight;
    weight.codes.resize(static_cast<std::size_t>(out * in * bits / 8));
    for (std::uint8_t& code : weight.codes) {
        code = static_cast<std::uint8_t>(packing.format == WeightFormat::Fp8 ? random() % 0x60 | (random() & 0x80U)
                                                                             : random());
    }
    const double deviation = packing.format == WeightFormat::Fp8 ? 3 : bits == 4 ? 4.6 : 74;
    std::uniform_real_distribution<float> uniform(0.5F, 1.5F);
    for (std::int64_t i = 0; i < rows * groups; ++i) {
        const double scale = uniform(random) / std::sqrt(static_cast<double>(in)) / deviation;
        weight.scales.push_back(kernels::bf16ToFloat(kernels::floatToBf16(static_cast<float>(scale))));
        weight.zeros.push_back(
            static_cast<std::uint8_t>(packing.zeros ? (1 << (bits - 1)) - 3 + random() % 6 : 1U << (bits - 1)));
    }
    for (std::int64_t i = 0; i < in; ++i) {
        weight.order.push_back(static_cast<std::int32_t>(i / group));
    }
    if (packing.ordered) {
        std::shuffle(weight.order.begin(), weight.order.end(), random);
    }
    for (std::int64_t o = 0; o < out; ++o) {
        for (std::int64_t i = 0; i < in; ++i) {
            const auto at = static_cast<std::size_t>(o / rowGroup * groups + weight.order[static_cast<std::size_t>(i)]);
            const std::uint8_t byte = weight.codes[static_cast<std::size_t>((o * in + i) * bits / 8)];
            const int code = bits == 8 ? byte : i % 2 == 0 ? byte & 15 : byte >> 4;
            const float value = packing.format == WeightFormat::Fp8 ? kernels::e4m3ToFloat(byte)
                                                                    : static_cast<float>(code - weight.zeros[at]);
            weight.values.push_back(value * weight.scales[at]);
        }
    }
    return weight;
}

std::vector<std::uint8_t> bytesOfFloats(const std::vector<float>& values, DType dtype) {
    std::vector<std::uint8_t> out(kernels::bytesOf(dtype, static_cast<std::int64_t>(values.size())));
    kernels::storeFloats(dtype, values.data(), static_cast<std::int64_t>(values.size()), out.data(), 0);
    return out;
}

/// The bytes of a tensor in the file.
std::vector<std::uint8_t> inFile(const WeightPacking& packing, const StoredTensor& tensor, const RandomPacked& weight,
                                 std::int64_t out, std::int64_t in) {
    const int bits = packing.format == WeightFormat::Int4 ? 4 : 8;
    const std::int64_t groups = std::max<std::int64_t>(1, tensor.memoryShape[1]);
    std::vector<std::uint8_t> bytes(kernels::bytesOf(tensor.dtype, kernels::Shape(tensor.shape).count()));
    std::vector<std::uint8_t> scales = bytesOfFloats(weight.scales, DType::BF16);
    ZeroLayout zeros{out, groups, bits};
    switch (tensor.field) {
    case WeightField::Order:
        std::memcpy(bytes.data(), weight.order.data(), bytes.size());
        return bytes;
    case WeightField::Zeros:
        zeros.outputsFirst = packing.scheme == StorageScheme::PackQuantized;
        zeros.order = packing.scheme == StorageScheme::Awq ? kAwqOrder : nullptr;
        zeros.added = packing.zerosMinusOne ? 1 : 0;
        wordsFromZeros(zeros, weight.zeros, bytes);
        return bytes;
    case WeightField::Scales:
        if (!tensor.converts) {
            return scales;
        }
        transposeElements(out, groups, 2, scales, bytes);
        return bytes;
    default:
        if (packing.scheme == StorageScheme::Gptq) {
            inputWordsFromRows({out, in, bits}, weight.codes, bytes);
            return bytes;
        }
        if (packing.scheme == StorageScheme::Awq) {
            outputWordsFromRows({out, in, bits}, weight.codes, bytes);
            return bytes;
        }
        return weight.codes;
    }
}

class IntegerTwins {
public:
    using Overrides = std::map<std::string, std::string>;

    IntegerTwins(const std::string& family, const json& quantization,
                 const Overrides& overrides = {{"num_hidden_layers", "2"}})
        : source_(openModel("synthetic:tiny-" + family, overrides)), quantization_(quantization) {
        const unsigned seed = std::random_device()();
        testing::Test::RecordProperty("seed", std::to_string(seed));
        std::mt19937 random(seed);
        const Quantization rules = parseQuantization(quantization, "config.json");
        for (const TensorSpec& spec : expectedTensors(source_.config)) {
            const bool norm = spec.part == ModelPart::Norm;
            const double deviation = norm ? 0.05 : 1 / std::sqrt(static_cast<double>(spec.shape.back()));
            std::normal_distribution<float> normal(norm ? 1.0F : 0.0F, static_cast<float>(deviation));
            std::vector<float> values(static_cast<std::size_t>(kernels::Shape(spec.shape).count()));
            for (float& value : values) {
                value = normal(random);
            }
            const bool linear = spec.name.ends_with("_proj.weight");
            if (!linear || !rules.packs(spec.name)) {
                packed_[spec.name] = dense_[spec.name] = rounded_[spec.name] = storedAs(DType::F32, spec.shape, values);
                continue;
            }
            WeightPacking packing = rules.packing;
            const std::int64_t out = spec.shape[0], in = spec.shape[1];
            const RandomPacked weight = randomPacked(random, packing, out, in);
            for (const StoredTensor& tensor : storedTensors(packing, spec.name, spec.shape)) {
                packed_[tensor.name] = {tensor.dtype, tensor.shape, inFile(packing, tensor, weight, out, in)};
            }
            for (const SideTensor& side : makeSideTensors(packing, spec.name, spec.shape)) {
                const auto count = static_cast<std::int64_t>(side.bytes.size() / kernels::bytesOf(side.dtype, 1));
                packed_[side.name] = {side.dtype, {count}, side.bytes};
            }
            dense_[spec.name] = storedAs(DType::F32, spec.shape, weight.values);
            rounded_[spec.name] = {DType::BF16, spec.shape, bytesOfFloats(weight.values, DType::BF16)};
            if (spec.name.ends_with(".kv_b_proj.weight")) {
                dense_[spec.name] = rounded_[spec.name]; // expanded at load in any case
            }
        }
    }

    std::string writePacked() { return write(packed_, quantization_); }
    /// The same tensors beside another quantization_config.
    std::string writePackedAs(const json& quantization) { return write(packed_, quantization); }
    std::string writeDense() { return write(dense_, nullptr); }
    /// The packed weights' values as BF16.
    std::string writeRounded() { return write(rounded_, nullptr); }

private:
    std::string write(const StoredTensors& tensors, const json& quantization) {
        return test::writeStored(source_, tensors, quantization, folder_.file(fmt::format("model-{}", ++written_)));
    }

    ModelSource source_;
    json quantization_;
    StoredTensors packed_, dense_, rounded_;
    int written_ = 0;
    test::TempFolder folder_;
};

json ofCompressedTensors(const json& weights, const char* format = "pack-quantized") {
    return {{"quant_method", "compressed-tensors"},
            {"format", format},
            {"ignore", {"lm_head"}},
            {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
}

const std::vector<json>& quantizations() {
    static const std::vector<json> kAll = {
        ofCompressedTensors({{"num_bits", 4}, {"symmetric", true}, {"strategy", "group"}, {"group_size", 32}}),
        ofCompressedTensors({{"num_bits", 4}, {"symmetric", false}, {"strategy", "group"}, {"group_size", 16}}),
        ofCompressedTensors({{"num_bits", 8}, {"symmetric", false}, {"strategy", "channel"}}),
        ofCompressedTensors({{"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}}, "float-quantized"),
        json{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}},
        json{{"quant_method", "gptq"}, {"bits", 8}, {"group_size", -1}, {"checkpoint_format", "gptq_v2"}},
        json{{"quant_method", "awq"}, {"bits", 4}, {"group_size", 16}},
        json{{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}},
    };
    return kAll;
}

TEST(PackedIntegers, GiveTheLogitsOfTheirDenseTwins) {
    for (const json& quantization : quantizations()) {
        SCOPED_TRACE(quantization.dump());
        IntegerTwins twins("llama", quantization);
        const std::string folder = twins.writePacked();
        EXPECT_FALSE(openModel(folder).config.packings.empty());
        EXPECT_LT(farthestLogit(integerLogits(folder), integerLogits(twins.writeDense())), 5e-5F);
    }
}

TEST(PackedIntegers, AnOrderOfInputsIsFollowed) {
    for (const json& quantization :
         {ofCompressedTensors({{"num_bits", 4}, {"strategy", "group"}, {"group_size", 32}, {"actorder", "group"}}),
          json{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"desc_act", true}}}) {
        SCOPED_TRACE(quantization.dump());
        IntegerTwins twins("qwen2", quantization);
        EXPECT_LT(farthestLogit(integerLogits(twins.writePacked()), integerLogits(twins.writeDense())), 5e-5F);
    }
}

TEST(PackedIntegers, TheOrderOfAGptqFileCountsWhateverItsConfigSays) {
    json quantization{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"desc_act", true}};
    IntegerTwins twins("llama", quantization);
    quantization["desc_act"] = false;
    EXPECT_LT(farthestLogit(integerLogits(twins.writePackedAs(quantization)), integerLogits(twins.writeDense())),
              5e-5F);
}

TEST(PackedIntegers, ExpertsBecomeOneStack) {
    for (const json& quantization : quantizations()) {
        const bool blocks = quantization.contains("weight_block_size");
        if (blocks) {
            continue; // the tiny experts are smaller than a block
        }
        SCOPED_TRACE(quantization.dump());
        IntegerTwins twins("qwen3-moe", quantization);
        const std::string folder = twins.writePacked();
        EXPECT_LT(farthestLogit(integerLogits(folder), integerLogits(twins.writeDense())), 5e-5F);
        EXPECT_LT(
            farthestLogit(integerLogits(folder, kernels::Backend::Cpu, true), integerLogits(twins.writeRounded())),
            5e-5F)
            << "expanded to BF16 at load";
    }
}

// As the files of Kimi-K2-Thinking and of DeepSeek-V3 are stored.
TEST(PackedIntegers, LatentAttentionWithPackedExpertsOrAllInBlocks) {
    json experts = ofCompressedTensors({{"num_bits", 4}, {"strategy", "group"}, {"group_size", 32}});
    experts["ignore"] = {"lm_head", "re:.*self_attn.*", "re:.*shared_experts.*",
                         "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"};
    const json blocks{{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
    const IntegerTwins::Overrides sizes{
        {"num_hidden_layers", "2"}, {"hidden_size", "128"}, {"moe_intermediate_size", "128"}};
    for (const json& quantization : {experts, blocks}) {
        SCOPED_TRACE(quantization.dump());
        IntegerTwins twins("deepseek-v3", quantization, sizes);
        const std::string folder = twins.writePacked();
        const ModelConfig config = openModel(folder).config;
        EXPECT_NE(config.packing("model.layers.1.mlp.experts.3.down_proj.weight"), nullptr);
        const bool all = quantization == blocks;
        EXPECT_EQ(config.packing("model.layers.1.mlp.shared_experts.up_proj.weight") != nullptr, all);
        EXPECT_EQ(config.packing("model.layers.0.self_attn.kv_b_proj.weight") != nullptr, all);
        EXPECT_LT(farthestLogit(integerLogits(folder), integerLogits(twins.writeDense())), 5e-5F);
        EXPECT_LT(
            farthestLogit(integerLogits(folder, kernels::Backend::Cpu, true), integerLogits(twins.writeRounded())),
            5e-5F)
            << "expanded to BF16 at load";
    }
}

TEST(PackedIntegers, TakeTheSameMemoryOnMeta) {
    const kernels::DeviceTraits traits = test::testTraits();
    for (const json& quantization : quantizations()) {
        SCOPED_TRACE(quantization.dump());
        IntegerTwins twins("llama", quantization);
        const std::string folder = twins.writePacked();
        const auto lines = [&](kernels::Backend backend, bool dequantize) {
            test::RecordingSink sink;
            const auto context = test::makeContext(backend, &sink, &traits);
            ModelOptions options;
            options.dequantize = dequantize;
            const Model model(*context, openModel(folder), options, nullptr);
            return sink.lines();
        };
        EXPECT_EQ(lines(kernels::Backend::Cpu, false), lines(kernels::Backend::Meta, false));
        EXPECT_EQ(lines(kernels::Backend::Cpu, true), lines(kernels::Backend::Meta, true));
    }
}

TEST(PackedIntegers, SyntheticModelsArePackedByTheirConfig) {
    const std::string text = ofCompressedTensors({{"num_bits", 4}, {"strategy", "group"}, {"group_size", 32}}).dump();
    const ModelSource source = openModel("synthetic:tiny-qwen3-moe", {{"quantization_config", text}});
    EXPECT_NE(source.config.packing("model.layers.0.mlp.experts.3.down_proj.weight"), nullptr);
    EXPECT_EQ(source.config.packing("model.layers.0.mlp.gate.weight"), nullptr);
    const auto context = test::makeContext(kernels::Backend::Cpu);
    const Model model(*context, source, ModelOptions{}, nullptr);
    EXPECT_GT(model.loadReport().residentBytes, 0U);
}

} // namespace
} // namespace vitrine::engine
