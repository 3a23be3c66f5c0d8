// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Packed copies of weights with an adapter in them.

#include <random>

#include "base/error.h"
#include "engine/training/files/merged_model.h"
#include "engine/training/quantized/packed_copies.h"
#include "engine/training/quantized/packed_targets.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

using test::fixture;
using test::PassRunner;
using test::relativeError;
using test::TrainedModel;

class MergedCopies : public testing::Test {
protected:
    std::unique_ptr<Adapter> makeAdapter(const std::string& choice) {
        AdapterConfig config;
        config.rank = 4;
        config.alpha = 8;
        auto adapter = std::make_unique<Adapter>(
            *trained_.model, adapterTargets(trained_.model->parameters(), ParameterChoice(choice, "train"), config));
        adapter->initialise(3);
        return adapter;
    }

    /// Copies of the packed weights that the adapter is beside.
    std::unique_ptr<PackedCopies> mergedCopies(Adapter& adapter) {
        Model& model = *trained_.model;
        return std::make_unique<PackedCopies>(
            model, packedBesideAdapter(model, adapter, kernels::IntegerRule::CompressedTensors), nullptr, &adapter);
    }

    void fillB(const Adapter& adapter) {
        std::mt19937 random(std::random_device{}());
        std::normal_distribution<float> normal(0, 0.05F);
        for (const AdapterPart& part : adapter.parts()) {
            std::vector<float> values(static_cast<std::size_t>(part.view.b.shape.count()));
            for (float& value : values) {
                value = normal(random);
            }
            uploadFloats(*trained_.context, values, part.view.b);
        }
    }

    std::vector<std::vector<float>> gradients(const TrainedState& state) const {
        std::vector<std::vector<float>> out;
        for (const TrainedTensor& tensor : state.tensors()) {
            out.push_back(test::gradientOf(*trained_.context, state, tensor));
        }
        return out;
    }

    TrainedModel trained_{"gpt-oss-mxfp4"};
    TrainingBatch batch_ = test::batchOf(fixture("gpt-oss-full-ft/batch.safetensors"), 40);
};

TEST_F(MergedCopies, AnAdapterOfZerosHasThePlainGradients) {
    const auto adapter = makeAdapter("attention+experts");
    TrainedState state(*trained_.context, adapter->tensors(), {});
    PassRunner runner(trained_, state);
    const double loss = runner.gradients(batch_);
    const std::vector<std::vector<float>> expected = gradients(state);
    const auto merged = mergedCopies(*adapter);
    merged->refresh();
    EXPECT_NEAR(runner.gradients(batch_), loss, 1e-6);
    const std::vector<std::vector<float>> actual = gradients(state);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_LT(relativeError(actual[i], expected[i]), 1e-5) << state.tensors()[i].name;
    }
}

TEST_F(MergedCopies, TheModelComputesWithTheWeightsOfTheMergedFile) {
    const auto adapter = makeAdapter("attention+experts");
    TrainedState state(*trained_.context, adapter->tensors(), {});
    PassRunner runner(trained_, state);
    fillB(*adapter);
    const double beside = runner.loss(batch_);
    const auto merged = mergedCopies(*adapter);
    merged->refresh();
    const double loss = runner.loss(batch_);
    EXPECT_NE(loss, beside);

    const test::TempFolder folder;
    const ModelSource source = openModel(fixture("gpt-oss-mxfp4"));
    writeMergedModel(folder.path() + "/aware", source, *trained_.model, kernels::WeightFormat::Mxfp4, nullptr);
    merged->attach(false);
    EXPECT_EQ(runner.loss(batch_), beside);
    writeMergedModel(folder.path() + "/plain", source, *trained_.model, kernels::WeightFormat::Mxfp4, nullptr);
    merged->attach(true);
    EXPECT_EQ(runner.loss(batch_), loss);
    for (const char* name : {"/aware", "/plain"}) {
        // Attention is stored in BF16.
        TrainedModel written(folder.path() + name);
        TrainedState none(*written.context, test::allTensors(*written.model), {});
        EXPECT_NEAR(PassRunner(written, none).loss(batch_), loss, 5e-3) << name;
    }
}

TEST_F(MergedCopies, APauseGivesBackTheModelAndTheEndTheAdapter) {
    TrainedState none(*trained_.context, test::allTensors(*trained_.model), {});
    PassRunner runner(trained_, none);
    const double base = runner.loss(batch_);
    const auto adapter = makeAdapter("experts");
    fillB(*adapter);
    const double beside = runner.loss(batch_);
    {
        const auto merged = mergedCopies(*adapter);
        merged->refresh();
        const double loss = runner.loss(batch_);
        {
            const AdapterPause pause(*adapter);
            EXPECT_EQ(runner.loss(batch_), base);
        }
        EXPECT_EQ(runner.loss(batch_), loss);
    }
    EXPECT_EQ(runner.loss(batch_), beside);
}

TEST_F(MergedCopies, DenseWeightsHaveNoneThatIsPackedAgain) {
    const auto adapter = makeAdapter("attention");
    EXPECT_TRUE(packedBesideAdapter(*trained_.model, *adapter, kernels::IntegerRule::CompressedTensors).empty());
}

} // namespace
} // namespace vitrine::engine
