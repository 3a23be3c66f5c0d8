// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Losses and gradients as PyTorch, transformers and PEFT give them, and the same with every memory technique.

#include "engine/training/passes/gradient_pass.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

using test::fixture;
using test::PassRunner;
using test::relativeError;
using test::threeDocuments;
using test::TrainedModel;

constexpr double kTolerance = 1e-4;

TEST(GradientPass, FullFineTuningGivesTheReferencesGradientsAndLosses) {
    TrainedModel trained("gpt-oss-bf16");
    OptimizerOptions options;
    options.weightDecay = 0;
    TrainedState state(*trained.context, test::allTensors(*trained.model), options);
    PassRunner runner(trained, state);
    const TrainingBatch batch = test::batchOf(fixture("gpt-oss-full-ft/batch.safetensors"), 40);
    const std::vector<double> losses = test::numbersOf(fixture("gpt-oss-full-ft/losses.json"), "loss");
    for (std::size_t step = 0; step < losses.size(); ++step) {
        EXPECT_NEAR(runner.gradients(batch), losses[step], kTolerance) << step;
        if (step == 0) {
            for (const TrainedTensor& tensor : state.tensors()) {
                const auto expected =
                    test::readTensor<float>(fixture("gpt-oss-full-ft/grads-step0.safetensors"), tensor.name);
                EXPECT_LT(relativeError(test::gradientOf(*trained.context, state, tensor), expected), kTolerance)
                    << tensor.name;
            }
        }
        runner.update(1e-3, static_cast<std::int64_t>(step) + 1);
    }
}

/// "model.layers.0.mlp.up_proj.weight.lora_A" to the name in PEFT's files.
std::string peftName(const std::string& name) {
    return "base_model.model." + std::regex_replace(name, std::regex("\\.weight\\.(lora_[AB])"), ".$1.weight");
}

/// The same to the name in the file of gradients.
std::string gradientName(const std::string& name) {
    const std::string inFile = std::regex_replace(peftName(name), std::regex("(lora_[AB])"), "$1.default");
    return std::regex_replace(inFile, std::regex("\\."), "/");
}

TEST(GradientPass, AnAdapterGivesTheReferencesGradientsAndLosses) {
    TrainedModel trained("llama");
    AdapterConfig config;
    config.rank = 4;
    config.alpha = 8;
    Adapter adapter(*trained.model,
                    adapterTargets(trained.model->parameters(), ParameterChoice("all-linear", "train"), config));
    adapter.read(AdapterFile::open(fixture("llama-lora/adapter-start")));
    TrainedState state(*trained.context, adapter.tensors(), {});
    PassRunner runner(trained, state);
    const TrainingBatch batch = test::batchOf(fixture("llama-lora/batch.safetensors"), 40);
    const std::vector<double> losses = test::numbersOf(fixture("llama-lora/losses.json"), "loss");
    const std::vector<double> norms = test::numbersOf(fixture("llama-lora/losses.json"), "grad_norm");
    for (std::size_t step = 0; step < losses.size(); ++step) {
        EXPECT_NEAR(runner.gradients(batch), losses[step], kTolerance) << step;
        if (step == 0) {
            for (const TrainedTensor& tensor : state.tensors()) {
                const auto expected =
                    test::readTensor<float>(fixture("llama-lora/grads-step0.safetensors"), gradientName(tensor.name));
                EXPECT_LT(relativeError(test::gradientOf(*trained.context, state, tensor), expected), kTolerance)
                    << tensor.name;
            }
        }
        EXPECT_NEAR(runner.update(1e-3, static_cast<std::int64_t>(step) + 1), norms[step], kTolerance) << step;
    }
    for (const TrainedTensor& tensor : state.tensors()) {
        const auto expected =
            test::readTensor<float>(fixture("llama-lora/adapter-end/adapter_model.safetensors"), peftName(tensor.name));
        EXPECT_LT(relativeError(downloadFloats(*trained.context, tensor.value), expected), 1e-3) << tensor.name;
    }
}

class EveryFamily : public testing::TestWithParam<std::string> {};

std::vector<TrainedTensor> trainable(const Model& model) {
    std::vector<TrainedTensor> out = test::allTensors(model);
    EXPECT_FALSE(out.empty());
    return out;
}

std::vector<std::vector<float>> allGradients(kernels::Context& context, const TrainedState& state) {
    std::vector<std::vector<float>> out;
    for (const TrainedTensor& tensor : state.tensors()) {
        out.push_back(test::gradientOf(context, state, tensor));
    }
    return out;
}

