// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Losses and gradients as PyTorch, transformers and PEFT give them, and the same with every memory technique.

#include "engine/training/gradient_pass.h"

#include <regex>

#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

using test::fixture;
using test::PassRunner;
using test::relativeError;
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
    Adapter adapter(*trained.model, ParameterChoice("all-linear", "train"), {4, 8, false}, 1);
    TrainedState state(*trained.context, adapter.tensors(), {});
    for (const TrainedTensor& tensor : state.tensors()) {
        uploadFloats(*trained.context,
                     test::readTensor<float>(fixture("llama-lora/adapter-start/adapter_model.safetensors"),
                                             peftName(tensor.name)),
                     tensor.value);
    }
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

} // namespace
} // namespace vitrine::engine
