// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The seeds of tests/fuzz/packed_weight_fuzz.cpp: each is a whole weight of its scheme, and damage to it is an error.

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

#include "base/error.h"
#include "base/log.h"
#include "engine/quant/gguf.h"
#include "tests/fixture_paths.h"
#include "tests/fuzz/packed_weight_input.h"

namespace vitrine::engine::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes seedBytes(const std::string& name) {
    std::ifstream file(vitrine::test::fixture("packed-weights/" + name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

PackedWeightResult readSeed(const std::string& name) {
    const auto input = packedWeightInput(seedBytes(name));
    EXPECT_TRUE(input) << name;
    return readPackedWeight(input.value());
}

/// Empty, or the message of the error. Other exceptions pass.
std::string refusalOf(const Bytes& bytes) {
    const auto input = packedWeightInput(bytes);
    if (!input) {
        return {};
    }
    try {
        readPackedWeight(*input);
        return {};
    } catch (const base::BadInput& error) {
        return error.message();
    } catch (const base::Unsupported& error) {
        return error.message();
    }
}

struct SeedCase {
    const char* name;
    StorageScheme scheme;
    kernels::WeightFormat format;
    std::int64_t values;
};

constexpr SeedCase kSeeds[] = {
    {"pack-quantized-int4", StorageScheme::PackQuantized, kernels::WeightFormat::Int4, 12 * 64},
    {"pack-quantized-int8", StorageScheme::PackQuantized, kernels::WeightFormat::Int8, 12 * 64},
    {"pack-quantized-int4-asymmetric-actorder", StorageScheme::PackQuantized, kernels::WeightFormat::Int4, 12 * 64},
    {"pack-quantized-int8-asymmetric-expert", StorageScheme::PackQuantized, kernels::WeightFormat::Int8, 12 * 64},
    {"gptq-v1", StorageScheme::Gptq, kernels::WeightFormat::Int4, 16 * 64},
    {"gptq-v1-act-order", StorageScheme::Gptq, kernels::WeightFormat::Int4, 16 * 64},
    {"gptq-v1-int8", StorageScheme::Gptq, kernels::WeightFormat::Int8, 16 * 64},
    {"gptq-v2", StorageScheme::Gptq, kernels::WeightFormat::Int4, 16 * 64},
    {"awq", StorageScheme::Awq, kernels::WeightFormat::Int4, 16 * 64},
    {"fp8-block", StorageScheme::Fp8, kernels::WeightFormat::Fp8, 132 * 130},
    {"fp8-row", StorageScheme::Fp8, kernels::WeightFormat::Fp8, 12 * 64},
    {"fp8-tensor", StorageScheme::Fp8, kernels::WeightFormat::Fp8, 12 * 64},
    {"mxfp4-stack", StorageScheme::GptOss, kernels::WeightFormat::Mxfp4, 2 * 4 * 64},
    {"bitsandbytes-nf4", StorageScheme::BitsAndBytes, kernels::WeightFormat::Nf4, 12 * 64},
    {"bitsandbytes-nf4-double", StorageScheme::BitsAndBytes, kernels::WeightFormat::Nf4, 12 * 64},
};

TEST(PackedWeightSeeds, EachIsAWholeWeight) {
    for (const SeedCase& seed : kSeeds) {
        const PackedWeightResult result = readSeed(seed.name);
        ASSERT_TRUE(result.packing) << seed.name;
        EXPECT_EQ(result.packing->scheme, seed.scheme) << seed.name;
        EXPECT_EQ(result.packing->format, seed.format) << seed.name;
        EXPECT_EQ(result.values, seed.values) << seed.name;
    }
    EXPECT_TRUE(readSeed("pack-quantized-int4-asymmetric-actorder").packing->zeros);
    EXPECT_TRUE(readSeed("pack-quantized-int4-asymmetric-actorder").packing->ordered);
    EXPECT_TRUE(readSeed("gptq-v1-act-order").packing->ordered);
    EXPECT_TRUE(readSeed("gptq-v1").packing->zerosMinusOne);
    EXPECT_FALSE(readSeed("gptq-v2").packing->zerosMinusOne);
    EXPECT_EQ(readSeed("fp8-tensor").packing->rowGroup, kWholeRow);
    EXPECT_EQ(readSeed("fp8-row").packing->rowGroup, 1);
    EXPECT_TRUE(readSeed("bitsandbytes-nf4-double").packing->packedScales);
}

TEST(PackedWeightSeeds, TheListHasEveryFile) {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(vitrine::test::fixture("packed-weights"))) {
        const std::string name = entry.path().filename().string();
        EXPECT_TRUE(std::ranges::any_of(kSeeds, [&](const SeedCase& seed) { return seed.name == name; })) << name;
        ++files;
    }
    EXPECT_EQ(files, std::size(kSeeds));
}

/// Every byte of the text in turn becomes a digit, a quote and a letter: a weight, or an error of one line.
TEST(PackedWeightSeeds, DamagedTextsAreErrorsOfOneLine) {
    const base::LogLevel before = base::logLevel();
    base::setLogLevel(base::LogLevel::Error); // tensors that nobody needs are warnings
    int refused = 0;
    for (const SeedCase& seed : kSeeds) {
        const Bytes whole = seedBytes(seed.name);
        const auto text = static_cast<std::size_t>(std::ranges::find(whole, 0) - whole.begin());
        for (std::size_t at = 0; at < text; ++at) {
            for (const char c : {'0', '9', '"', 'e'}) {
                Bytes damaged = whole;
                damaged[at] = static_cast<std::uint8_t>(c);
                const std::string message = refusalOf(damaged);
                EXPECT_EQ(message.find('\n'), std::string::npos) << message;
                refused += message.empty() ? 0 : 1;
            }
        }
    }
    base::setLogLevel(before);
    EXPECT_GT(refused, 1000);
}

TEST(PackedWeightSeeds, AnEmptyMapIsNoMap) {
    PackedWeightInput input = packedWeightInput(seedBytes("bitsandbytes-nf4")).value();
    auto first = input.contents.begin();
    for (PackedWeightInput::Tensor& tensor : input.tensors) {
        if (tensor.ending == ".weight.quant_map") {
            input.contents.erase(first, first + static_cast<std::ptrdiff_t>(tensor.bytes));
            tensor.shape = {0};
            tensor.bytes = 0;
            break;
        }
        first += static_cast<std::ptrdiff_t>(tensor.bytes);
    }
    try {
        readPackedWeight(input);
        FAIL() << "a weight without its map was accepted";
    } catch (const base::BadInput& error) {
        EXPECT_NE(error.message().find("quant_map: the values are not those of NF4"), std::string::npos)
            << error.message();
    }
}

/// Asking all patterns for all weights would take hours where both are many.
TEST(PackedWeightSeeds, PatternsAreAskedForOneMissingWeight) {
    PackedWeightInput input = packedWeightInput(seedBytes("fp8-tensor")).value();
    input.tensors.clear();
    OneWeightModel model(input.quantization, input.shape);
    const MemoryCheckpoint nothing(fileOf(input, model.weight), {}, model.weight);
    EXPECT_THROW(checkTensors(model.config, nothing), base::BadInput);
    EXPECT_EQ(model.config.packings.size(), 1U);
}

/// GGUF files say with each tensor how it is packed, so nobody knows how a missing one would be.
TEST(PackedWeightSeeds, AMissingWeightOfAGgufFileIsBadInput) {
    PackedWeightInput input = packedWeightInput(seedBytes("fp8-tensor")).value();
    input.tensors.clear();
    OneWeightModel model(input.quantization, input.shape);
    model.config.quantization = ggufQuantization();
    const MemoryCheckpoint nothing(fileOf(input, model.weight), {}, model.weight);
    EXPECT_THROW(checkTensors(model.config, nothing), base::BadInput);
    EXPECT_TRUE(model.config.packings.empty());
}

} // namespace
} // namespace vitrine::engine::test