TEST_P(EveryFamily, TheTrainingForwardGivesTheLogitsOfInference) {
    TrainedModel trained(GetParam());
    TrainedState state(*trained.context, trainable(*trained.model), {});
    PassRunner runner(trained, state);
    const TrainingBatch batch = threeDocuments();
    // The loss of inference's logits, document by document.
    double sum = 0;
    std::size_t begin = 0;
    const auto vocab = static_cast<std::size_t>(trained.model->config().vocab);
    for (const std::int32_t length : batch.lengths) {
        StepBatch step;
        step.sequences = {{0, std::span(batch.tokens).subspan(begin, static_cast<std::size_t>(length))}};
        step.logits = StepLogits::All;
        std::vector<float> logits(vocab * static_cast<std::size_t>(length));
        step.logitsOut = logits.data();
        trained.model->step(step);
        for (std::size_t t = 0; t + 1 < static_cast<std::size_t>(length); ++t) {
            const std::span row = std::span(logits).subspan(t * vocab, vocab);
            double weights = 0;
            for (const float value : row) {
                weights += std::exp(static_cast<double>(value));
            }
            const auto target = static_cast<std::size_t>(batch.targets[begin + t]);
            sum += std::log(weights) - static_cast<double>(row[target]);
        }
        begin += static_cast<std::size_t>(length);
    }
    EXPECT_NEAR(runner.loss(batch), sum / static_cast<double>(batch.predicted()), 1e-6);
}

TEST_P(EveryFamily, LossAndGradientsAreThoseOfTransformers) {
    if (GetParam() == "gpt-oss-mxfp4") {
        GTEST_SKIP() << "transformers does not train packed weights";
    }
    TrainedModel trained(GetParam());
    test::expectGradientsOfTransformers(trained, GetParam(), kTolerance);
}

TEST_P(EveryFamily, TechniquesChangeNothingButMemoryAndTime) {
    TrainedModel trained(GetParam());
    kernels::Context& context = *trained.context;
    TrainedState state(context, trainable(*trained.model), {});
    const TrainingBatch batch = threeDocuments();
    PassRunner plain(trained, state, {Checkpointing::None, 0, 0});
    const double loss = plain.gradients(batch);
    const std::vector<std::vector<float>> expected = allGradients(context, state);
    const std::vector<MemoryTechniques> techniques = {
        {Checkpointing::Layer, 0, 0}, {Checkpointing::Offload, 0, 0}, {Checkpointing::None, 5, 0},
        {Checkpointing::None, 0, 7},  {Checkpointing::Offload, 1, 3},
    };
    for (const MemoryTechniques& each : techniques) {
        PassRunner runner(trained, state, each);
        EXPECT_NEAR(runner.gradients(batch), loss, 1e-6);
        const std::vector<std::vector<float>> actual = allGradients(context, state);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            EXPECT_LT(relativeError(actual[i], expected[i]), 2e-5)
                << state.tensors()[i].name << " chunk " << each.lossChunk << " tile " << each.mlpTile;
        }
    }
}

TEST_P(EveryFamily, NoDocumentSeesAnother) {
    TrainedModel trained(GetParam());
    kernels::Context& context = *trained.context;
    TrainedState state(context, trainable(*trained.model), {});
    PassRunner runner(trained, state, {Checkpointing::Offload, 4, 5});
    TrainingBatch batch = threeDocuments();
    // Only the last document counts.
    const auto last = static_cast<std::size_t>(batch.lengths.back());
    std::fill(batch.targets.begin(), batch.targets.end() - static_cast<std::ptrdiff_t>(last), -1);
    const double loss = runner.gradients(batch);
    const std::vector<std::vector<float>> expected = allGradients(context, state);
    // The table's gradient has rows of tokens, so the others are replaced by tokens that the last one has.
    for (std::size_t i = 0; i + last < batch.tokens.size(); ++i) {
        batch.tokens[i] = 19;
    }
    EXPECT_EQ(runner.gradients(batch), loss);
    EXPECT_EQ(allGradients(context, state), expected);
}

std::vector<std::string> trainedModels() {
    std::vector<std::string> names = test::modelFixtures();
    std::erase(names, "llama-longrope"); // of a small vocabulary, and no gradients of transformers are here
    std::erase_if(names, [](const std::string& name) { return openModel(test::fixture(name)).config.latent.used(); });
    return names;
}

TEST(GradientPass, RefusesLatentAttention) {
    const auto context = test::makeContext(kernels::Backend::Cpu);
    Model model(*context, openModel(test::fixture("kimi-k2")), ModelOptions{}, nullptr);
    EXPECT_THROW(GradientPass(model, MemoryTechniques{}), base::Unsupported);
}

INSTANTIATE_TEST_SUITE_P(Families, EveryFamily, testing::ValuesIn(trainedModels()),
                         [](const auto& family) { return std::regex_replace(family.param, std::regex("-"), "_"); });

} // namespace
} // namespace vitrine::engine
