// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// A prompt that its answers share trains as a prompt for each of them does.

#include <regex>

#include "tests/engine/training/shared_prompt_support.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

using test::PassRunner;
using test::TrainedModel;

class SharedPrompt : public testing::TestWithParam<std::string> {};

TEST_P(SharedPrompt, LossAndGradientsAreThoseOfSeparateRows) {
    TrainedModel trained(GetParam());
    TrainedState state(*trained.context, test::allTensors(*trained.model), {});
    PassRunner separate(trained, state, {Checkpointing::None, 0, 0});
    const TrainingBatch rows = test::separateRows(test::threePrompts());
    const TrainingBatch shared = test::sharedPrompts(test::threePrompts());
    ASSERT_EQ(shared.predicted(), rows.predicted());
    ASSERT_LT(shared.count(), rows.count() / 2);
    const double loss = separate.gradients(rows);
    std::vector<std::vector<float>> expected;
    for (const TrainedTensor& tensor : state.tensors()) {
        expected.push_back(test::gradientOf(*trained.context, state, tensor));
    }
    for (const MemoryTechniques& techniques : {MemoryTechniques{Checkpointing::None, 0, 0},
                                               {Checkpointing::Layer, 0, 0},
                                               {Checkpointing::Offload, 0, 0},
                                               {Checkpointing::None, 50, 0},
                                               {Checkpointing::None, 0, 70},
                                               {Checkpointing::Offload, 33, 41}}) {
        PassRunner runner(trained, state, techniques);
        EXPECT_NEAR(runner.gradients(shared), loss, 1e-6);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            EXPECT_LT(test::relativeError(test::gradientOf(*trained.context, state, state.tensors()[i]), expected[i]),
                      2e-5)
                << state.tensors()[i].name << " chunk " << techniques.lossChunk << " tile " << techniques.mlpTile;
        }
    }
}

TEST_P(SharedPrompt, EvaluationGivesTheLossOfSeparateRows) {
    TrainedModel trained(GetParam());
    TrainedState state(*trained.context, test::allTensors(*trained.model), {});
    PassRunner runner(trained, state);
    EXPECT_NEAR(runner.loss(test::sharedPrompts(test::threePrompts())),
                runner.loss(test::separateRows(test::threePrompts())), 1e-6);
}

TEST_P(SharedPrompt, OtherDocumentsOfTheBatchChangeNothing) {
    TrainedModel trained(GetParam());
    TrainedState state(*trained.context, test::allTensors(*trained.model), {});
    PassRunner runner(trained, state);
    TrainingBatch batch = test::threeDocuments();
    batch.append(test::sharedPrompts(test::threePrompts()));
    const double both = runner.loss(batch) * static_cast<double>(batch.predicted());
    const TrainingBatch plain = test::threeDocuments();
    const TrainingBatch shared = test::sharedPrompts(test::threePrompts());
    const double alone = runner.loss(plain) * static_cast<double>(plain.predicted());
    EXPECT_NEAR(both, alone + runner.loss(shared) * static_cast<double>(shared.predicted()), 1e-4);
}

TEST_P(SharedPrompt, NoAnswerSeesAnother) {
    TrainedModel trained(GetParam());
    TrainedState state(*trained.context, test::allTensors(*trained.model), {});
    PassRunner runner(trained, state);
    std::vector<test::AnsweredPrompt> prompts = test::threePrompts();
    const auto lossOfLast = [&] {
        TrainingBatch batch = test::sharedPrompts(prompts);
        std::fill(batch.targets.begin(), batch.targets.end() - batch.lengths.back(), -1);
        return runner.loss(batch);
    };
    const double loss = lossOfLast();
    for (std::size_t i = 0; i + 1 < prompts.back().answers.size(); ++i) {
        std::ranges::fill(prompts.back().answers[i], 3);
    }
    std::ranges::fill(prompts.front().prompt, 3);
    EXPECT_EQ(lossOfLast(), loss);
    prompts.back().prompt[130] = prompts.back().prompt[130] == 3 ? 4 : 3;
    EXPECT_NE(lossOfLast(), loss);
}

/// Every allocation of a pass with gradients and of one without.
std::vector<std::string> allocationsOf(const std::string& name, kernels::Backend backend, const TrainingBatch& batch,
                                       Checkpointing checkpointing) {
    test::RecordingSink sink;
    {
        const kernels::DeviceTraits traits = test::testTraits();
        TrainedModel trained(openModel(test::fixture(name)), kernels::DType::BF16, backend, &sink, &traits);
        TrainedState state(*trained.context, test::allTensors(*trained.model), {});
        PassRunner runner(trained, state, {checkpointing, 64, 0});
        runner.gradients(batch);
        runner.loss(batch);
    }
    return sink.lines();
}

TEST_P(SharedPrompt, MetaAllocatesAsTheCpuDoes) {
    const TrainingBatch batch = test::sharedPrompts(test::threePrompts());
    TrainingBatch planned = batch;
    planned.tokens.clear();
    planned.targets.clear();
    for (const Checkpointing checkpointing : {Checkpointing::None, Checkpointing::Layer}) {
        const auto cpu = allocationsOf(GetParam(), kernels::Backend::Cpu, batch, checkpointing);
        EXPECT_GT(cpu.size(), 100U);
        EXPECT_EQ(cpu, allocationsOf(GetParam(), kernels::Backend::Meta, batch, checkpointing));
        EXPECT_EQ(cpu, allocationsOf(GetParam(), kernels::Backend::Meta, planned, checkpointing));
    }
}

INSTANTIATE_TEST_SUITE_P(Families, SharedPrompt,
                         testing::Values("llama", "qwen2-sliding", "qwen3", "qwen3-moe", "gemma2", "mistral",
                                         "gpt-oss-bf16"),
                         [](const auto& family) { return std::regex_replace(family.param, std::regex("-"), "_"); });

} // namespace
} // namespace vitrine::engine
