// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/sweep/sweep_plan.h"

#include <algorithm>
#include <cctype>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/error.h"
#include "engine/workload/experiment/workloads.h"

namespace vitrine::engine {
namespace {

SweepPlan planOfRates() {
    SweepPlan plan;
    plan.name = "rates";
    plan.base =
        R"({"vitrine": 1, "workload": "finetune", "model": "synthetic:tiny-gpt-oss", "prompt_length": 64, "output": "/tmp/out"})";
    plan.options = {{"lr", {"5e-5", "1e-4", "2e-4", "4e-4"}}, {"rank", {"8", "16", "32"}}};
    return plan;
}

using Texts = std::vector<std::string>;

TEST(SweepValues, AreAListOrARowOfNumbers) {
    EXPECT_EQ(parseSweepValues("lr", "1e-4, 2e-4"), (Texts{"1e-4", "2e-4"}));
    EXPECT_EQ(parseSweepValues("lr", "1e-5..4e-5 x2"), (Texts{"1e-05", "2e-05", "4e-05"}));
    EXPECT_EQ(parseSweepValues("rank", "8..24 +8"), (Texts{"8", "16", "24"}));
    EXPECT_EQ(parseSweepValues("checkpoint", "layer,offload"), (Texts{"layer", "offload"}));
}

TEST(SweepValues, ThatTheOptionDoesNotTakeAreRefused) {
    for (const char* wrong : {"", "8,,16", "8,8", "0", "x", "8.5", "8..64 x1", "64..8 x2", "8..64 x"}) {
        EXPECT_THROW(parseSweepValues("rank", wrong), base::BadInput) << wrong;
    }
    EXPECT_THROW(parseSweepValues("lr", "1e-4,0.0001"), base::BadInput) << "the same number twice";
    EXPECT_THROW(parseSweepValues("nothing", "1"), base::BadInput);
    EXPECT_THROW(parseSweepValues("tokens", "1,2"), base::BadInput) << "a list has commas of its own";
}

TEST(SweepOption, NamesTheFlagInWhatItRefuses) {
    EXPECT_EQ(parseSweepOption(kFinetuneWorkload, "--eval-every=2,4").key, "eval_every");
    try {
        parseSweepOption(kGenerateWorkload, "rank=8");
        FAIL();
    } catch (const base::BadInput& error) {
        EXPECT_EQ(error.message(), "--vary: rank: generate does not take this option");
    }
    EXPECT_THROW(parseSweepOption(kFinetuneWorkload, "rank"), base::BadInput);
}

TEST(StopRule, IsReadAndWritten) {
    EXPECT_EQ(parseStopRule("above=0.1,from=150"), (StopRule{0.1, 150}));
    EXPECT_EQ(parseStopRule(stopRuleText({0.25, 7})), (StopRule{0.25, 7}));
    EXPECT_EQ(parseStopRule("above=0"), (StopRule{0, 0}));
    for (const char* wrong : {"", "from=3", "above=", "above=-1", "above=0.1,from=1.5", "below=1", "0.1"}) {
        EXPECT_THROW(parseStopRule(wrong), base::BadInput) << wrong;
    }
}

TEST(SweepPlan, HasEveryCombinationOnce) {
    for (const SweepOrder order : {SweepOrder::AsGiven, SweepOrder::FromTheMiddleOut}) {
        SweepPlan plan = planOfRates();
        plan.order = order;
        const std::vector<SweepValues> all = sweepCombinations(plan);
        EXPECT_EQ(all.size(), 12U);
        EXPECT_EQ(std::set<SweepValues>(all.begin(), all.end()).size(), 12U);
    }
}

TEST(SweepPlan, StartsInTheMiddleWhereAsked) {
    SweepPlan plan = planOfRates();
    EXPECT_EQ(sweepRunName(sweepCombinations(plan).front()), "lr 5e-5, rank 8");
    plan.order = SweepOrder::FromTheMiddleOut;
    EXPECT_EQ(sweepRunName(sweepCombinations(plan).front()), "lr 2e-4, rank 16");
    EXPECT_EQ(sweepRunName(sweepCombinations(plan).back()), "lr 5e-5, rank 32");
}

TEST(SweepPlan, GivesEachRunItsValuesAndItsOwnFolder) {
    const std::vector<SweepRun> runs = sweepRuns(planOfRates());
    std::set<std::string> folders;
    for (const SweepRun& run : runs) {
        folders.insert(run.experiment.text("output"));
    }
    EXPECT_EQ(folders.size(), runs.size());
    EXPECT_EQ(runs.front().experiment.text("output"), "/tmp/out/lr-5e-5-rank-8");
    EXPECT_DOUBLE_EQ(runs.front().experiment.real("lr"), 5e-5);
    EXPECT_EQ(runs.back().experiment.integer("rank"), 32);
}

TEST(SweepPlan, GivesValuesThatLookAlikeFoldersOfTheirOwn) {
    const std::string longest(300, 'm');
    SweepPlan plan = planOfRates();
    plan.options = {{"train", {"re:a/b", "re:a_b", "re:a.b", "re:A_b", "re:" + longest, "re:" + longest + "n"}}};
    std::set<std::string> folders;
    for (const SweepRun& run : sweepRuns(plan)) {
        std::string folder = run.experiment.text("output");
        EXPECT_EQ(folder.find('/', std::string("/tmp/out/").size()), std::string::npos) << folder;
        EXPECT_LT(folder.size(), 200U);
        std::ranges::transform(folder, folder.begin(), [](unsigned char c) { return std::tolower(c); });
        folders.insert(folder);
    }
    EXPECT_EQ(folders.size(), 6U);
    EXPECT_TRUE(folders.contains("/tmp/out/train-re_a.b"));
}

TEST(SweepPlan, RefusesMoreRunsThanItsLimit) {
    SweepPlan plan = planOfRates();
    plan.options = {{"rank", parseSweepValues("rank", "1..100 +1")}, {"batch", parseSweepValues("batch", "1..11 +1")}};
    EXPECT_THROW(sweepRuns(plan), base::BadInput);
}

TEST(SweepPlan, ComesBackFromItsJson) {
    SweepPlan plan = planOfRates();
    plan.base = nlohmann::json::parse(plan.base).dump();
    plan.order = SweepOrder::FromTheMiddleOut;
    plan.rule = StopRule{0.1, 150};
    EXPECT_EQ(readSweepPlan(sweepPlanJson(plan)), plan);
    EXPECT_FALSE(readSweepPlan(nlohmann::json{{"name", "x"}}));
}

} // namespace
} // namespace vitrine::engine
