// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Runs whose numbers stop being numbers end, and say where.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/broken_model.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class BrokenWeights : public testing::Test {
protected:
    std::string failureOf(Json experiment) const {
        experiment["vitrine"] = 1;
        experiment["backend"] = "cpu";
        experiment["model"] = model_;
        try {
            runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return {};
    }
    void SetUp() override { test::copyWithBrokenRow("llama", model_, "model.layers.1.mlp.down_proj.weight", 3); }

    test::TempFolder folder_;
    std::string model_ = folder_.path() + "/broken";
};

TEST_F(BrokenWeights, TrainingEndsAtTheStepAndSaysWhat) {
    const Json training = {{"workload", "finetune"}, {"steps", 3}, {"batch", 1}, {"prompt_length", 12}};
    EXPECT_THAT(failureOf(training), AllOf(HasSubstr("the loss is "), HasSubstr("at step 1;")));
}

TEST_F(BrokenWeights, GenerateAndBatchNameTheLayerAndTheStep) {
    EXPECT_THAT(failureOf({{"workload", "generate"}, {"tokens", {1, 2, 3}}, {"max_new_tokens", 4}}),
                AllOf(HasSubstr("the output of layer 1 "), HasSubstr("prefill step 0")));
    EXPECT_THAT(failureOf({{"workload", "batch"}, {"trace", "fixed"}, {"requests", 2}, {"new_tokens", "4"}}),
                AllOf(HasSubstr("the output of layer 1 "), HasSubstr("step 0")));
}

} // namespace
} // namespace vitrine::engine
