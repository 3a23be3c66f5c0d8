// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Updates of a policy against losses, KL, shares of clipped tokens and gradients that PyTorch made
// (tests/fixtures/grpo-*).

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/rl/rollout_testing.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using test::fixture;
using testing::HasSubstr;

class PolicyRun : public testing::Test {
protected:
    static Json experimentOf(const std::string& model, const Json& more = Json::object()) {
        Json experiment = {{"vitrine", 1},
                           {"workload", "rl"},
                           {"backend", "cpu"},
                           {"model", fixture(model)},
                           {"rollouts", fixture("grpo-" + model + "/rollouts.safetensors")},
                           {"method", "full"},
                           {"lr", 0.0002},
                           {"weight_decay", 0},
                           {"updates", 3},
                           {"dtype", "float32"}};
        experiment.update(more);
        return experiment;
    }
    static Json run(const Json& experiment) {
        return runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
    }
    static std::string failure(const Json& experiment) {
        return test::failure([&] { run(experiment); });
    }
    /// The loss of the fixture, which sums with weights of its own.
    static Json asPyTorch(const std::string& model) {
        return model == "llama" ? Json{{"kl", 0.05}}
                                : Json{{"aggregation", "sequence"}, {"clip_high", 0.2}, {"importance_cap", 0}};
    }
    std::string at(const std::string& name) const { return folder_.file(name); }

    test::TempFolder folder_;
};

void expectNear(const Json& actual, const Json& expected, double tolerance, const std::string& what) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(actual[i].get<double>(), expected[i].get<double>(), tolerance) << what << " " << i;
    }
}

class PolicyFixture : public PolicyRun, public testing::WithParamInterface<std::tuple<const char*, Json>> {};

TEST_P(PolicyFixture, LossesKlClipsAndGradientsAreThoseOfPyTorch) {
    const std::string model = std::get<0>(GetParam());
    const std::string gradients = at("gradients.safetensors");
    Json more = asPyTorch(model);
    more.update(std::get<1>(GetParam()));
    more["save_gradients"] = gradients;
    const Json out = run(experimentOf(model, more));
    const Json expected = Json::parse(std::ifstream(fixture("grpo-" + model + "/expected.json")));
    expectNear(out["losses"], expected["loss"], 1e-4, "loss");
    expectNear(out["kl"], expected["kl_k3"], 1e-4, "kl");
    expectNear(out["clip_share"], expected["clip_share"], 1e-6, "clip share");
    expectNear(out["mean_ratio"], expected["mean_ratio"], 1e-3, "ratio");
    EXPECT_NEAR(out["logprob_abs_diff"].get<double>(), expected["logprob_abs_diff"].get<double>(), 1e-5);
    EXPECT_NEAR(out["mismatch_k3"].get<double>(), expected["mismatch_k3"].get<double>(), 1e-5);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_NEAR(out["grad_norms"][i].get<double>(), expected["grad_norm"][i].get<double>(), 0.01) << i;
        EXPECT_GT(out["entropy"][i].get<double>(), 0);
    }
    const std::string theirs = fixture("grpo-" + model + "/grads-step0.safetensors");
    const auto file = SafetensorsFile::open(theirs);
    for (const TensorEntry& tensor : file->tensors()) {
        EXPECT_LT(test::relativeError(test::readTensor<float>(gradients, tensor.name),
                                      test::readTensor<float>(theirs, tensor.name)),
                  2e-3)
            << tensor.name;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, PolicyFixture,
    testing::Combine(testing::Values("llama", "qwen3-moe"),
                     testing::Values(Json::object(), Json{{"share_prompts", false}}, Json{{"batch", 2}},
                                     Json{{"checkpoint", "none"}, {"loss_chunks", "3"}, {"tiled_mlp", "on"}},
                                     Json{{"checkpoint", "offload"}})),
    [](const auto& info) {
        return std::string(std::get<0>(info.param) == std::string("llama") ? "llama" : "qwen3_moe") +
               std::to_string(info.index);
    });

/// The file of the fixture of llama without some tensors.
std::string without(const test::TempFolder& folder, const std::vector<std::string>& names) {
    const std::string path = fixture("grpo-llama/rollouts.safetensors");
    test::TensorFileMaker maker;
    const auto file = SafetensorsFile::open(path);
    for (const TensorEntry& tensor : file->tensors()) {
        if (std::ranges::find(names, tensor.name) != names.end()) {
            continue;
        }
        if (tensor.dtype == kernels::DType::F32) {
            maker.set(tensor.name, tensor.shape, test::readTensor<float>(path, tensor.name));
        } else {
            maker.set(tensor.name, tensor.shape, test::readTensor<std::int32_t>(path, tensor.name));
        }
    }
    return folder.write("part.safetensors", maker.bytes());
}

