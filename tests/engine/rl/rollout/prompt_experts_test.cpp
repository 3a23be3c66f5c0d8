// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rollout/prompt_experts.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

#include "engine/rl/rollout/rollout_engine.h"
#include "tests/engine/generation/expert_reference.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

/// Groups of four answers; the prompts have these lengths.
std::vector<GenerateRequest> groupRequests(const std::vector<std::size_t>& lengths) {
    std::vector<GenerateRequest> out;
    for (std::size_t group = 0; group < lengths.size(); ++group) {
        GenerateRequest request;
        request.returnsExperts = true;
        request.sampling.temperature = 1;
        for (std::size_t t = 0; t < lengths[group]; ++t) {
            // All prompts begin alike.
            request.prompt.push_back(static_cast<std::int32_t>((5 * t + (t < 9 ? 0 : group) + 1) % 200));
        }
        for (std::size_t answer = 0; answer < 4; ++answer) {
            request.maxNewTokens = answer == 1 ? 1 : 6 + static_cast<std::int64_t>(4 * answer);
            request.samplingNumber = static_cast<std::uint32_t>(4 * group + answer);
            out.push_back(request);
        }
    }
    return out;
}

struct RolloutRig {
    explicit RolloutRig(kernels::Backend backend = kernels::Backend::Cpu)
        : context(test::makeContext(backend)),
          model(*context, openModel("synthetic:tiny-qwen3-moe"), ModelOptions{}, nullptr) {
        options.cache.dtype = kernels::DType::F32;
        options.cache.pageTokens = 4;
        options.cache.sharePrefixes = true;
        options.scheduler.slots = 3;
        options.scheduler.tokenBudget = 64;
    }

    std::map<std::size_t, GenerateResult> sample(const std::vector<GenerateRequest>& requests) {
        RolloutEngine engine(model, nullptr, options);
        std::map<std::size_t, GenerateResult> out;
        engine.sample(requests, [&](std::size_t request, GenerateResult& result) { out[request] = std::move(result); });
        engine.sleep();
        counts = engine.takeCounts();
        return out;
    }

    std::unique_ptr<kernels::Context> context;
    Model model;
    BatchOptions options;
    RolloutCounts counts;
};

TEST(PromptExperts, AnswersGetThemFromTheFirstOfTheirGroup) {
    RolloutRig rig;
    const std::vector<GenerateRequest> requests = groupRequests({30, 7, 21, 14});
    for (const bool shares : {true, false}) {
        for (const std::int64_t pages : {0, 20}) {
            SCOPED_TRACE(pages);
            rig.options.cache.sharePrefixes = shares;
            rig.options.cache.poolPages = pages;
            const std::map<std::size_t, GenerateResult> results = rig.sample(requests);
            ASSERT_EQ(results.size(), requests.size());
            std::set<const ExpertChoices*> held;
            for (const auto& [place, result] : results) {
                SCOPED_TRACE(place);
                test::expectExperts(rig.model, requests[place], result);
                held.insert(result.experts.before.get());
            }
            EXPECT_EQ(rig.counts.sharedTokens > 0, shares);
            EXPECT_EQ(results.at(2).experts.before != nullptr, shares) << "of a long prompt";
            EXPECT_LE(held.size(), 5U) << "one copy for each group";
        }
    }
}

TEST(PromptExperts, HaveTheirBytesInAPlanToo) {
    const std::vector<GenerateRequest> requests = groupRequests({30, 21});
    RolloutRig rig, plan(kernels::Backend::Meta);
    const std::map<std::size_t, GenerateResult> real = rig.sample(requests);
    const std::map<std::size_t, GenerateResult> planned = plan.sample(requests);
    for (const auto& [place, result] : real) {
        EXPECT_EQ(planned.at(place).experts.tokens(), result.experts.tokens()) << place;
        EXPECT_TRUE(planned.at(place).experts.complete()) << place;
    }
}

TEST(PromptExperts, OfAnAnswerWithoutItsFirstStayMissing) {
    PromptExperts prompts;
    std::vector<GenerateRequest> requests = groupRequests({30});
    for (GenerateRequest& request : requests) {
        prompts.note(request, 0, true);
    }
    EXPECT_TRUE(requests[0].readsWholePrompt);
    EXPECT_FALSE(requests[1].readsWholePrompt);
    GenerateResult follower;
    follower.promptTokens = 3;
    follower.experts = {2, {1, 1, 1, {7, 8}}, nullptr};
    prompts.complete(1, follower);
    EXPECT_FALSE(follower.experts.complete());
    GenerateResult first;
    first.promptTokens = 3;
    first.experts = {0, {1, 1, 1, {4, 5, 6, 7}}, nullptr};
    prompts.read(0, first);
    prompts.complete(0, first);
    EXPECT_EQ(first.experts.firstKnown, 3) << "one copy serves all";
    EXPECT_EQ(first.experts.choices.bytes, std::vector<std::uint8_t>({7}));
    EXPECT_EQ(first.experts.id(1, 0, 0), 5);
    prompts.complete(2, follower);
    EXPECT_TRUE(follower.experts.complete());
    EXPECT_EQ(follower.experts.id(1, 0, 0), 5);
    EXPECT_EQ(follower.experts.before.use_count(), 3) << "two answers, and the group has one to come";
    GenerateResult last;
    prompts.complete(3, last);
    EXPECT_EQ(follower.experts.before.use_count(), 2);
}

} // namespace
} // namespace vitrine::engine
