// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rollout/rollout_engine.h"

#include <gtest/gtest.h>
#include <mutex>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/context/context.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

std::vector<GenerateRequest> answersToOnePrompt(std::int64_t tokens) {
    GenerateRequest request;
    request.prompt = {5, 6, 7, 8, 9, 10, 11, 12, 13};
    request.sampling.temperature = 1;
    request.maxNewTokens = tokens;
    std::vector<GenerateRequest> out(3, request);
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i].samplingNumber = static_cast<std::uint32_t>(i);
    }
    return out;
}

BatchOptions smallOptions() {
    BatchOptions out;
    out.cache.dtype = kernels::DType::F32;
    out.cache.pageTokens = 4;
    out.cache.sharePrefixes = true;
    out.scheduler.slots = 3;
    out.scheduler.tokenBudget = 64;
    return out;
}

/// Keeps the numbers of requests.
class ArrivalSink final : public base::TraceSink {
public:
    base::StringId intern(std::string_view) override { return {1}; }
    void record(const base::TraceEvent& event) override {
        const auto* request = std::get_if<base::RequestEvent>(&event);
        if (request != nullptr && request->phase == base::RequestChange::Arrived) {
            const std::lock_guard lock(mutex_);
            arrived_.push_back(request->request);
        }
    }
    const std::vector<std::int32_t>& arrived() const { return arrived_; }

private:
    std::mutex mutex_;
    std::vector<std::int32_t> arrived_;
};

TEST(RolloutEngine, TwoHundredSleepsLeaveTheSameMemory) {
    const auto context = test::makeContext(kernels::Backend::Cpu);
    Model model(*context, openModel("synthetic:tiny-llama"), ModelOptions{}, nullptr);
    RolloutEngine engine(model, nullptr, smallOptions());
    const auto sample = [&](std::int64_t tokens) {
        std::vector<std::vector<std::int32_t>> ids(3);
        engine.sample(answersToOnePrompt(tokens), [&](std::size_t i, GenerateResult& result) { ids[i] = result.ids; });
        return ids;
    };
    const std::uint64_t before = context->memory().statistics().current;
    const auto first = sample(6);
    engine.sleep();
    const kernels::MemoryStatistics slept = context->memory().statistics();
    EXPECT_EQ(slept.current, before);
    for (std::int64_t cycle = 0; cycle < 200; ++cycle) {
        const auto again = sample(6 + cycle % 7);
        engine.weightsChanged();
        ASSERT_EQ(context->memory().statistics().reserved, slept.reserved) << cycle;
        ASSERT_EQ(context->memory().statistics().current, slept.current) << cycle;
        ASSERT_EQ(std::vector(again[1].begin(), again[1].begin() + 6), first[1]) << "the same weights, the same answer";
    }
    EXPECT_EQ(engine.version(), 200);
}

TEST(RolloutEngine, NumbersOfRequestsAreTheirOwnInTheWholeRun) {
    ArrivalSink trace;
    const auto context = test::makeContext(kernels::Backend::Cpu, &trace);
    Model model(*context, openModel("synthetic:tiny-llama"), ModelOptions{}, nullptr);
    RolloutEngine engine(model, nullptr, smallOptions());
    engine.setRequests(10); // of a training that goes on
    std::vector<std::vector<std::int32_t>> ids;
    const auto keep = [&](std::size_t, GenerateResult& result) { ids.push_back(result.ids); };
    engine.sample(answersToOnePrompt(2), keep);
    engine.sleep();
    engine.sample(answersToOnePrompt(2), keep);
    engine.weightsChanged();
    engine.sample(answersToOnePrompt(2), keep);
    EXPECT_EQ(engine.requests(), 19);
    EXPECT_EQ(trace.arrived(), (std::vector<std::int32_t>{10, 11, 12, 13, 14, 15, 16, 17, 18}));
    EXPECT_EQ(ids[3], ids[0]) << "what is sampled depends on no such number";
}

TEST(RolloutEngine, GoesOnAfterRequestsThatFitNoPool) {
    const auto context = test::makeContext(kernels::Backend::Cpu);
    Model model(*context, openModel("synthetic:tiny-llama"), ModelOptions{}, nullptr);
    BatchOptions options = smallOptions();
    options.cache.poolPages = 6; // 24 tokens
    RolloutEngine engine(model, nullptr, options);
    const auto ignore = [](std::size_t, GenerateResult&) {};
    const std::uint64_t before = context->memory().statistics().current;
    EXPECT_THROW(engine.sample(answersToOnePrompt(100), ignore), base::BadInput);
    EXPECT_EQ(context->memory().statistics().current, before) << "nothing is left of it";
    engine.sample(answersToOnePrompt(5), ignore);
    engine.sleep();
    EXPECT_EQ(engine.takeCounts().tokens, 15);
}

} // namespace
} // namespace vitrine::engine
