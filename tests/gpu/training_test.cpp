// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Whole passes of training on a GPU: the gradients of transformers in float32, and the memory techniques in BF16.

#include "kernels/context/context.h"
#include "tests/engine/training/training_test_support.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::engine {
namespace {

using test::PassRunner;
using test::TrainedModel;

class TrainingGpu : public testing::TestWithParam<const char*> {};

TEST_P(TrainingGpu, GradientsInFloat32AreThoseOfTransformers) {
    VITRINE_NEEDS_GPU();
    TrainedModel trained(GetParam(), kernels::DType::F32, kernels::Backend::Cuda);
    test::expectGradientsOfTransformers(trained, GetParam(), 2e-4);
}

TEST_P(TrainingGpu, TechniquesChangeNothingButRounding) {
    VITRINE_NEEDS_GPU();
    TrainedModel trained(GetParam(), kernels::DType::F32, kernels::Backend::Cuda);
    TrainedState state(*trained.context, test::allTensors(*trained.model), {});
    PassRunner plain(trained, state, {Checkpointing::None, 0, 0});
    const double loss = plain.gradients(test::threeDocuments());
    std::vector<std::vector<float>> expected;
    for (const TrainedTensor& tensor : state.tensors()) {
        expected.push_back(test::gradientOf(*trained.context, state, tensor));
    }
    for (const MemoryTechniques& techniques :
         {MemoryTechniques{Checkpointing::Layer, 5, 0}, {Checkpointing::Offload, 0, 7}, {Checkpointing::None, 1, 3}}) {
        PassRunner runner(trained, state, techniques);
        EXPECT_NEAR(runner.gradients(test::threeDocuments()), loss, 1e-5);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            EXPECT_LT(test::relativeError(test::gradientOf(*trained.context, state, state.tensors()[i]), expected[i]),
                      1e-4)
                << state.tensors()[i].name;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(, TrainingGpu,
                         testing::Values("llama", "qwen2", "qwen3", "qwen3-moe", "gemma2", "mistral", "gpt-oss-bf16"),
                         [](const auto& name) {
                             std::string text = name.param;
                             std::replace(text.begin(), text.end(), '-', '_');
                             return text;
                         });

/// Adapters of all linears in BF16, beside the same on the CPU.
TEST(TrainingGpuAdapters, GradientsInBfloat16FollowTheCpu) {
    VITRINE_NEEDS_GPU();
    for (const char* name : {"llama", "gpt-oss-mxfp4"}) {
        std::vector<std::vector<float>> gradients[2];
        double losses[2] = {};
        for (const int gpu : {0, 1}) {
            TrainedModel trained(name, kernels::DType::BF16, gpu != 0 ? kernels::Backend::Cuda : kernels::Backend::Cpu);
            AdapterConfig config;
            config.rank = 4;
            config.alpha = 8;
            Adapter adapter(*trained.model, adapterTargets(trained.model->parameters(),
                                                           ParameterChoice("all-linear", "train"), config));
            adapter.initialise(3);
            TrainedState state(*trained.context, adapter.tensors(), {});
            PassRunner runner(trained, state);
            losses[gpu] = runner.gradients(test::threeDocuments());
            for (const TrainedTensor& tensor : state.tensors()) {
                gradients[gpu].push_back(test::gradientOf(*trained.context, state, tensor));
            }
        }
        EXPECT_NEAR(losses[1], losses[0], 0.02) << name;
        double squares = 0;
        double apart = 0;
        for (std::size_t i = 0; i < gradients[0].size(); ++i) {
            for (std::size_t j = 0; j < gradients[0][i].size(); ++j) {
                const double value = static_cast<double>(gradients[0][i][j]);
                squares += value * value;
                apart += std::pow(static_cast<double>(gradients[1][i][j]) - value, 2);
            }
        }
        EXPECT_LT(std::sqrt(apart / squares), 0.1) << name;
    }
}

} // namespace
} // namespace vitrine::engine
