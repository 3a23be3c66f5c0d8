// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What a plan that does not fit is told really fits when it is planned again.
#include "engine/workload/planner/plan_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/common/workload.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

Json tooLong() {
    return {{"vitrine", 1},
            {"workload", "generate"},
            {"model", "synthetic:llama-3.1-8b"},
            {"prompt_length", 100000},
            {"device_profile", "h100-80gb"},
            {"backend", "meta"},
            {"plan", true},
            {"vram_budget", 25'000'000'000ULL}};
}

TEST(PlanAdviceTest, EachChangeFitsWhenItIsPlanned) {
    const Experiment planned = Experiment::parse(tooLong(), "test");
    ASSERT_FALSE(planExperiment(planned, WorkloadSinks{}, {})["fits"].get<bool>());
    const PlanAdvice advice = planAdvice(planned, 4, {});
    EXPECT_FALSE(advice.before.fits);
    ASSERT_THAT(advice.changes, SizeIs(4));
    for (const Json& row : planAdviceJson(advice, planned)) {
        Json spec = tooLong();
        spec.update(row["options"]);
        const Json plan = planExperiment(Experiment::parse(spec, "test"), WorkloadSinks{}, {});
        EXPECT_TRUE(plan["fits"].get<bool>()) << row;
        EXPECT_EQ(plan["peak_reserved_bytes"], row["reserved_bytes"]) << row;
    }
}

TEST(PlanAdviceTest, TheTableHasTheOptionsAsTheyAreTyped) {
    const Experiment planned = Experiment::parse(tooLong(), "test");
    const std::string text = planAdviceText(planAdvice(planned, 1, {}), planned);
    EXPECT_THAT(text, HasSubstr("--kv-dtype"));
    EXPECT_THAT(text, HasSubstr("the same work"));
}

TEST(PlanAdviceTest, SaysThatNothingHelps) {
    Json spec = tooLong();
    spec["vram_budget"] = 1'000'000'000ULL;
    const Experiment planned = Experiment::parse(spec, "test");
    const PlanAdvice advice = planAdvice(planned, 4, {});
    for (const PlanChange& change : advice.changes) {
        EXPECT_TRUE(change.price.fits);
    }
    EXPECT_THAT(planAdviceText({}, planned), HasSubstr("Does not fit"));
}

TEST(PlanAdviceTest, IsInterrupted) {
    base::StopSource stop;
    stop.request_stop();
    EXPECT_THROW(planAdvice(Experiment::parse(tooLong(), "test"), 4, stop.get_token()), base::Cancelled);
}

} // namespace
} // namespace vitrine::engine
