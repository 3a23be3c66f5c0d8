// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The planner's answers against plans made one by one: the same numbers, limits that are limits, changes that fit.
#include "engine/workload/planner/what_if.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/common/workload.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

Experiment training(std::uint64_t budget = 0) {
    Json spec = {{"vitrine", 1},      {"workload", "finetune"}, {"model", "synthetic:gpt-oss-20b"},
                 {"method", "qlora"}, {"train", "attention"},   {"checkpoint", "offload"},
                 {"tiled_mlp", "on"}, {"prompt_length", 4096},  {"device_profile", "h100-80gb"},
                 {"backend", "meta"}};
    if (budget > 0) {
        spec["vram_budget"] = budget;
    }
    return Experiment::parse(spec, "test");
}

Experiment answering(std::int64_t tokens, std::uint64_t budget) {
    const Json spec = {{"vitrine", 1},
                       {"workload", "generate"},
                       {"model", "synthetic:gpt-oss-20b"},
                       {"prompt_length", tokens},
                       {"device_profile", "h100-80gb"},
                       {"backend", "meta"},
                       {"vram_budget", budget}};
    return Experiment::parse(spec, "test");
}

Json planned(const Experiment& experiment, std::int64_t context, const std::vector<OptionEdit>& edits = {}) {
    return planExperiment(edited(plannedExperiment(experiment, context), edits), WorkloadSinks{}, {});
}

TEST(WhatIfTest, ItsNumbersAreThoseOfPlan) {
    WhatIfPlanner planner;
    const WhatIf answer = planner.answer(training(), 65536, {});
    ASSERT_EQ(answer.sets.size(), 4U);
    EXPECT_EQ(answer.chosen, 3U);
    for (const WhatIfSet& set : answer.sets) {
        const Json plan = planned(training(), 65536, set.spec.edits);
        EXPECT_EQ(set.price.reserved, plan["peak_reserved_bytes"].get<std::uint64_t>()) << set.spec.name;
        EXPECT_EQ(set.price.peak, plan["peak_bytes"].get<std::uint64_t>()) << set.spec.name;
        EXPECT_EQ(set.price.fits, plan["fits"].get<bool>()) << set.spec.name;
        EXPECT_DOUBLE_EQ(set.price.seconds, plan["step_seconds_estimate"].get<double>()) << set.spec.name;
    }
    EXPECT_TRUE(answer.complete);
}

TEST(WhatIfTest, TheLongestContextFitsAndTheNextOneDoesNot) {
    WhatIfPlanner planner;
    const WhatIf answer = planner.answer(training(), 65536, {});
    std::int64_t last = 0;
    for (const WhatIfSet& set : answer.sets) {
        ASSERT_TRUE(set.lineKnown) << set.spec.name;
        const std::int64_t longest = set.line.longest;
        EXPECT_EQ(longest % kContextUnit, 0);
        EXPECT_GT(longest, last) << set.spec.name << " buys nothing";
        EXPECT_TRUE(planned(training(), longest, set.spec.edits)["fits"].get<bool>()) << set.spec.name;
        EXPECT_FALSE(planned(training(), longest + kContextUnit, set.spec.edits)["fits"].get<bool>()) << set.spec.name;
        last = longest;
    }
}

TEST(WhatIfTest, SwitchesSaveWhatPlansWithAndWithoutThemDifferBy) {
    WhatIfPlanner planner;
    const WhatIf answer = planner.answer(training(), 65536, {});
    ASSERT_EQ(answer.switches.size(), 4U);
    for (const WhatIfSwitch& one : answer.switches) {
        const auto with = planned(training(), 65536, {one.spec.on})["peak_reserved_bytes"].get<std::int64_t>();
        const auto without = planned(training(), 65536, {one.spec.off})["peak_reserved_bytes"].get<std::int64_t>();
        EXPECT_EQ(one.saves, without - with) << one.spec.name;
    }
}

void expectChangesFit(const Experiment& experiment, std::int64_t context) {
    WhatIfPlanner planner;
    const WhatIf answer = planner.answer(experiment, context, {});
    ASSERT_EQ(answer.changed, answer.chosen);
    ASSERT_FALSE(answer.changes.empty());
    EXPECT_TRUE(answer.changes.front().price.fits);
    bool fitting = true;
    for (const PlanChange& change : answer.changes) {
        std::vector<OptionEdit> edits = answer.set().spec.edits;
        edits.insert(edits.end(), change.edits.begin(), change.edits.end());
        const Json plan = planned(experiment, context, edits);
        EXPECT_EQ(plan["fits"].get<bool>(), change.price.fits) << change.edits.front().key;
        EXPECT_TRUE(fitting || !change.price.fits) << "what fits comes first";
        fitting = change.price.fits;
    }
}

TEST(WhatIfTest, ChangesOfATrainingReallyFit) {
    expectChangesFit(training(std::uint64_t{24} << 30), 1 << 18);
}

TEST(WhatIfTest, ChangesOfAnAnswerReallyFit) {
    expectChangesFit(answering(100000, std::uint64_t{16} << 30), 100000);
}

Experiment asking(const char* method, std::uint64_t budget) {
    const Json spec = {{"vitrine", 1},      {"workload", "rl"},      {"model", "synthetic:llama-3.1-8b"},
                       {"task", "sums"},    {"method", method},      {"eval_every", 3},
                       {"backend", "meta"}, {"vram_budget", budget}, {"device_profile", "h100-80gb"}};
    return Experiment::parse(spec, "test");
}

