// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Answers that share a prompt on a GPU, beside the same on the CPU and beside a prompt for each answer.

#include "kernels/context/context.h"
#include "tests/engine/training/shared_prompt_support.h"
#include "tests/engine/training/training_test_support.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::engine {
namespace {

using test::PassRunner;
using test::TrainedModel;

struct PassResult {
    double loss = 0;
    std::vector<float> gradients; ///< of adapters of all linears
};

PassResult passOf(const char* name, kernels::Backend backend, const TrainingBatch& batch,
                  kernels::DType compute = kernels::DType::BF16) {
    TrainedModel trained(name, compute, backend);
    AdapterConfig config;
    config.rank = 4;
    config.alpha = 8;
    Adapter adapter(*trained.model,
                    adapterTargets(trained.model->parameters(), ParameterChoice("all-linear", "train"), config));
    adapter.initialise(3);
    TrainedState state(*trained.context, adapter.tensors(), {});
    PassRunner runner(trained, state);
    const double loss = runner.gradients(batch);
    EXPECT_NEAR(runner.loss(batch), loss, 1e-3) << name; // without gradients
    return {loss, test::gradientsOf(*trained.context, state)};
}

/// The norm of the difference over that of `expected`.
double distance(const std::vector<float>& actual, const std::vector<float>& expected) {
    double squares = 0;
    double apart = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto value = static_cast<double>(expected[i]);
        squares += value * value;
        apart += std::pow(static_cast<double>(actual[i]) - value, 2);
    }
    return std::sqrt(apart / squares);
}

TEST(SharedPromptGpu, GradientsAreThoseOfTheCpuAndOfSeparateRows) {
    VITRINE_NEEDS_GPU();
    const TrainingBatch shared = test::sharedPrompts(test::threePrompts());
    const TrainingBatch rows = test::separateRows(test::threePrompts());
    for (const char* name : {"llama", "gemma2", "gpt-oss-bf16"}) {
        const PassResult gpu = passOf(name, kernels::Backend::Cuda, shared);
        for (const PassResult& expected :
             {passOf(name, kernels::Backend::Cpu, shared), passOf(name, kernels::Backend::Cuda, rows)}) {
            EXPECT_NEAR(gpu.loss, expected.loss, 0.02) << name;
            EXPECT_LT(distance(gpu.gradients, expected.gradients), 0.1) << name;
        }
    }
}

TEST(SharedPromptGpu, Float32HasThoseOfTheCpu) {
    VITRINE_NEEDS_GPU();
    const TrainingBatch shared = test::sharedPrompts(test::threePrompts());
    for (const char* name : {"llama", "gemma2", "gpt-oss-bf16", "qwen3-moe"}) {
        const PassResult gpu = passOf(name, kernels::Backend::Cuda, shared, kernels::DType::F32);
        const PassResult cpu = passOf(name, kernels::Backend::Cpu, shared, kernels::DType::F32);
        EXPECT_NEAR(gpu.loss, cpu.loss, 1e-4) << name;
        EXPECT_LT(distance(gpu.gradients, cpu.gradients), 1e-3) << name;
    }
}

} // namespace
} // namespace vitrine::engine
