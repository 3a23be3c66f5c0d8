// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/sweep/queue_progress.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/sessions/temp_folder.h"

namespace vitrine::engine {
namespace {

std::string tuneInto(const std::string& output) {
    return nlohmann::json{{"vitrine", 1},
                          {"workload", "finetune"},
                          {"model", "synthetic:tiny-llama"},
                          {"prompt_length", 8},
                          {"output", output}}
        .dump();
}

/// Two runs; the first was interrupted at step 9.
RunQueue interrupted(const std::string& spec) {
    RunQueue queue;
    for (int i = 0; i < 2; ++i) {
        QueuedRun run;
        run.spec = spec;
        queue.add(std::move(run));
    }
    queue.setPrice(1, QueuePrice{.seconds = 60});
    queue.start(1, 1);
    takeMetric(*queue.find(1), "loss", 1.5);
    queue.find(1)->step = 9;
    queue.recover();
    return queue;
}

TEST(QueueProgress, AnInterruptedRunGoesOnFromItsLatestCheckpoint) {
    const test::TempFolder folder;
    const std::string output = (folder.path() / "out").string();
    for (const char* step : {"4", "8", "12.partial"}) {
        const std::string checkpoint = output + "/checkpoint-" + step;
        std::filesystem::create_directories(checkpoint);
        std::ofstream(checkpoint + "/trainer_state.json") << "{}";
    }
    RunQueue queue = interrupted(tuneInto(output));
    goOn(queue, 1, fromLastCheckpoint(queue.find(1)->spec));
    const auto spec = nlohmann::json::parse(queue.find(1)->spec);
    EXPECT_EQ(spec.at("resume"), output + "/checkpoint-8");
    EXPECT_EQ(spec.at("output"), output);
    EXPECT_EQ(queue.find(1)->state, QueueState::Waiting);
    EXPECT_EQ(queue.find(1)->step, 9) << "what it has reported is still its own";
    ASSERT_TRUE(queue.find(1)->price.has_value());
    EXPECT_EQ(queue.find(1)->price->seconds, 60);
}

TEST(QueueProgress, WithoutACheckpointItBeginsAgain) {
    const test::TempFolder folder;
    const std::string spec = tuneInto((folder.path() / "nothing").string());
    EXPECT_FALSE(fromLastCheckpoint(spec).has_value());
    EXPECT_FALSE(fromLastCheckpoint(R"({"vitrine":1,"workload":"generate","model":"m"})").has_value());
    RunQueue queue = interrupted(spec);
    goOn(queue, 1, std::nullopt);
    EXPECT_EQ(queue.find(1)->spec, spec);
    EXPECT_EQ(queue.find(1)->state, QueueState::Waiting);
    EXPECT_EQ(queue.find(1)->step, 0);
    EXPECT_FALSE(queue.find(1)->value.has_value());
}

TEST(QueueProgress, ARunThatEarnsRewardsReportsThem) {
    RunQueue queue = interrupted(R"({"vitrine": 1, "workload": "rl", "model": "m", "task": "sums"})");
    QueuedRun& run = *queue.find(2);
    takeProgress(run, "Step 2, reward 0.500, 90 sampled tokens/s, 3 s left", 2, 5);
    EXPECT_EQ(run.step, 2);
    EXPECT_EQ(run.steps, 5);
    takeMetric(run, "reward", 0.5);
    takeMetric(run, "loss", 7);
    EXPECT_EQ(run.value, 0.5);
    takeMetric(run, "eval_step", 4);
    EXPECT_TRUE(takeMetric(run, "eval_reward", 0.625));
    EXPECT_EQ(run.evaluations, (std::vector<QueueEvaluation>{{4, 0.625}}));
    takeResults(run, R"({"rewards": [0.25, 0.75], "losses": [1, 2], "eval_rewards": [0.125, 0.25],
                         "eval_reward_steps": [0, 2], "steps": 2})");
    EXPECT_EQ(run.value, 0.75);
    EXPECT_EQ(run.evaluations, (std::vector<QueueEvaluation>{{0, 0.125}, {2, 0.25}}));
}

TEST(QueueProgress, ARunThatWasNotInterruptedStays) {
    RunQueue queue = interrupted(tuneInto("out"));
    goOn(queue, 2, std::string("{}"));
    EXPECT_EQ(queue.find(2)->spec, tuneInto("out"));
}

} // namespace
} // namespace vitrine::engine