TEST(WhatIfTest, ReinforcementLearningHasPartsAndLimitsOfItsOwn) {
    WhatIfPlanner planner;
    const WhatIf answer = planner.answer(asking("lora", std::uint64_t{40} << 30), 256, {});
    const PlanPrice& price = answer.set().price;
    ASSERT_EQ(price.roles.size(), 2U);
    EXPECT_EQ(price.peak, std::max(price.roles[0].second, price.roles[1].second));
    EXPECT_FALSE(price.phases.empty());
    EXPECT_EQ(answer.switches.size(), 4U);
    EXPECT_GT(answer.longestAnswer, 128);
    EXPECT_GE(answer.mostAnswers, 128);
}

TEST(WhatIfTest, ChangesOfReinforcementLearningReallyFit) {
    const Experiment full = asking("full", std::uint64_t{60} << 30);
    expectChangesFit(full, 256);
    WhatIfPlanner planner;
    const WhatIf answer = planner.answer(full, 256, {});
    EXPECT_EQ(answer.set().price.roles.size(), 2U) << "known though it does not fit";
    EXPECT_EQ(answer.mostAnswers, 0);
}

TEST(WhatIfTest, ASliderThatMovesCostsFewPlans) {
    WhatIfPlanner planner;
    const std::size_t first = planner.answer(training(), 65536, {}).plans;
    const std::size_t second = planner.answer(training(), 65536 + 4096, {}).plans;
    EXPECT_LT(second, first / 2);
    EXPECT_EQ(planner.answer(training(), 65536, {}).plans, 0U);
}

TEST(WhatIfTest, AStopEndsIt) {
    WhatIfPlanner planner;
    base::StopSource source;
    std::size_t heard = 0;
    EXPECT_THROW(planner.answer(training(), 65536, source.get_token(),
                                [&](const WhatIf&) {
                                    ++heard;
                                    source.request_stop();
                                }),
                 base::Cancelled);
    EXPECT_EQ(heard, 1U);
}

TEST(WhatIfTest, WhatCannotBePlannedSaysWhy) {
    WhatIfPlanner planner;
    Experiment experiment = training();
    experiment.set("model", std::string("synthetic:no-such-model"));
    EXPECT_THROW(planner.answer(experiment, 4096, {}), base::BadInput);
}

/// The first change that is offered is planned once more as a user would, with the options that he had.
TEST(WhatIfTest, WhatIsOfferedFirstFitsWhenItIsPlannedAgain) {
    const Json offers[] = {{{"workload", "generate"},
                            {"model", "synthetic:gpt-oss-20b"},
                            {"prompt_length", 32768},
                            {"device_profile", "t4"}},
                           {{"workload", "generate"},
                            {"model", "synthetic:qwen3-4b"},
                            {"prompt_length", 16384},
                            {"batch", 16},
                            {"device_profile", "l4"}},
                           {{"workload", "generate"},
                            {"model", "synthetic:gpt-oss-120b"},
                            {"prompt_length", 8192},
                            {"device_profile", "a100-40gb"}},
                           {{"workload", "batch"},
                            {"model", "synthetic:gpt-oss-120b"},
                            {"trace", "uniform"},
                            {"requests", 8},
                            {"slots", 8},
                            {"prompt_tokens", "1024"},
                            {"new_tokens", "4"},
                            {"device_profile", "a100-40gb"}},
                           {{"workload", "finetune"},
                            {"model", "synthetic:gpt-oss-20b"},
                            {"method", "qlora"},
                            {"prompt_length", 65536},
                            {"device_profile", "l4"}},
                           {{"workload", "finetune"},
                            {"model", "synthetic:qwen3-4b"},
                            {"method", "full"},
                            {"prompt_length", 4096},
                            {"device_profile", "rtx-4090"}}};
    for (Json spec : offers) {
        spec.update({{"vitrine", 1}, {"backend", "meta"}});
        const Experiment experiment = Experiment::parse(spec, "test");
        WhatIfPlanner planner;
        const WhatIf answer = planner.answer(experiment, contextOf(experiment).value(), {});
        ASSERT_FALSE(answer.set().price.fits) << spec.dump();
        ASSERT_FALSE(answer.changes.empty()) << spec.dump();
        EXPECT_TRUE(answer.changes.front().price.fits) << spec.dump();
        const Experiment again = edited(experiment.asPlan(), answer.changes.front().edits);
        EXPECT_TRUE(planExperiment(again, WorkloadSinks{}, {})["fits"].get<bool>()) << again.jsonText();
    }
}

/// Where nothing is recorded, tiles and chunks that are like those before them are not run.
TEST(WhatIfTest, APlanThatIsRecordedSaysTheSame) {
    Experiment experiment = plannedExperiment(training(), 131072);
    experiment.set("loss_chunks", std::string("64"));
    const Json quick = planExperiment(experiment, WorkloadSinks{}, {});
    base::NullTraceSink sink;
    WorkloadSinks recorded;
    recorded.trace = &sink;
    experiment.set("profile", std::string("light"));
    const Json whole = planExperiment(experiment, recorded, {});
    for (const char* key : {"peak_bytes", "peak_reserved_bytes", "peak_by_category", "peak_at", "fits"}) {
        EXPECT_EQ(quick[key], whole[key]) << key;
    }
    const auto seconds = whole["step_seconds_estimate"].get<double>();
    EXPECT_NEAR(quick["step_seconds_estimate"].get<double>(), seconds, seconds * 1e-6);
    EXPECT_FALSE(quick["times_from"].get<std::string>().empty());
}

} // namespace
} // namespace vitrine::engine
