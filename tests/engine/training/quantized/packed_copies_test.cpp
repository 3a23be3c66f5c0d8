// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/quantized/packed_copies.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/quant/conversion_target.h"
#include "engine/training/files/merged_model.h"
#include "engine/training/parameters/host_floats.h"
#include "engine/workload/convert/model_converter.h"
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

TEST(PackedCopies, MastersAreShownForAWhile) {
    const DenseModel dense(fixture("gpt-oss-mxfp4"));
    std::vector<TrainedTensor> tensors = dense.state->tensors();
    PackedCopies rounded(*dense.model, packedInSource(dense.source.config, tensors), dense.state.get(), nullptr);
    moveMasters(dense);
    rounded.refresh();
    const double changed = rounded.changedShare();
    const auto place = static_cast<std::size_t>(std::ranges::find_if(tensors, isStack) - tensors.begin());
    ASSERT_LT(place, tensors.size());
    const auto valuesOf = [&] { return downloadFloats(*dense.context, dense.state->tensors()[place].value); };
    const std::vector<float> packed = valuesOf();
    const std::vector<float> master = downloadFloats(*dense.context, dense.state->master(place));
    rounded.showMasters(true);
    const std::vector<float> shown = valuesOf();
    for (std::size_t i = 0; i < shown.size(); ++i) {
        ASSERT_NEAR(shown[i], master[i], std::fabs(master[i]) / 256) << "BF16 of the master";
    }
    EXPECT_NE(shown, packed);
    rounded.showMasters(false);
    EXPECT_EQ(valuesOf(), packed);
    EXPECT_EQ(rounded.changedShare(), changed);
}

TEST(PackedCopies, ExpertsHaveTheValuesOfTheirPackedMasters) {
    const DenseModel dense(fixture("gpt-oss-mxfp4"));
    std::vector<TrainedTensor> tensors = dense.state->tensors();
    PackedCopies rounded(*dense.model, packedInSource(dense.source.config, tensors), dense.state.get(), nullptr);
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
    std::vector<TrainedTensor> tensors = dense.state->tensors();
    PackedCopies rounded(*dense.model, packedInSource(dense.source.config, tensors), dense.state.get(), nullptr);
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
    std::vector<TrainedTensor> tensors = llama.state->tensors();
    EXPECT_TRUE(packedInSource(llama.source.config, tensors).empty());
}

/// Fake and real quantization are the same bytes, and copies stay where they are.
TEST(PackedCopies, ConvertingTheMastersGivesTheBytesOfTheCopies) {
    for (const char* target : {"int4", "fp8"}) {
        const DenseModel dense(fixture("llama"));
        const Quantization quantization =
            conversionTarget(target,
                             std::string_view(target) == "int4" ? std::optional<std::int64_t>(32) : std::nullopt,
                             std::nullopt, std::string_view(target) == "int4" ? "seven" : "")
                .value();
        std::vector<PackedTarget> targets;
        for (std::size_t i = 0; i < dense.state->tensors().size(); ++i) {
            const TrainedTensor& tensor = dense.state->tensors()[i];
            if (tensor.name.find("_proj.") != std::string::npos) {
                targets.push_back({tensor.name, i, std::nullopt, quantization.packing, quantization.packing.rule,
                                   tensor.value.dtype});
            }
        }
        PackedCopies copies(*dense.model, targets, dense.state.get(), nullptr);
        copies.refresh();
        const void* const place = copies.copy(0).data.data;
        moveMasters(dense);
        copies.refresh();
        EXPECT_EQ(copies.copy(0).data.data, place);
        EXPECT_GT(copies.changedShare(), 0.1);
        dense.state->valuesFromMasters();
        const test::TempFolder folder;
        base::ThreadPool pool(2);
        writeMergedModel(folder.path() + "/masters", dense.source, *dense.model, kernels::WeightFormat::Dense, nullptr);
        convertModel(openModel(folder.path() + "/masters"), {quantization, {}, {}}, folder.path() + "/packed", pool,
                     nullptr, {});
        const ModelSource source = openModel(folder.path() + "/packed");
        const Model packed(*dense.context, source, ModelOptions(), nullptr);
        for (std::size_t i = 0; i < targets.size(); ++i) {
            const std::string& name = targets[i].weight;
            const auto real = std::ranges::find(packed.parameters(), name, &Parameter::name);
            ASSERT_NE(real, packed.parameters().end()) << name;
            const kernels::WeightView& fake = copies.copy(i);
            ASSERT_EQ(real->view.data.bytes(), fake.data.bytes()) << name;
            ASSERT_EQ(real->view.scales.bytes(), fake.scales.bytes()) << name;
            EXPECT_EQ(std::memcmp(real->view.data.data, fake.data.data, fake.data.bytes()), 0) << name;
            EXPECT_EQ(std::memcmp(real->view.scales.data, fake.scales.data, fake.scales.bytes()), 0) << name;
        }
    }
}

} // namespace
} // namespace vitrine::engine
