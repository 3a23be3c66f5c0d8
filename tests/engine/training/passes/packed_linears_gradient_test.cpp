// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Gradients of an adapter over packed linears are those over the values that the linears unpack to.

#include <random>

#include "tests/engine/model/packed_linears.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

/// Loss and gradients of an adapter whose values follow from the seed.
struct AdapterPass {
    AdapterPass(const ModelSource& source, unsigned seed) {
        test::TrainedModel trained(source);
        AdapterConfig config;
        config.rank = 4;
        config.alpha = 8;
        Adapter adapter(*trained.model,
                        adapterTargets(trained.model->parameters(), ParameterChoice("all-linear", "train"), config));
        std::mt19937 random(seed);
        std::normal_distribution<float> normal(0, 0.1F);
        for (const TrainedTensor& tensor : adapter.tensors()) {
            std::vector<float> values(static_cast<std::size_t>(tensor.value.shape.count()));
            for (float& value : values) {
                value = normal(random);
            }
            uploadFloats(*trained.context, values, tensor.value);
        }
        TrainedState state(*trained.context, adapter.tensors(), {});
        test::PassRunner runner(trained, state);
        TrainingBatch batch;
        batch.addDocument({5, 9, 200, 31, 77, 5, 12, 140, 8, 8, 17, 250, 41});
        batch.addDocument({19, 111, 112, 9, 54, 45, 5, 66});
        loss = runner.gradients(batch);
        for (const TrainedTensor& tensor : state.tensors()) {
            gradients.emplace_back(tensor.name, test::gradientOf(*trained.context, state, tensor));
        }
    }

    double loss = 0;
    std::vector<std::pair<std::string, std::vector<float>>> gradients;
};

TEST(PackedLinearGradients, AreThoseOverTheDenseTwin) {
    for (const char* family : {"llama", "qwen3", "gemma2"}) {
        test::PackedTwins twins(family);
        const unsigned seed = std::random_device()();
        const AdapterPass packed(openModel(twins.writePacked()), seed);
        const AdapterPass dense(openModel(twins.writeDense()), seed);
        EXPECT_NEAR(packed.loss, dense.loss, 1e-5);
        ASSERT_EQ(packed.gradients.size(), dense.gradients.size());
        for (std::size_t i = 0; i < packed.gradients.size(); ++i) {
            EXPECT_LT(test::relativeError(packed.gradients[i].second, dense.gradients[i].second), 1e-4)
                << family << " " << packed.gradients[i].first;
        }
    }
}

} // namespace
} // namespace vitrine::engine
