// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Logits and greedy continuations of every reference model against transformers' (tests/fixtures/README.md).

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/generation/generator.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using test::fixture;
using test::readTensor;

constexpr double kTolerance = 2e-3; ///< of the spread of the expected logits

double spreadOf(const std::vector<float>& values) {
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    double sum = 0;
    for (const float value : values) {
        sum += (value - mean) * (value - mean);
    }
    return std::sqrt(sum / static_cast<double>(values.size()));
}

double largestDifference(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
        largest = std::isfinite(difference) ? std::max(largest, difference) : 1e30;
    }
    return largest;
}

struct Loaded {
    std::unique_ptr<kernels::Context> context;
    std::unique_ptr<Model> model;
    ModelSource source;
};

Loaded loadFolder(const std::string& folder, bool dequantize = false) {
    Loaded out;
    out.context = test::makeContext(kernels::Backend::Cpu);
    out.source = openModel(folder);
    out.model =
        std::make_unique<Model>(*out.context, out.source, ModelOptions{dequantize, kernels::DType::F32}, nullptr);
    return out;
}

Loaded load(const std::string& name, bool dequantize = false) {
    return loadFolder(fixture(name), dequantize);
}

KvCacheOptions floatCache() {
    KvCacheOptions options;
    options.dtype = kernels::DType::F32;
    options.pageTokens = 5; // small and odd: every test crosses pages
    return options;
}

/// Logits of all rows, each fed in pieces of `chunk` tokens.
std::vector<float> forward(Loaded& loaded, const std::vector<std::int32_t>& ids, std::size_t length,
                           std::size_t chunk) {
    const auto vocab = static_cast<std::size_t>(loaded.source.config.vocab);
    const std::size_t rows = ids.size() / length;
    std::vector<float> logits(ids.size() * vocab);
    KvCache cache(*loaded.context, loaded.source.config, floatCache());
    std::vector<int> sequences;
    for (std::size_t row = 0; row < rows; ++row) {
        sequences.push_back(cache.addSequence());
    }
    for (std::size_t begin = 0; begin < length; begin += chunk) {
        const std::size_t count = std::min(chunk, length - begin);
        std::vector<float> piece(rows * count * vocab);
        StepBatch batch;
        batch.logits = StepLogits::All;
        batch.logitsOut = piece.data();
        for (std::size_t row = 0; row < rows; ++row) {
            batch.sequences.push_back(
                {sequences[row], {ids.data() + row * length + begin, count}, true, static_cast<std::int64_t>(length)});
        }
        loaded.model->step(batch, cache);
        for (std::size_t row = 0; row < rows; ++row) {
            std::copy_n(piece.begin() + static_cast<std::ptrdiff_t>(row * count * vocab), count * vocab,
                        logits.begin() + static_cast<std::ptrdiff_t>((row * length + begin) * vocab));
        }
    }
    return logits;
}

std::vector<std::int32_t> inputIds(const std::string& name) {
    return test::readIds(fixture(name) + "/expected.safetensors", "input_ids");
}

class ModelFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(ModelFixture, LogitsAgreeWithTransformers) {
    const auto expected = readTensor<float>(fixture(GetParam()) + "/expected.safetensors", "logits");
    Loaded loaded = load(GetParam());
    const auto logits = forward(loaded, inputIds(GetParam()), 24, 24);
    ASSERT_EQ(logits.size(), expected.size());
    EXPECT_LE(largestDifference(logits, expected), kTolerance * spreadOf(expected));
}

TEST_P(ModelFixture, FedInPiecesAgreesToo) {
    const auto expected = readTensor<float>(fixture(GetParam()) + "/expected.safetensors", "logits");
    Loaded loaded = load(GetParam());
    for (const std::size_t chunk : {1U, 7U, 11U}) {
        const auto logits = forward(loaded, inputIds(GetParam()), 24, chunk);
        EXPECT_LE(largestDifference(logits, expected), kTolerance * spreadOf(expected)) << "chunks of " << chunk;
    }
}

