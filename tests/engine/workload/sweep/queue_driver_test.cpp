// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/sweep/queue_driver.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/sessions/temp_folder.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using After = QueueDriver::After;
using How = QueueEnd::How;

constexpr const char* kLostMetrics = R"({"error": {"kind": "device_fault", "message": "gone"}})";

/// Remembers what the driver asked for.
class PlayedHost final : public QueueHost {
public:
    void start(const QueuedRun& run) override { started.push_back(run); }
    void stop() override { ++stops; }
    bool isRecorded(const std::string& spec) const override {
        return std::ranges::any_of(records, [&](const std::string& one) { return isSameExperiment(one, spec); });
    }
    void keep(const RunQueue& queue) override { kept = queue.toJson(); }
    void mark(const QueuedRun& run) override { marked.push_back(run.run); }

    std::vector<QueuedRun> started;
    std::vector<std::string> records;
    std::vector<std::int64_t> marked;
    json kept;
    int stops = 0;
};

class QueueDriverTest : public testing::Test {
protected:
    std::string spec(int rank) const {
        return json{{"vitrine", 1},       {"workload", "finetune"}, {"model", "synthetic:tiny-llama"},
                    {"prompt_length", 8}, {"rank", rank},           {"output", output()}}
            .dump();
    }
    std::string output() const { return folder_.file("out"); }
    void addSweep() {
        SweepPlan plan;
        plan.name = "ranks";
        plan.base = spec(2);
        plan.options = {{"rank", {"2", "4"}}};
        plan.rule = StopRule{0.1, 2};
        driver_.queue().addSweep(plan);
    }
    void addRun(int rank) {
        QueuedRun run;
        run.spec = spec(rank);
        driver_.queue().add(std::move(run));
    }
    void startNext() {
        const auto number = driver_.next();
        ASSERT_TRUE(number.has_value());
        ASSERT_TRUE(driver_.start(*number));
    }
    After loseIt() { return driver_.ended({How::Failed, 0, "the worker process was killed", kLostMetrics}); }
    std::string bringBack(std::int64_t number) {
        return driver_.goOn(number, QueueDriver::findGoingOn(driver_.queue().find(number)->spec));
    }
    QueueState stateOf(std::int64_t number) { return driver_.queue().find(number)->state; }
    json specOf(std::int64_t number) { return json::parse(driver_.queue().find(number)->spec); }

    test::TempFolder folder_;
    PlayedHost host_;
    QueueDriver driver_{host_};
};

TEST_F(QueueDriverTest, RunsOneAfterTheOtherAndMarksThem) {
    addSweep();
    startNext();
    EXPECT_FALSE(driver_.next().has_value()) << "one runs";
    driver_.started(7);
    EXPECT_EQ(host_.kept.at("runs").at(0).at("run"), 7) << "it is known in the session at once";
    EXPECT_EQ(driver_.ended({How::Done, 0, {}, "{}"}), After::Ended);
    EXPECT_EQ(stateOf(1), QueueState::Finished);
    EXPECT_EQ(host_.marked, std::vector<std::int64_t>{7});
    startNext();
    driver_.endByUser();
    EXPECT_EQ(host_.stops, 1);
    driver_.ended({How::Cancelled, 8, {}, "{}"});
    EXPECT_EQ(stateOf(2), QueueState::EndedByUser);
    EXPECT_EQ(host_.started.size(), 2U);
    EXPECT_FALSE(driver_.next().has_value());
}

TEST_F(QueueDriverTest, TakesRunsOfOneSweepOnlyWhereItIsAsked) {
    addRun(16);
    addSweep();
    EXPECT_EQ(driver_.next(), 1);
    EXPECT_EQ(driver_.next("ranks"), 2);
    EXPECT_FALSE(driver_.next("others").has_value());
}

TEST_F(QueueDriverTest, EndsWhatTheRuleEnds) {
    addSweep();
    startNext();
    driver_.metric("eval_step", 4);
    driver_.metric("eval_loss", 1.0);
    driver_.ended({How::Done, 1, {}, "{}"});
    startNext();
    driver_.metric("eval_step", 4);
    EXPECT_FALSE(driver_.metric("loss", 9));
    EXPECT_TRUE(driver_.metric("eval_loss", 1.5));
    EXPECT_EQ(host_.stops, 1);
    driver_.ended({How::Cancelled, 2, "stopped", "{}"});
    EXPECT_EQ(stateOf(2), QueueState::EndedByRule);
    EXPECT_EQ(driver_.queue().find(2)->reason, "0.500 above #1 at step 4");
}

