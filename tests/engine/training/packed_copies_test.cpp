// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/packed_copies.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/training/host_floats.h"
#include "engine/training/merged_model.h"
#include "kernels/formats/mxfp4_format.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

using test::fixture;

/// A model with dense weights in memory, however its files have them.
struct DenseModel {
    explicit DenseModel(const std::string& folder)
        : source(openModel(folder)), context(test::makeContext(kernels::Backend::Cpu)) {
        ModelOptions options;
        options.dequantize = true;
        options.computeDType = kernels::DType::BF16;
        model = std::make_unique<Model>(*context, source, options, nullptr);
        state = std::make_unique<TrainedState>(*context, test::allTensors(*model), OptimizerOptions());
    }

    ModelSource source;
    std::unique_ptr<kernels::Context> context;
    std::unique_ptr<Model> model;
    std::unique_ptr<TrainedState> state;
};

bool isStack(const TrainedTensor& tensor) {
    return tensor.name.ends_with("gate_up_proj") || tensor.name.ends_with("down_proj");
}

/// Moves the masters as a step of training would, each by something else.
void moveMasters(const DenseModel& dense) {
    std::mt19937 random(std::random_device{}());
    std::normal_distribution<float> normal(0, 0.02F);
    for (std::size_t i = 0; i < dense.state->tensors().size(); ++i) {
        std::vector<float> values = downloadFloats(*dense.context, dense.state->master(i));
        for (float& value : values) {
            value += normal(random);
        }
        uploadFloats(*dense.context, values, dense.state->master(i));
    }
    dense.state->valuesFromMasters();
}

std::vector<float> packedAndBack(const std::vector<float>& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    std::vector<std::uint8_t> blocks(values.size() / 2);
    std::vector<std::uint8_t> scales(values.size() / kernels::kMxfp4Group);
    std::vector<float> out(values.size());
    kernels::packMxfp4(values.data(), count, blocks.data(), scales.data());
    kernels::expandMxfp4(blocks.data(), scales.data(), 0, count, out.data());
    return out;
}

TEST(PackedCopies, ExpertsHaveTheValuesOfTheirPackedMasters) {
    const DenseModel dense(fixture("gpt-oss-mxfp4"));
    PackedCopies rounded(*dense.model, *dense.state, packedInSource(dense.source.config, dense.state->tensors()),
                         kernels::DType::F32);
    moveMasters(dense);
    rounded.refresh();
    int stacks = 0;
    for (std::size_t i = 0; i < dense.state->tensors().size(); ++i) {
        const TrainedTensor& tensor = dense.state->tensors()[i];
        const std::vector<float> master = downloadFloats(*dense.context, dense.state->master(i));
        const std::vector<float> value = downloadFloats(*dense.context, tensor.value);
        if (isStack(tensor)) {
            ++stacks;
            EXPECT_EQ(value, packedAndBack(master)) << tensor.name;
            EXPECT_NE(value, master) << tensor.name;
        } else {
            EXPECT_LT(test::relativeError(value, master), 0.004) << tensor.name << " is no more than BF16 away";
        }
    }
    EXPECT_GT(stacks, 0);
}

TEST(PackedCopies, TheSavedModelHasTheValuesThatTheModelComputesWith) {
    const DenseModel dense(fixture("gpt-oss-mxfp4"));
    PackedCopies rounded(*dense.model, *dense.state, packedInSource(dense.source.config, dense.state->tensors()),
                         kernels::DType::F32);
    moveMasters(dense);
    rounded.refresh();
    const test::TempFolder folder;
    writeMergedModel(folder.path() + "/saved", dense.source, *dense.model, kernels::WeightFormat::Mxfp4, nullptr);
    const DenseModel saved(folder.path() + "/saved");
    ASSERT_FALSE(saved.source.config.packings.empty());
    for (std::size_t i = 0; i < dense.state->tensors().size(); ++i) {
        const TrainedTensor& tensor = dense.state->tensors()[i];
        if (isStack(tensor)) {
            EXPECT_EQ(downloadFloats(*saved.context, saved.state->tensors()[i].value),
                      downloadFloats(*dense.context, tensor.value))
                << tensor.name;
        }
    }
}

TEST(PackedCopies, ModelsWithoutPackedFilesHaveNoneToPackAgain) {
    const DenseModel llama(fixture("llama"));
    EXPECT_TRUE(packedInSource(llama.source.config, llama.state->tensors()).empty());
}

} // namespace
} // namespace vitrine::engine