TEST_P(ModelFixture, GreedyContinuationAgrees) {
    if (GetParam() == "llama-dynamic-rope") {
        return; // keys cached under a shorter length keep its frequencies; the reference ran without a cache
    }
    const std::string path = fixture(GetParam()) + "/expected.safetensors";
    const auto greedy = test::readIds(path, "greedy_ids");
    const auto greedyLogits = readTensor<float>(path, "greedy_logits");
    const double error = kTolerance * spreadOf(greedyLogits);
    Loaded loaded = load(GetParam());
    GenerateOptions options;
    options.cache = floatCache();
    Generator generator(*loaded.model, nullptr, options);
    GenerateRequest request;
    request.prompt.assign(greedy.begin(), greedy.begin() + 24);
    request.maxNewTokens = 24;
    request.forbidden = loaded.source.config.eosTokens;
    GenerateReport report;
    generator.run({request}, report, {});
    ASSERT_EQ(report.results[0].ids.size(), 24U);
    const auto vocab = static_cast<std::size_t>(loaded.source.config.vocab);
    for (std::size_t i = 0; i < 24; ++i) {
        std::vector<float> row(greedyLogits.begin() + static_cast<std::ptrdiff_t>((23 + i) * vocab),
                               greedyLogits.begin() + static_cast<std::ptrdiff_t>((24 + i) * vocab));
        std::partial_sort(row.begin(), row.begin() + 2, row.end(), std::greater<>());
        if (row[0] - row[1] <= error) {
            break; // the reference itself is undecided; what follows may differ
        }
        EXPECT_EQ(report.results[0].ids[i], greedy[24 + i]) << "new token " << i;
    }
}

TEST_P(ModelFixture, OpsStayInsideTheirTensors) {
    kernels::ContextOptions options;
    options.threads = 2;
    options.memory.guardBytes = true;
    kernels::Context context(options);
    // Room for the guards, which the dry run of a step does not know.
    context.memory().step().ensureCapacity(std::uint64_t{64} << 20);
    const ModelSource source = openModel(fixture(GetParam()));
    Model model(context, source, ModelOptions{}, nullptr);
    GenerateOptions generate;
    generate.cache = floatCache();
    generate.prefillChunk = 13;
    generate.topLogprobs = 3;
    std::vector<GenerateRequest> requests(3);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].prompt.assign(3 + 14 * i, static_cast<std::int32_t>(i + 1));
        requests[i].maxNewTokens = 6;
        requests[i].sampling.temperature = i == 1 ? 1.0F : 0.0F;
        requests[i].sampling.topP = 0.9F;
        requests[i].sampling.repetitionPenalty = 1.1F;
    }
    GenerateReport report;
    Generator(model, nullptr, generate).run(requests, report, {});
    EXPECT_EQ(context.memory().guardViolations(), 0U);
}

std::string fixtureName(const ::testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Every, ModelFixture, ::testing::ValuesIn(test::modelFixtures()), fixtureName);

TEST(ModelRope, LongRopeTakesShortFactorsForSequencesThatFit) {
    const std::string path = fixture("llama-longrope") + "/expected.safetensors";
    const auto ids = test::readIds(path, "short_ids");
    const auto expected = readTensor<float>(path, "short_logits");
    Loaded loaded = load("llama-longrope");
    for (const std::size_t chunk : {16U, 5U}) {
        const auto logits = forward(loaded, ids, 16, chunk);
        EXPECT_LE(largestDifference(logits, expected), kTolerance * spreadOf(expected)) << "chunks of " << chunk;
    }
}

