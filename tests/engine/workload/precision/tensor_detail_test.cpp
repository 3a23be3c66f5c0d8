// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// One matrix of a small model in each format against plain loops over its values.

#include "engine/workload/precision/tensor_detail.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/convert/weight_reader.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"

namespace vitrine::engine {
namespace {

using testing::HasSubstr;

constexpr const char* kDown = "model.layers.1.mlp.down_proj.weight";

class TensorDetails : public testing::Test {
protected:
    void SetUp() override {
        const nlohmann::json spec = {{"vitrine", 1},
                                     {"workload", "synthesize"},
                                     {"model", "synthetic:tiny-llama"},
                                     {"set", {{"num_hidden_layers", "2"}, {"intermediate_size", "128"}}},
                                     {"output", folder_.file("model")}};
        runExperiment(Experiment::parse(spec, "experiment"), {}, {});
        lab_ = std::make_unique<TensorLab>(openModel(folder_.file("model")), pool_);
    }
    std::vector<float> values() {
        const ModelSource source = openModel(folder_.file("model"));
        WeightReader reader(source, pool_);
        return reader.matrix({kDown, {64, 128}, ModelPart::DenseMlp}, 0);
    }

    test::TempFolder folder_;
    base::ThreadPool pool_{2};
    std::unique_ptr<TensorLab> lab_;
};

TEST_F(TensorDetails, GroupsOfEachFormatLieOnTheirLevels) {
    for (const std::string name :
         {"int4:32", "int4:-1", "awq:32", "gptq:16", "int8", "fp8", "fp8:-1", "mxfp4", "nf4"}) {
        const PrecisionFormat format = precisionFormat(name);
        const TensorDetail detail = lab_->detail(kDown, -1, format, {});
        ASSERT_EQ(detail.groupRms.size(), static_cast<std::size_t>(detail.groupsPerRow * detail.out)) << name;
        double squared = 0;
        for (std::size_t g = 0; g < detail.groupRms.size(); ++g) {
            const GroupDetail group = lab_->group(kDown, -1, format, static_cast<std::int64_t>(g), {});
            ASSERT_EQ(group.values.size(), static_cast<std::size_t>(detail.group)) << name;
            double own = 0;
            for (std::size_t i = 0; i < group.values.size(); ++i) {
                ASSERT_LT(static_cast<std::size_t>(group.codes[i]), group.levels.size()) << name;
                ASSERT_EQ(group.levels[static_cast<std::size_t>(group.codes[i])], group.rounded[i]) << name;
                own += std::pow(static_cast<double>(group.values[i]) - group.rounded[i], 2);
            }
            EXPECT_NEAR(detail.groupRms[g], std::sqrt(own / static_cast<double>(group.values.size())), 1e-7) << name;
            EXPECT_TRUE(std::ranges::is_sorted(group.levels));
            squared += own;
        }
        EXPECT_NEAR(squared, detail.error.squaredError, 1e-5 * squared) << name;
    }
}

TEST_F(TensorDetails, CodesOfIntegersAreSigned) {
    const GroupDetail group = lab_->group(kDown, -1, precisionFormat("int4:32"), 5, {});
    ASSERT_EQ(group.levels.size(), 16U);
    EXPECT_EQ(group.zeroLevel, 8);
    for (std::size_t i = 0; i < group.values.size(); ++i) {
        EXPECT_FLOAT_EQ(group.rounded[i], static_cast<float>(group.codes[i] - group.zeroLevel) * group.step);
    }
    EXPECT_EQ(group.error.row, 1);
    EXPECT_EQ(group.error.first, 32);
}

TEST_F(TensorDetails, Mxfp4ClipsWhatLiesFarBeyondItsLastLevel) {
    const PrecisionFormat format = precisionFormat("mxfp4");
    const TensorDetail detail = lab_->detail(kDown, -1, format, {});
    std::int64_t clipped = 0;
    for (std::size_t g = 0; g < detail.groupRms.size(); ++g) {
        const GroupDetail group = lab_->group(kDown, -1, format, static_cast<std::int64_t>(g), {});
        const float power = group.levels.back() / 6; // the levels are 0, 0.5, 1, 1.5, 2, 3, 4 and 6 times it
        clipped += std::ranges::count_if(group.values, [&](float value) { return std::abs(value) > 7.125F * power; });
    }
    EXPECT_GT(clipped, 0);
    EXPECT_EQ(detail.clipped, clipped);
}

TEST_F(TensorDetails, CountsAndWorstGroupsAreThoseOfThePlainLoops) {
    const std::vector<float> plain = values();
    const TensorDetail detail = lab_->detail(kDown, -1, precisionFormat("int4:32"), {});
    const ValueHistogram& counts = detail.histogram;
    EXPECT_EQ(std::accumulate(counts.before.begin(), counts.before.end(), counts.outsideBefore),
              static_cast<std::int64_t>(plain.size()));
    EXPECT_EQ(std::accumulate(counts.after.begin(), counts.after.end(), counts.outsideAfter),
              static_cast<std::int64_t>(plain.size()));
    EXPECT_EQ(counts.outsideBefore,
              std::ranges::count_if(plain, [&](float value) { return std::abs(value) > counts.range; }));
    const auto middle = static_cast<std::ptrdiff_t>(counts.before.size() / 2);
    EXPECT_EQ(counts.before[static_cast<std::size_t>(middle)], std::ranges::count_if(plain, [&](float value) {
                  return std::abs(value) < counts.range / static_cast<float>(counts.before.size());
              }));
    EXPECT_EQ(detail.clipped, 0);
    ASSERT_FALSE(detail.worstGroups.empty());
    EXPECT_EQ(detail.worstGroups[0].rms, *std::ranges::max_element(detail.groupRms));
    EXPECT_TRUE(std::ranges::is_sorted(detail.worstGroups, std::greater{}, &GroupError::rms));
    EXPECT_GT(detail.worstPercentShare, 0);
    EXPECT_EQ(detail.worstRows.last - detail.worstRows.first + 1, 3) << "4 % of 64 rows";
    EXPECT_GT(detail.worstRows.share, 3.0 / 64);
    double signal = 0, error = 0;
    for (std::size_t row = 0; row < 64; ++row) {
        for (std::size_t g = 0; g < 4; ++g) {
            const GroupDetail group =
                lab_->group(kDown, -1, precisionFormat("int4:32"), static_cast<std::int64_t>(row * 4 + g), {});
            for (std::size_t i = 0; i < 32; ++i) {
                ASSERT_EQ(group.values[i], plain[row * 128 + g * 32 + i]);
                signal += std::pow(static_cast<double>(group.values[i]), 2);
                error += std::pow(static_cast<double>(group.values[i]) - group.rounded[i], 2);
            }
        }
    }
    EXPECT_NEAR(detail.error.signalToNoise().value(), 10 * std::log10(signal / error), 1e-9);
}

TEST_F(TensorDetails, AnOutlierIsListedAndClippedGroupsAreCounted) {
    const std::vector<float> plain = values();
    double squares = 0;
    for (const float value : plain) {
        squares += static_cast<double>(value) * value;
    }
    const auto sigma = static_cast<float>(std::sqrt(squares / static_cast<double>(plain.size())));
    const TensorDetail detail = lab_->detail(kDown, -1, precisionFormat("mxfp4"), {});
    EXPECT_EQ(detail.outlierCount,
              std::ranges::count_if(plain, [&](float value) { return std::abs(value) / sigma > 6; }));
    EXPECT_EQ(detail.outliers.size(), static_cast<std::size_t>(std::min<std::int64_t>(32, detail.outlierCount)));
}

TEST_F(TensorDetails, WhatComesOutDoesNotDependOnTheThreads) {
    base::ThreadPool one(1), three(3);
    TensorLab alone(openModel(folder_.file("model")), one), together(openModel(folder_.file("model")), three);
    for (const char* name : {"int4:32", "fp8", "nf4"}) {
        const PrecisionFormat format = precisionFormat(name);
        const TensorDetail a = alone.detail(kDown, -1, format, {}), b = together.detail(kDown, -1, format, {});
        EXPECT_EQ(a.error.squaredError, b.error.squaredError) << name;
        EXPECT_EQ(a.groupRms, b.groupRms) << name;
        EXPECT_EQ(a.histogram.before, b.histogram.before) << name;
        EXPECT_EQ(a.histogram.after, b.histogram.after) << name;
        EXPECT_EQ(a.worstPercentShare, b.worstPercentShare) << name;
    }
}

TEST_F(TensorDetails, OtherFormatsHaveTheirBytesAndErrors) {
    const std::vector<FormatChoice> choices =
        lab_->inFormats(kDown, -1,
                        {precisionFormat("bf16"), precisionFormat("int8"), precisionFormat("int4:32"),
                         precisionFormat("int4:256"), precisionFormat("mxfp4")},
                        {});
    ASSERT_EQ(choices.size(), 5U);
    EXPECT_EQ(choices[0].bytes, 64U * 128 * 2);
    EXPECT_EQ(choices[0].bitsPerWeight, 16);
    EXPECT_EQ(choices[0].error.count, 0);
    EXPECT_EQ(choices[2].bitsPerWeight, 4.5);
    EXPECT_FALSE(choices[3].packable) << "128 inputs are no group of 256";
    EXPECT_EQ(choices[4].bitsPerWeight, 4.25);
    EXPECT_LT(choices[1].error.squaredError, choices[2].error.squaredError);
    for (const char* name : {"fp8", "fp8:-1", "nf4", "awq:32", "int4:-1"}) { // rows that are rounded alone and together
        const PrecisionFormat format = precisionFormat(name);
        const FormatChoice choice = lab_->inFormats(kDown, -1, {format}, {}).front();
        const TensorDetail detail = lab_->detail(kDown, -1, format, {});
        EXPECT_NEAR(choice.error.squaredError, detail.error.squaredError, 1e-12 * detail.error.squaredError) << name;
        EXPECT_EQ(choice.bytes, detail.bytes) << name;
    }
}

TEST_F(TensorDetails, WhatIsNotThereIsSaid) {
    const auto problem = [](const auto& work) {
        try {
            work();
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return std::string();
    };
    EXPECT_THAT(problem([&] { lab_->detail("model.layers.9.mlp.down_proj.weight", -1, precisionFormat("nf4"), {}); }),
                HasSubstr("model.layers.9.mlp.down_proj.weight: the model has no such weight"));
    EXPECT_THAT(problem([&] { lab_->detail(kDown, -1, precisionFormat("int4:256"), {}); }),
                HasSubstr("INT4, g256 has no groups for its 128 inputs"));
    EXPECT_THAT(problem([&] { lab_->detail(kDown, -1, precisionFormat("bf16"), {}); }), HasSubstr("BF16"));
    EXPECT_THAT(problem([&] { lab_->group(kDown, -1, precisionFormat("int4:32"), 256, {}); }),
                HasSubstr("has no group 256; its groups are 0 to 255"));
    base::StopSource stop;
    stop.request_stop();
    EXPECT_THROW(lab_->detail(kDown, -1, precisionFormat("nf4"), stop.get_token()), base::Cancelled);
}

} // namespace
} // namespace vitrine::engine
