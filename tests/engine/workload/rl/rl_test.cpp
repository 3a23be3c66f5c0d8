// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include <cmath>
#include <filesystem>
#include <gmock/gmock.h>

#include "engine/rl/policy/rollouts.h"
#include "tests/engine/rl/policy/rollout_testing.h"
#include "tests/engine/workload/rl/policy_testing.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using test::fixture;
using test::PolicyRun;
using testing::HasSubstr;

class PolicyFixture : public PolicyRun, public testing::WithParamInterface<std::tuple<const char*, Json>> {};

TEST_P(PolicyFixture, LossesKlClipsAndGradientsAreThoseOfPyTorch) {
    expectAsPyTorch(std::get<0>(GetParam()), std::get<1>(GetParam()));
}

std::string nameOf(const testing::TestParamInfo<PolicyFixture::ParamType>& item) {
    const bool dense = std::get<0>(item.param) == std::string("llama");
    return (dense ? "llama" : "qwen3_moe") + std::to_string(item.index);
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, PolicyFixture,
    testing::Combine(testing::Values("llama", "qwen3-moe"),
                     testing::Values(Json::object(), Json{{"share_prompts", false}},
                                     Json{{"batch", 2}, {"checkpoint", "layer"}},
                                     Json{{"checkpoint", "none"}, {"loss_chunks", "3"}, {"tiled_mlp", "on"}},
                                     Json{{"checkpoint", "offload"}})),
    nameOf);

TEST_F(PolicyRun, WithoutOldLogProbabilitiesTheRunTakesItsOwn) {
    const std::string part = without({"old_logprobs", "reference_logprobs"});
    const Json out = run(experimentOf("llama", {{"rollouts", part}, {"kl", 0.05}, {"updates", 3}}));
    EXPECT_EQ(out["mean_ratio"][0], 1.0) << "to the bit";
    EXPECT_EQ(out["kl"][0], 0.0);
    EXPECT_NE(out["mean_ratio"][1], 1.0);
    EXPECT_GT(out["kl"][2].get<double>(), 0);
    Json one = experimentOf("llama", {{"rollouts", part}, {"updates", 1}});
    EXPECT_EQ(run(one)["mean_ratio"], Json::array({1.0}));
}

TEST_F(PolicyRun, AResumedRunGoesOnToTheBit) {
    const std::string part = without({"old_logprobs", "reference_logprobs"});
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

TEST_F(PolicyRun, ARunOfOneUpdateGoesOnToo) {
    const std::string part = without({"old_logprobs", "reference_logprobs"});
    const Json more = {{"rollouts", part}, {"kl", 0.05}, {"updates", 3}};
    Json one = experimentOf("llama", more);
    one.update({{"updates", 1}, {"save_every", 1}, {"output", at("one")}});
    run(one);
    one.update({{"updates", 3}, {"resume", at("one")}});
    const Json whole = run(experimentOf("llama", more)), resumed = run(one);
    EXPECT_EQ(resumed["losses"], whole["losses"]);
    EXPECT_EQ(resumed["kl"], whole["kl"]);
}

TEST_F(PolicyRun, AnAdaptersBaseIsTheReferenceAfterACheckpointToo) {
    const std::string part = without({"reference_logprobs"}); // the old log-probabilities are there
    Json first = experimentOf("llama", {{"method", "lora"}, {"updates", 2}, {"lr", 0.01}, {"output", at("adapter")}});
    run(first);
    for (const char* qat : {"none", "int4"}) {
        const Json more = {
            {"rollouts", part}, {"method", "lora"}, {"adapter", at("adapter")}, {"kl", 0.05}, {"qat", qat}};
        const Json whole = run(experimentOf("llama", more));
        Json cut = experimentOf("llama", more);
        cut.update({{"updates", 1}, {"save_every", 1}, {"output", at(std::string("cut-") + qat)}});
        run(cut);
        cut.update({{"updates", 3}, {"resume", at(std::string("cut-") + qat)}});
        const Json resumed = run(cut);
        EXPECT_EQ(resumed["losses"], whole["losses"]) << qat;
        EXPECT_EQ(resumed["kl"], whole["kl"]) << qat;
    }
}

TEST_F(PolicyRun, AnAdapterThatGoesOnIsHeldToItsBase) {
    const std::string part = without({"old_logprobs", "reference_logprobs"});
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

TEST_F(PolicyRun, LogProbabilitiesOfAnotherWorldAreNamedByRowAndToken) {
    const std::string path = fixture("grpo-llama/rollouts.safetensors");
    const Rollouts rollouts = readRollouts(path, 512);
    const auto spoiled = [&](float old, float rollout, float reference, float advantage, double cap = 2) {
        Rollouts out = rollouts;
        const auto place = static_cast<std::size_t>(2 * out.width + out.promptLengths[2]);
        out.old[place] = std::isnan(old) ? out.old[place] : old;
        out.rollout[place] = std::isnan(rollout) ? out.rollout[place] : rollout;
        out.reference[place] = std::isnan(reference) ? out.reference[place] : reference;
        out.advantages[2] = advantage;
        writeRollouts(at("spoiled.safetensors"), out);
        return failure(
            experimentOf("llama", {{"rollouts", at("spoiled.safetensors")}, {"kl", 0}, {"importance_cap", cap}}));
    };
    const std::string where = "row 2: token " + std::to_string(rollouts.promptLengths[2]) + ": ";
    for (const float advantage : {-1.0F, 1.0F}) {
        EXPECT_THAT(spoiled(-100, NAN, NAN, -1, 0),
                    HasSubstr("spoiled.safetensors: old_logprobs: " + where + "-100 is"));
        EXPECT_THAT(spoiled(-1e30F, NAN, NAN, advantage), HasSubstr("old_logprobs: " + where));
        EXPECT_THAT(spoiled(NAN, -1e30F, NAN, advantage), HasSubstr("rollout_logprobs: " + where));
        EXPECT_THAT(spoiled(NAN, NAN, 1e30F, advantage), HasSubstr("reference_logprobs: " + where));
    }
}

TEST_F(PolicyRun, WhatCannotBeTrainedIsSaidInOneSentence) {
    EXPECT_THAT(failure(experimentOf("llama", {{"rollouts", without({"rollout_logprobs"})}})),
                HasSubstr("rollout_logprobs: missing, and importance_cap is 2"));
    EXPECT_THAT(failure(experimentOf("llama", {{"rollouts", without({"lengths"})}})),
                HasSubstr("part.safetensors: lengths: missing"));
    EXPECT_THAT(failure(experimentOf("llama", {{"temperature", 0}})), HasSubstr("temperature: is 0"));
    EXPECT_THAT(failure(experimentOf("llama", {{"steps", 3}})), HasSubstr("steps"));
    Json none = experimentOf("llama");
    none.erase("rollouts");
    EXPECT_THAT(failure(none), HasSubstr("task: missing; name a task, the data to ask, or rollouts that are given"));
}

} // namespace
} // namespace vitrine::engine
