// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Training with given experts on a GPU, beside the same on the CPU.

#include <cmath>

#include "kernels/context/context.h"
#include "tests/engine/training/given_experts_support.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::engine {
namespace {

using test::PassRunner;
using test::TrainedModel;

struct ReplayedPass {
    double loss = 0, disagreement = 0;
    std::vector<float> gradients; ///< of the routers
};

ReplayedPass replayedPass(const char* name, kernels::Backend backend, const TrainingBatch& batch,
                          const MemoryTechniques& techniques) {
    TrainedModel trained(name, kernels::DType::F32, backend);
    std::vector<TrainedTensor> routers;
    for (const Parameter& parameter : trained.model->parameters()) {
        if (ParameterChoice("router", "train").contains(parameter)) {
            routers.push_back({parameter.name, parameter.view.data});
        }
    }
    TrainedState state(*trained.context, routers, {});
    PassRunner runner(trained, state, techniques);
    ReplayedPass out;
    out.loss = runner.gradients(batch);
    EXPECT_NEAR(runner.loss(batch), out.loss, 1e-4) << name; // without gradients
    out.disagreement = runner.pass().disagreement().share();
    out.gradients = test::gradientsOf(*trained.context, state);
    return out;
}

void expectAlike(const ReplayedPass& gpu, const ReplayedPass& cpu) {
    EXPECT_NEAR(gpu.loss, cpu.loss, 1e-4);
    EXPECT_NEAR(gpu.disagreement, cpu.disagreement, 0.02);
    double squares = 0, apart = 0;
    for (std::size_t i = 0; i < cpu.gradients.size(); ++i) {
        squares += std::pow(static_cast<double>(cpu.gradients[i]), 2);
        apart += std::pow(static_cast<double>(gpu.gradients[i]) - static_cast<double>(cpu.gradients[i]), 2);
    }
    EXPECT_LT(std::sqrt(apart / squares), 1e-3);
}

TEST(ExpertReplayGpu, LossAndGradientsAreThoseOfTheCpu) {
    VITRINE_NEEDS_GPU();
    for (const char* name : {"qwen3-moe", "gpt-oss-bf16"}) {
        SCOPED_TRACE(name);
        TrainedModel onCpu(name);
        TrainingBatch chosen = test::threeDocuments(), others = chosen;
        chosen.experts = test::chosenExperts(onCpu, chosen);
        others.experts = test::otherExperts(*onCpu.model, others);
        for (const TrainingBatch* batch : {&chosen, &others}) {
            const ReplayedPass cpu = replayedPass(name, kernels::Backend::Cpu, *batch, {Checkpointing::None, 0, 0});
            for (const MemoryTechniques& techniques : {MemoryTechniques{Checkpointing::None, 0, 0},
                                                       {Checkpointing::Layer, 0, 0},
                                                       {Checkpointing::Offload, 4, 7}}) {
                expectAlike(replayedPass(name, kernels::Backend::Cuda, *batch, techniques), cpu);
            }
        }
    }
}

} // namespace
} // namespace vitrine::engine