TEST_F(PolicyRun, WithoutOldLogProbabilitiesTheRunTakesItsOwn) {
    const std::string part = without(folder_, {"old_logprobs", "reference_logprobs"});
    const Json out = run(experimentOf("llama", {{"rollouts", part}, {"kl", 0.05}, {"updates", 3}}));
    EXPECT_EQ(out["mean_ratio"][0], 1.0) << "to the bit";
    EXPECT_EQ(out["kl"][0], 0.0);
    EXPECT_NE(out["mean_ratio"][1], 1.0);
    EXPECT_GT(out["kl"][2].get<double>(), 0);
    Json one = experimentOf("llama", {{"rollouts", part}, {"updates", 1}});
    EXPECT_EQ(run(one)["mean_ratio"], Json::array({1.0}));
}

TEST_F(PolicyRun, AResumedRunGoesOnToTheBit) {
    const std::string part = without(folder_, {"old_logprobs", "reference_logprobs"});
    const Json more = {{"rollouts", part}, {"kl", 0.05}, {"updates", 4}, {"dtype", "bfloat16"}, {"method", "lora"}};
    const Json whole = run(experimentOf("llama", more));
    Json cut = experimentOf("llama", more);
    cut["output"] = at("out");
    cut["save_every"] = 2;
    cut["updates"] = 2;
    run(cut);
    cut["resume"] = at("out");
    cut["updates"] = 4;
    const Json resumed = run(cut);
    for (const char* key : {"losses", "kl", "clip_share", "entropy", "mean_ratio", "grad_norms", "logprob_abs_diff"}) {
        EXPECT_EQ(resumed[key], whole[key]) << key;
    }
    cut["clip_low"] = 0.1;
    cut["updates"] = 5;
    EXPECT_THAT(failure(cut), HasSubstr("was trained with --clip-low 0.2"));
    cut["clip_low"] = 0.2;
    cut["rollouts"] = fixture("grpo-llama/rollouts.safetensors");
    EXPECT_THAT(failure(cut), HasSubstr("other contents"));
}

TEST_F(PolicyRun, AnAdapterThatGoesOnIsHeldToItsBase) {
    const std::string part = without(folder_, {"old_logprobs", "reference_logprobs"});
    Json first = experimentOf("llama", {{"rollouts", part}, {"method", "lora"}, {"updates", 6}, {"lr", 0.01}});
    first["output"] = at("adapter");
    const Json before = run(first);
    Json more = experimentOf("llama", {{"rollouts", part}, {"method", "lora"}, {"kl", 0.05}, {"updates", 1}});
    more["adapter"] = at("adapter");
    const Json out = run(more);
    EXPECT_GT(out["kl"][0].get<double>(), before["kl"][5].get<double>() * 0.9);
    EXPECT_EQ(out["mean_ratio"][0], 1.0);
}

TEST_F(PolicyRun, QuantizedPoliciesTrainAndSave) {
    for (const char* method : {"full", "lora", "qlora"}) {
        Json experiment = experimentOf("llama", {{"method", method}, {"qat", "int4"}, {"output", at(method)}});
        const Json out = run(experiment);
        EXPECT_EQ(out["losses"].size(), 3U) << method;
        EXPECT_EQ(out["codes_changed"].size(), 3U) << method;
        EXPECT_TRUE(std::filesystem::exists(at(std::string(method) + "/metrics.csv")));
    }
}

TEST_F(PolicyRun, PlansPriceAnUpdateWithoutValues) {
    Json experiment = experimentOf("llama", {{"plan", true}, {"device_profile", "h200"}});
    const Json out = run(experiment);
    EXPECT_TRUE(out["fits"].get<bool>());
    EXPECT_GT(out["step_seconds_estimate"].get<double>(), 0);
    EXPECT_GT(out["peak_by_category"]["gradients"].get<std::int64_t>(), 0);
    experiment["vram_budget"] = "100KiB";
    EXPECT_FALSE(run(experiment)["fits"].get<bool>());
}

TEST_F(PolicyRun, WhatCannotBeTrainedIsSaidInOneSentence) {
    EXPECT_THAT(failure(experimentOf("llama", {{"rollouts", without(folder_, {"rollout_logprobs"})}})),
                HasSubstr("rollout_logprobs: missing, and importance_cap is 2"));
    EXPECT_THAT(failure(experimentOf("llama", {{"rollouts", without(folder_, {"lengths"})}})),
                HasSubstr("part.safetensors: lengths: missing"));
    EXPECT_THAT(failure(experimentOf("llama", {{"temperature", 0}})), HasSubstr("temperature: is 0"));
    EXPECT_THAT(failure(experimentOf("llama", {{"steps", 3}})), HasSubstr("steps"));
    Json none = experimentOf("llama");
    none.erase("rollouts");
    EXPECT_THAT(failure(none), HasSubstr("rollouts: missing"));
}

} // namespace
} // namespace vitrine::engine