TEST_F(QueueDriverTest, BringsALostRunBackFromItsLastCheckpointOnce) {
    addSweep();
    startNext();
    driver_.started(1);
    const std::string folder = specOf(1).at("output");
    std::filesystem::create_directories(folder + "/checkpoint-8");
    std::ofstream(folder + "/checkpoint-8/trainer_state.json") << "{}";
    EXPECT_EQ(loseIt(), After::Lost);
    EXPECT_FALSE(driver_.next().has_value()) << "its turn is not over";
    EXPECT_EQ(bringBack(1), "goes on from its last checkpoint");
    EXPECT_EQ(driver_.next(), 1);
    EXPECT_EQ(specOf(1).at("resume"), folder + "/checkpoint-8");
    startNext();
    EXPECT_EQ(loseIt(), After::Ended) << "what is lost again is not lost by chance";
    EXPECT_EQ(stateOf(1), QueueState::Failed);
    EXPECT_TRUE(driver_.queue().find(1)->lost) << "a person can go on with it";
    EXPECT_EQ(driver_.next(), 2);
}

TEST_F(QueueDriverTest, ALostRunWithoutACheckpointBeginsAgainOverWhatItLeft) {
    addRun(2);
    startNext();
    driver_.started(1);
    EXPECT_EQ(loseIt(), After::Lost);
    EXPECT_EQ(bringBack(1), "has written no checkpoint and begins again");
    EXPECT_EQ(specOf(1).value("overwrite", false), true);
    EXPECT_EQ(driver_.next(), 1);
}

TEST_F(QueueDriverTest, WithoutASessionALostRunTakesTheFolderThatItWorkedIn) {
    addRun(2);
    addRun(4);
    startNext();
    loseIt();
    bringBack(1);
    EXPECT_FALSE(specOf(1).contains("overwrite")) << "it may never have begun";
    startNext();
    driver_.ended({How::Done, 0, {}, "{}"});
    startNext();
    EXPECT_TRUE(driver_.progress("Training", 1, 4));
    loseIt();
    bringBack(2);
    EXPECT_EQ(specOf(2).value("overwrite", false), true);
}

TEST_F(QueueDriverTest, AnInterruptedRunTakesOnlyAFolderThatItBegan) {
    addRun(2);
    addRun(4);
    driver_.queue().start(1, 1);
    driver_.queue().recover();
    EXPECT_FALSE(driver_.next().has_value());
    bringBack(1);
    EXPECT_FALSE(specOf(1).contains("overwrite")) << "the session has no such run";
    driver_.queue().resume();
    driver_.queue().start(1, 2);
    driver_.queue().recover();
    host_.records = {json::parse(spec(2)).dump(2)};
    bringBack(1);
    EXPECT_EQ(specOf(1).value("overwrite", false), true);
}

TEST_F(QueueDriverTest, WhatFailsByItselfIsNotBroughtBack) {
    addRun(2);
    startNext();
    EXPECT_EQ(driver_.ended({How::Failed, 1, "bad", R"({"error": {"kind": "bad_input"}})"}), After::Ended);
    EXPECT_EQ(stateOf(1), QueueState::Failed);
    EXPECT_FALSE(driver_.queue().find(1)->lost);
}

TEST_F(QueueDriverTest, ARunThatWasAskedToEndIsNotBroughtBack) {
    addRun(2);
    startNext();
    driver_.endByUser();
    EXPECT_EQ(loseIt(), After::Ended);
    EXPECT_EQ(stateOf(1), QueueState::Failed);
}

TEST_F(QueueDriverTest, ALossIsNoFailureAndThePauseAfterTheRunStays) {
    addRun(2);
    addRun(4);
    driver_.queue().setGoOnAfterFailure(false);
    startNext();
    driver_.queue().pauseAfterRun(true);
    loseIt();
    EXPECT_FALSE(driver_.queue().paused());
    bringBack(1);
    startNext();
    driver_.ended({How::Done, 1, {}, "{}"});
    EXPECT_TRUE(driver_.queue().paused());
}

} // namespace
} // namespace vitrine::engine
