// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/trainer.h"

#include <gtest/gtest.h>
#include <random>

#include "kernels/context/context_options.h"
#include "kernels/memory/memory.h"
#include "kernels/memory/memory_options.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

using test::TrainedModel;

TrainingBatch randomBatch(std::size_t tokens, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::int32_t> ids(tokens);
    for (std::int32_t& id : ids) {
        id = static_cast<std::int32_t>(random() % 200);
    }
    TrainingBatch batch;
    batch.addDocument(ids);
    return batch;
}

class TrainerOn : public testing::TestWithParam<kernels::Backend> {};

/// Two steps, with or without giving memory back between them.
struct TwoSteps {
    TwoSteps(kernels::Backend backend, const TrainingBatch& batch, bool givesBack)
        : trained("llama", kernels::DType::F32, backend), state(*trained.context, test::allTensors(*trained.model), {}),
          trainer(*trained.model, state, {Checkpointing::Offload, 8, 0}) {
        const kernels::Memory& memory = trained.context->memory();
        trainer.step({&batch, 1}, trainer.nextToken(), 1e-3, 1);
        reserved = memory.statistics().reserved;
        hostReserved = memory.hostStatistics().reserved;
        if (givesBack) {
            trainer.giveBack();
        }
        reservedBetween = memory.statistics().reserved;
        hostReservedBetween = memory.hostStatistics().reserved;
        second = trainer.step({&batch, 1}, trainer.nextToken(), 1e-3, 2);
        reservedAgain = memory.statistics().reserved;
    }

    TrainedModel trained;
    TrainedState state;
    Trainer trainer;
    std::uint64_t reserved = 0, hostReserved = 0, reservedBetween = 0, hostReservedBetween = 0, reservedAgain = 0;
    TrainingStep second;
};

TEST_P(TrainerOn, MemoryThatWasGivenBackComesAgainForTheNextStep) {
    const TrainingBatch batch = randomBatch(600, std::random_device()());
    const TwoSteps plain(GetParam(), batch, false);
    const TwoSteps gives(GetParam(), batch, true);
    EXPECT_EQ(plain.reservedBetween, plain.reserved);
    EXPECT_LT(gives.reservedBetween, gives.reserved);
    EXPECT_GT(gives.hostReserved, 0U);
    EXPECT_EQ(gives.hostReservedBetween, 0U);
    EXPECT_EQ(gives.reservedAgain, plain.reservedAgain);
    EXPECT_EQ(gives.second.loss, plain.second.loss);
    EXPECT_EQ(gives.second.gradientNorm, plain.second.gradientNorm);
}

INSTANTIATE_TEST_SUITE_P(Backends, TrainerOn, testing::Values(kernels::Backend::Cpu, kernels::Backend::Meta));

} // namespace
} // namespace vitrine::engine
