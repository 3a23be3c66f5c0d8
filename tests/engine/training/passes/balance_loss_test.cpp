// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The load-balancing loss: its value and gradients as transformers gives them, and that no technique changes them.

#include "engine/training/passes/balance_loss.h"

#include <cmath>
#include <numeric>

#include "kernels/context/context.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

using test::PassRunner;
using test::relativeError;
using test::TrainedModel;

constexpr double kCoefficient = 0.5;

TrainingBatch twoDocuments() {
    TrainingBatch batch;
    batch.addDocument({5, 9, 200, 31, 77, 5, 12, 140, 8, 8, 17, 250, 41});
    batch.addDocument({19, 111, 112, 9, 54, 45, 5, 66, 2, 90, 91, 92});
    return batch;
}

/// A model's routers are trained, with and without the loss.
class BalanceScene {
public:
    explicit BalanceScene(const std::string& name)
        : trained(name), state(*trained.context, routers(*trained.model), {}),
          balanced(trained, state, {}, {kCoefficient, 0}) {}

    std::vector<float> gradients(PassRunner& runner) {
        runner.gradients(batch);
        return test::gradientsOf(*trained.context, state);
    }
    const TrainingBatch batch = twoDocuments();
    TrainedModel trained;
    TrainedState state;
    PassRunner balanced;

private:
    static std::vector<TrainedTensor> routers(const Model& model) {
        std::vector<TrainedTensor> out;
        const ParameterChoice choice("router", "train");
        for (const Parameter& parameter : model.parameters()) {
            if (choice.contains(parameter)) {
                out.push_back({parameter.name, parameter.view.data});
            }
        }
        return out;
    }
};

class BalanceLossOf : public testing::TestWithParam<const char*> {};

/// tests/fixtures/gradients/balance-NAME.json: transformers' aux_loss over twoDocuments(), and for each tensor of the
/// routers the norm of the gradient g of coefficient times it, and the sum of g[i] cos(0.37 i + 1).
TEST_P(BalanceLossOf, ValueAndGradientsAreThoseOfTransformers) {
    const auto expected =
        nlohmann::json::parse(std::ifstream(test::fixture(std::string("gradients/balance-") + GetParam() + ".json")));
    ASSERT_EQ(expected.at("coefficient").get<double>(), kCoefficient);
    BalanceScene scene(GetParam());
    PassRunner plain(scene.trained, scene.state);
    const std::vector<float> without = scene.gradients(plain);
    EXPECT_EQ(plain.aux(), 0);
    const std::vector<float> with = scene.gradients(scene.balanced);
    EXPECT_NEAR(scene.balanced.aux(), expected.at("loss").get<double>(), 1e-5);
    EXPECT_EQ(scene.state.tensors().size(), expected.at("gradients").size());
    std::size_t at = 0;
    for (const TrainedTensor& tensor : scene.state.tensors()) {
        std::vector<float> part(static_cast<std::size_t>(tensor.value.shape.count()));
        for (float& value : part) {
            value = with[at] - without[at];
            ++at;
        }
        test::expectGradient(part, expected.at("gradients").at(tensor.name), 1e-3, tensor.name);
    }
}

TEST_P(BalanceLossOf, TechniquesDoNotChangeIt) {
    BalanceScene scene(GetParam());
    const std::vector<float> expected = scene.gradients(scene.balanced);
    const double aux = scene.balanced.aux();
    for (const MemoryTechniques& techniques :
         {MemoryTechniques{Checkpointing::None, 0, 0}, {Checkpointing::Offload, 4, 0}, {Checkpointing::Layer, 0, 7}}) {
        PassRunner runner(scene.trained, scene.state, techniques, {kCoefficient, 0});
        EXPECT_LT(relativeError(scene.gradients(runner), expected), 2e-5);
        EXPECT_NEAR(runner.aux(), aux, 1e-5);
    }
}

INSTANTIATE_TEST_SUITE_P(, BalanceLossOf, testing::Values("qwen3-moe", "gpt-oss-bf16"));

} // namespace
} // namespace vitrine::engine
