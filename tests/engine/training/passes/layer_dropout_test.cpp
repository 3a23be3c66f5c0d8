// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Dropout of adapters: its gradients, and that tiles, chunks and recomputation drop the same elements.

#include "engine/training/passes/layer_dropout.h"

#include <random>
#include <set>

#include "kernels/context/context.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

using test::PassRunner;
using test::relativeError;
using test::TrainedModel;

/// A llama with adapters of random values beside its linears and its head.
class DropoutScene {
public:
    DropoutScene()
        : trained("llama"), adapter(*trained.model, targets(*trained.model)),
          state(*trained.context, adapter.tensors(), {}) {
        std::mt19937 random(5);
        std::normal_distribution<float> normal(0, 0.1F);
        for (const TrainedTensor& tensor : state.tensors()) {
            std::vector<float> values(static_cast<std::size_t>(tensor.value.shape.count()));
            for (float& value : values) {
                value = normal(random);
            }
            trained.context->upload(values.data(), tensor.value.data, values.size() * sizeof(float));
        }
        batch.addDocument({5, 9, 200, 31, 77, 5, 12, 140, 8, 8, 17, 250, 41});
        batch.addDocument({19, 111, 112, 9, 54, 45, 5, 66, 2, 90, 91, 92});
    }

    std::vector<float> gradients(PassRunner& runner) {
        runner.gradients(batch);
        return test::gradientsOf(*trained.context, state);
    }
    void move(const std::vector<float>& direction, double step) {
        std::size_t at = 0;
        for (const TrainedTensor& tensor : state.tensors()) {
            std::vector<float> values = downloadFloats(*trained.context, tensor.value);
            for (float& value : values) {
                value += static_cast<float>(step * static_cast<double>(direction[at++]));
            }
            trained.context->upload(values.data(), tensor.value.data, values.size() * sizeof(float));
        }
    }

    TrainingBatch batch;
    TrainedModel trained;
    Adapter adapter;
    TrainedState state;

private:
    static std::vector<AdapterTarget> targets(const Model& model) {
        AdapterConfig config;
        config.rank = 4;
        config.alpha = 8;
        return adapterTargets(model.parameters(), ParameterChoice("all-linear+head", "train"), config);
    }
};

TEST(LayerDropout, GradientsFollowFiniteDifferences) {
    DropoutScene scene;
    PassRunner runner(scene.trained, scene.state, {}, {0, 0.3});
    const std::vector<float> gradient = scene.gradients(runner);
    double squares = 0;
    for (const float value : gradient) {
        squares += static_cast<double>(value) * static_cast<double>(value);
    }
    ASSERT_GT(squares, 0);
    const double step = 0.01 / squares;
    scene.move(gradient, step);
    const double above = runner.gradients(scene.batch);
    scene.move(gradient, -2 * step);
    const double below = runner.gradients(scene.batch);
    EXPECT_NEAR((above - below) / (2 * step), squares, 0.01 * squares);
}

TEST(LayerDropout, TechniquesDropTheSame) {
    DropoutScene scene;
    PassRunner whole(scene.trained, scene.state, {Checkpointing::None, 0, 0}, {0, 0.5});
    const std::vector<float> expected = scene.gradients(whole);
    PassRunner without(scene.trained, scene.state, {Checkpointing::None, 0, 0});
    EXPECT_GT(relativeError(scene.gradients(without), expected), 0.1);
    for (const MemoryTechniques& techniques :
         {MemoryTechniques{Checkpointing::Layer, 0, 0}, {Checkpointing::Offload, 4, 0}, {Checkpointing::None, 0, 7}}) {
        PassRunner runner(scene.trained, scene.state, techniques, {0, 0.5});
        EXPECT_LT(relativeError(scene.gradients(runner), expected), 2e-5);
    }
}

TEST(LayerDropout, AnEvaluationDropsNothing) {
    DropoutScene scene;
    PassRunner with(scene.trained, scene.state, {}, {0, 0.5});
    PassRunner without(scene.trained, scene.state);
    EXPECT_EQ(with.loss(scene.batch), without.loss(scene.batch));
}

TEST(LayerDropout, EveryMicroBatchHasASeedOfItsOwn) {
    std::set<std::uint64_t> seen;
    for (std::int64_t step = 1; step <= 50; ++step) {
        for (std::int64_t part = 0; part < 20; ++part) {
            seen.insert(dropoutSeed(7, step, part));
        }
    }
    EXPECT_EQ(seen.size(), 1000u);
}

} // namespace
} // namespace vitrine::engine