TEST(ModelFormats, ZerosOfGptqVersion2AreStoredAsTheyAre) {
    const std::string folder = fixture("gptq-v2");
    const auto expected = readTensor<float>(folder + "/expected.safetensors", "logits");
    Loaded loaded = loadFolder(folder);
    const auto ids = test::readIds(folder + "/tokens.safetensors", "input_ids");
    const auto logits = forward(loaded, ids, ids.size(), ids.size());
    ASSERT_EQ(logits.size(), expected.size());
    EXPECT_LE(largestDifference(logits, expected), 1e-2);
}

TEST(ModelRope, DynamicFrequenciesAreThoseOfTheWholePromptInEveryPiece) {
    const std::vector<std::int32_t> ids = inputIds("llama-dynamic-rope");
    Loaded loaded = load("llama-dynamic-rope");
    GenerateOptions options;
    options.cache = floatCache();
    GenerateRequest longer;
    longer.prompt.assign(ids.begin(), ids.begin() + 24);
    longer.maxNewTokens = 4;
    GenerateRequest shorter = longer;
    shorter.prompt.resize(20);
    GenerateReport whole;
    Generator(*loaded.model, nullptr, options).run({longer}, whole, {});
    for (const std::int64_t chunk : {5, 24}) {
        // The second prompt's first piece shares a step with the end of the first one.
        options.prefillChunk = chunk;
        GenerateReport pieces;
        Generator(*loaded.model, nullptr, options).run({shorter, longer}, pieces, {});
        EXPECT_EQ(pieces.results[1].ids, whole.results[0].ids) << "chunks of " << chunk;
    }
}

/// A copy of a fixture as transformers would have saved its base model: names without "model.", perhaps no head.
void copyAsBaseModel(const std::string& name, const test::TempFolder& to, bool dropHead) {
    test::copyFixture(name, to);
    const std::string bytes = test::readBytes(to.file("model.safetensors"));
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    const auto header = nlohmann::ordered_json::parse(bytes.substr(8, length));
    nlohmann::ordered_json renamed = nlohmann::ordered_json::object();
    for (const auto& [key, value] : header.items()) {
        const bool head = dropHead && key == "lm_head.weight"; // its bytes stay: the format allows no holes
        renamed[head ? "other.weight" : key.starts_with("model.") ? key.substr(6) : key] = value;
    }
    to.write("model.safetensors", test::safetensorsBytes(renamed.dump(), 0) + bytes.substr(8 + length));
}

TEST(ModelWeights, NamesOfABaseModelLoad) {
    for (const char* name : {"qwen3-tied", "llama", "gpt-oss-mxfp4", "qwen3-moe"}) {
        const test::TempFolder folder;
        copyAsBaseModel(name, folder, false);
        Loaded loaded = loadFolder(folder.path());
        const auto expected = readTensor<float>(fixture(name) + "/expected.safetensors", "logits");
        const auto logits = forward(loaded, inputIds(name), 24, 24);
        EXPECT_LE(largestDifference(logits, expected), kTolerance * spreadOf(expected)) << name;
    }
    const test::TempFolder headless;
    copyAsBaseModel("llama", headless, true);
    const std::string message = test::failure([&] { openModel(headless.path()); });
    EXPECT_NE(message.find("lm_head.weight: is missing"), std::string::npos) << message;
}

TEST(ModelWeights, QuantizedAndDequantizedAgree) {
    const std::vector<std::int32_t> ids = inputIds("gpt-oss-mxfp4");
    Loaded quantized = load("gpt-oss-mxfp4");
    Loaded dequantized = load("gpt-oss-mxfp4", true);
    const auto a = forward(quantized, ids, 24, 24);
    const auto b = forward(dequantized, ids, 24, 24);
    EXPECT_LE(largestDifference(a, b), 1e-4 * spreadOf(b));
    EXPECT_LT(quantized.model->loadReport().residentBytes, dequantized.model->loadReport().residentBytes);
    EXPECT_EQ(quantized.model->loadReport().bytesRead, dequantized.model->loadReport().bytesRead);
}

} // namespace
} // namespace vitrine::engine
