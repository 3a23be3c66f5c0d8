// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What a plan says of a run against what the run then takes.
#include "app/runner/recording/run_prediction.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/workload/common/workload.h"

namespace vitrine::app {
namespace {

using Json = nlohmann::json;
using engine::Experiment;

void expectPredicted(const Json& spec) {
    const Experiment experiment = Experiment::parse(spec, "test");
    const std::optional<std::uint64_t> predicted = predictedPeak(experiment, {});
    ASSERT_TRUE(predicted.has_value());
    const auto measured = engine::runExperiment(experiment, engine::WorkloadSinks{}, {})["peak_bytes"].get<double>();
    EXPECT_NEAR(static_cast<double>(*predicted), measured, 0.01 * measured);
}

TEST(RunPredictionTest, AnAnswerTakesWhatItsPlanSays) {
    expectPredicted({{"vitrine", 1},
                     {"workload", "generate"},
                     {"model", "synthetic:tiny-gpt-oss"},
                     {"prompt_length", 64},
                     {"max_new_tokens", 8},
                     {"backend", "cpu"}});
}

TEST(RunPredictionTest, ATrainingTakesWhatItsPlanSays) {
    expectPredicted({{"vitrine", 1},
                     {"workload", "finetune"},
                     {"model", "synthetic:tiny-gpt-oss"},
                     {"prompt_length", 64},
                     {"steps", 2},
                     {"backend", "cpu"}});
}

TEST(RunPredictionTest, PlansAndWhatHasNoneAreNotPredicted) {
    const Json spec = {{"vitrine", 1},
                       {"workload", "generate"},
                       {"model", "synthetic:tiny-gpt-oss"},
                       {"prompt_length", 64},
                       {"backend", "meta"}};
    EXPECT_FALSE(predictedPeak(Experiment::parse(spec, "test"), {}).has_value());
    EXPECT_FALSE(predictedPeak(Experiment::parse(spec, "test").asPlan(), {}).has_value());
}

} // namespace
} // namespace vitrine::app
