// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Batches that give the experts of their tokens: forward, backward, and with every memory technique.

#include "engine/training/passes/expert_replay.h"

#include <cmath>
#include <functional>
#include <regex>

#include "engine/training/passes/trainer.h"
#include "tests/engine/training/given_experts_support.h"
#include "tests/engine/training/shared_prompt_support.h"

namespace vitrine::engine {
namespace {

using test::PassRunner;
using test::TrainedModel;

/// A model whose tensors are all trained.
struct ReplayScene {
    explicit ReplayScene(const std::string& name)
        : trained(name), state(*trained.context, test::allTensors(*trained.model), {}) {}

    std::vector<float> gradients() const { return test::gradientsOf(*trained.context, state); }

    TrainedModel trained;
    TrainedState state;
    TrainingBatch batch = test::threeDocuments();
};

const std::vector<MemoryTechniques> kReplayTechniques = {{Checkpointing::None, 0, 0},
                                                         {Checkpointing::Layer, 0, 0},
                                                         {Checkpointing::Offload, 0, 0},
                                                         {Checkpointing::None, 0, 7},
                                                         {Checkpointing::Offload, 1, 3}};

class ExpertReplay : public testing::TestWithParam<std::string> {};

TEST_P(ExpertReplay, OwnChoiceGivenBackChangesNothing) {
    ReplayScene scene(GetParam());
    TrainingBatch replayed = scene.batch;
    replayed.experts = test::chosenExperts(scene.trained, scene.batch);
    TrainingBatch ungiven = scene.batch;
    ungiven.experts = test::noExperts(*scene.trained.model, scene.batch.count());
    for (const MemoryTechniques& techniques : kReplayTechniques) {
        PassRunner runner(scene.trained, scene.state, techniques, {0.5, 0});
        const double loss = runner.gradients(scene.batch), aux = runner.aux();
        const std::vector<float> expected = scene.gradients();
        const double evaluated = runner.loss(scene.batch);
        for (const TrainingBatch* batch : {&replayed, &ungiven}) {
            EXPECT_EQ(runner.gradients(*batch), loss); // to the bit
            EXPECT_EQ(runner.aux(), aux);
            EXPECT_EQ(scene.gradients(), expected) << "tile " << techniques.mlpTile;
            EXPECT_EQ(runner.loss(*batch), evaluated);
            EXPECT_EQ(runner.pass().disagreement().share(), 0);
        }
    }
}

TEST_P(ExpertReplay, OtherExpertsAreTakenWithEveryTechnique) {
    ReplayScene scene(GetParam());
    PassRunner plain(scene.trained, scene.state, kReplayTechniques.front());
    const double own = plain.loss(scene.batch);
    scene.batch.experts = test::otherExperts(*scene.trained.model, scene.batch);
    const double loss = plain.gradients(scene.batch);
    const std::vector<float> expected = scene.gradients();
    EXPECT_GT(std::fabs(loss - own), 1e-4);
    for (const MemoryTechniques& techniques : kReplayTechniques) {
        PassRunner runner(scene.trained, scene.state, techniques);
        EXPECT_NEAR(runner.gradients(scene.batch), loss, 1e-6);
        EXPECT_LT(test::relativeError(scene.gradients(), expected), 2e-5) << "tile " << techniques.mlpTile;
        EXPECT_NEAR(runner.loss(scene.batch), loss, 1e-6);
    }
}

/// Along the gradient of the routers alone; the choice cannot jump meanwhile, because it is given.
TEST_P(ExpertReplay, GradientsOfRoutersAreDifferencesOfLosses) {
    TrainedModel trained(GetParam());
    std::vector<TrainedTensor> routers;
    for (const Parameter& parameter : trained.model->parameters()) {
        if (ParameterChoice("router", "train").contains(parameter)) {
            routers.push_back({parameter.name, parameter.view.data});
        }
    }
    TrainedState state(*trained.context, routers, {});
    PassRunner runner(trained, state);
    TrainingBatch batch = test::threeDocuments();
    batch.experts = test::otherExperts(*trained.model, batch);
    runner.gradients(batch);
    double squares = 0;
    for (const float value : test::gradientsOf(*trained.context, state)) {
        squares += static_cast<double>(value) * value;
    }
    const double norm = std::sqrt(squares);
    ASSERT_GT(norm, 1e-4);
    std::vector<std::vector<float>> values, directions;
    for (const TrainedTensor& router : routers) {
        values.push_back(downloadFloats(*trained.context, router.value));
        directions.push_back(test::gradientOf(*trained.context, state, router));
    }
    const auto lossAt = [&](double step) {
        for (std::size_t i = 0; i < routers.size(); ++i) {
            std::vector<float> moved = values[i];
            for (std::size_t e = 0; e < moved.size(); ++e) {
                moved[e] += static_cast<float>(step / norm) * directions[i][e];
            }
            uploadFloats(*trained.context, moved, routers[i].value);
        }
        return runner.loss(batch);
    };
    const double step = 0.05;
    EXPECT_NEAR((lossAt(step) - lossAt(-step)) / (2 * step), norm, 0.02 * norm);
}

TEST_P(ExpertReplay, SharedPromptsTakeThoseOfSeparateRows) {
    ReplayScene scene(GetParam());
    TrainingBatch rows = test::separateRows(test::threePrompts()), shared = test::sharedPrompts(test::threePrompts());
    PassRunner runner(scene.trained, scene.state, {Checkpointing::Layer, 0, 41});
    const double own = runner.loss(rows);
    rows.experts = test::otherExperts(*scene.trained.model, rows);
    shared.experts = test::otherExperts(*scene.trained.model, shared);
    const double loss = runner.gradients(rows);
    const std::vector<float> expected = scene.gradients();
    EXPECT_GT(std::fabs(loss - own), 1e-4);
    EXPECT_NEAR(runner.gradients(shared), loss, 1e-6);
    EXPECT_LT(test::relativeError(scene.gradients(), expected), 2e-5);
    EXPECT_NEAR(runner.loss(shared), loss, 1e-6);
}

TEST_P(ExpertReplay, DisagreementCountsGivenExpertsThatWouldNotBeChosen) {
    ReplayScene scene(GetParam());
    TrainingBatch batch = scene.batch;
    batch.experts = test::chosenExperts(scene.trained, scene.batch);
    // The last layer of the last token: nothing after it chooses otherwise.
    const std::span<std::uint16_t> row = std::span(batch.experts.ids).last(static_cast<std::size_t>(batch.experts.k));
    while (std::ranges::count(row, row[0]) > 1 ||
           row[0] == test::chosenExperts(scene.trained, scene.batch).ids[batch.experts.ids.size() - row.size()]) {
        row[0] = static_cast<std::uint16_t>((row[0] + 1) % scene.trained.model->config().experts);
    }
    PassRunner runner(scene.trained, scene.state, {Checkpointing::Layer, 0, 7});
    ExpertDisagreement& disagreement = runner.pass().disagreement();
    runner.gradients(batch);
    const double one = 1 / static_cast<double>(batch.experts.ids.size());
    EXPECT_DOUBLE_EQ(disagreement.share(), one);
    batch.experts = test::chosenExperts(scene.trained, scene.batch);
    runner.loss(batch);
    EXPECT_DOUBLE_EQ(disagreement.share(), one / 2);
    disagreement.begin();
    EXPECT_EQ(disagreement.share(), 0);
    runner.loss(batch);
    EXPECT_EQ(disagreement.share(), 0);
}

TEST_P(ExpertReplay, AStepReportsTheDisagreement) {
    ReplayScene scene(GetParam());
    Trainer trainer(*scene.trained.model, scene.state, {});
    TrainingBatch batch = scene.batch;
    batch.experts = test::otherExperts(*scene.trained.model, batch);
    const auto step = [&](const TrainingBatch& of) {
        return trainer.step(std::span(&of, 1), trainer.nextToken(), 0, 1).expertDisagreement;
    };
    EXPECT_GT(step(batch), 0.1);
    EXPECT_LT(step(batch), 1);
    EXPECT_EQ(step(scene.batch), 0);
}

/// Every allocation of a pass with gradients and of one without.
std::vector<std::string> replayAllocations(const std::string& name, kernels::Backend backend, TrainingBatch batch) {
    test::RecordingSink sink;
    {
        const kernels::DeviceTraits traits = test::testTraits();
        TrainedModel trained(openModel(test::fixture(name)), kernels::DType::BF16, backend, &sink, &traits);
        TrainedState state(*trained.context, test::allTensors(*trained.model), {});
        PassRunner runner(trained, state, {Checkpointing::Layer, 64, 5});
        batch.experts = test::otherExperts(*trained.model, batch);
        if (backend == kernels::Backend::Meta) {
            batch.experts.ids.clear();
            batch.tokens.clear();
            batch.targets.clear();
        }
        runner.gradients(batch);
        runner.loss(batch);
    }
    return sink.lines();
}

TEST_P(ExpertReplay, APlanAllocatesAsTheCpuDoes) {
    const TrainingBatch batch = test::threeDocuments();
    const auto cpu = replayAllocations(GetParam(), kernels::Backend::Cpu, batch);
    EXPECT_GT(cpu.size(), 100U);
    EXPECT_EQ(cpu, replayAllocations(GetParam(), kernels::Backend::Meta, batch));
}

TEST_P(ExpertReplay, RefusesExpertsThatAreNotTheModels) {
    ReplayScene scene(GetParam());
    PassRunner runner(scene.trained, scene.state);
    const auto expectRefused = [&](const std::string& word, const std::function<void(GivenExperts&)>& change) {
        TrainingBatch batch = scene.batch;
        batch.experts = test::otherExperts(*scene.trained.model, batch);
        change(batch.experts);
        try {
            runner.gradients(batch);
            ADD_FAILURE() << "not refused: " << word;
        } catch (const base::BadInput& error) {
            EXPECT_NE(std::string(error.what()).find("experts: "), std::string::npos) << error.what();
            EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
        }
    };
    expectRefused("layers", [](GivenExperts& experts) { --experts.layers; });
    expectRefused("layers", [](GivenExperts& experts) { ++experts.k; });
    expectRefused("every token", [](GivenExperts& experts) { experts.ids.pop_back(); });
    expectRefused("none of the model's", [&](GivenExperts& experts) {
        experts.ids[0] = static_cast<std::uint16_t>(scene.trained.model->config().experts);
    });
    expectRefused("none of the model's", [](GivenExperts& experts) { experts.ids[1] = GivenExperts::kNone; });
    expectRefused("twice", [](GivenExperts& experts) { experts.ids[1] = experts.ids[0]; });
}

INSTANTIATE_TEST_SUITE_P(Families, ExpertReplay, testing::Values("qwen3-moe", "gpt-oss-bf16"),
                         [](const auto& family) { return std::regex_replace(family.param, std::regex("-"), "_"); });

TEST(ExpertRows, RefusesExpertsForAModelWithoutThem) {
    ReplayScene scene("llama");
    PassRunner runner(scene.trained, scene.state);
    scene.batch.experts.layers = 1;
    scene.batch.experts.k = 2;
    scene.batch.experts.addNone(scene.batch.count());
    EXPECT_THROW(runner.gradients(scene.batch), base::BadInput);
    EXPECT_THROW(runner.loss(scene.batch), base::BadInput);
}

/// A router whose bias leaves nothing but some experts chooses these, and a softmax over the chosen gives them the
/// weights that they have when they are given.
TEST(ExpertRows, AModelThatIsForcedToTheSameExpertsHasTheSameLossAndGradients) {
    ReplayScene scene("gpt-oss-bf16");
    const Model& model = *scene.trained.model;
    const std::int64_t experts = model.config().experts;
    TrainingBatch batch = scene.batch;
    batch.experts = test::noExperts(model, batch.count());
    const auto expertOf = [&](std::int64_t layer, std::int64_t j) { return (3 * layer + 2 * j + 1) % experts; };
    for (std::size_t i = 0; i < batch.experts.ids.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i % batch.experts.width());
        batch.experts.ids[i] = static_cast<std::uint16_t>(expertOf(at / batch.experts.k, at % batch.experts.k));
    }
    PassRunner runner(scene.trained, scene.state);
    const double loss = runner.gradients(batch);
    const std::vector<float> expected = scene.gradients();
    std::int64_t forced = 0;
    for (const Parameter& parameter : model.parameters()) {
        if (parameter.role != ParameterRole::Router || !parameter.bias) {
            continue;
        }
        std::vector<float> bias = downloadFloats(*scene.trained.context, parameter.view.data);
        std::vector<float> moved(bias.size(), -1e4F);
        for (std::int64_t j = 0; j < batch.experts.k; ++j) {
            const auto id = static_cast<std::size_t>(expertOf(parameter.layer, j));
            moved[id] = bias[id];
        }
        uploadFloats(*scene.trained.context, moved, parameter.view.data);
        ++forced;
    }
    EXPECT_EQ(forced, batch.experts.layers);
    EXPECT_NEAR(runner.gradients(scene.batch), loss, 1e-6);
    EXPECT_LT(test::relativeError(scene.gradients(), expected), 2e-5);
}

} // namespace
} // namespace vitrine::engine
