// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Updates of a policy on a GPU.

#include "tests/engine/workload/rl/policy_testing.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

class PolicyGpu : public test::PolicyRun {};

TEST_F(PolicyGpu, InFloat32AsPyTorch) {
    VITRINE_NEEDS_GPU();
    for (const char* model : {"llama", "qwen3-moe"}) {
        for (const bool share : {true, false}) {
            SCOPED_TRACE(std::string(model) + (share ? ", shared prompts" : ", separate rows"));
            expectAsPyTorch(model, {{"backend", "cuda"}, {"share_prompts", share}});
        }
    }
}

TEST_F(PolicyGpu, TokensOfTheWeightsOfNowHaveTheRatioOne) {
    VITRINE_NEEDS_GPU();
    const Json more = {{"backend", "cuda"}, {"dtype", "bfloat16"}, {"method", "lora"}, {"importance_cap", 0}};
    Json experiment = experimentOf("llama", more);
    experiment["rollouts"] = without({"old_logprobs", "reference_logprobs"});
    const Json once = run(experiment);
    EXPECT_EQ(once["mean_ratio"][0], 1.0);
    EXPECT_EQ(once["kl"][0], 0.0);
    EXPECT_EQ(run(experiment)["losses"], once["losses"]) << "the same bits again";
}

} // namespace
} // namespace vitrine::engine
