// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/host/run_host.h"

#include <atomic>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "engine/workload/experiment/experiment.h"
#include "sessions/session_file.h"
#include "tests/app/runner/host/tiny_experiment.h"
#include "tests/base/eventually.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::app {
namespace {

using nlohmann::json;
using sessions::OpenMode;
using sessions::SessionFile;

TEST(RunHost, TellsItsStoryInOrder) {
    const test::TempFolder folder;
    const std::string file = folder.file("runs.vitrine");
    const auto host = RunHost::inProcess();
    std::vector<json> messages;
    host->start(engine::Experiment::parse(test::tinyExperiment(6), "experiment"), file,
                [&](const json& message) { messages.push_back(message); });
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.status, RunOutcome::Status::Done) << outcome.error;
    EXPECT_EQ(outcome.exitCode, 0);
    EXPECT_EQ(outcome.run, 1);
    EXPECT_FALSE(host->running());
    ASSERT_GE(messages.size(), 8u);
    EXPECT_EQ(messages.front()["type"], "started");
    EXPECT_EQ(messages.front()["run"], 1);
    EXPECT_EQ(messages.back()["type"], "ended");
    EXPECT_EQ(messages.back()["status"], "done");
    EXPECT_EQ(messages.back()["metrics"], json::parse(outcome.metricsJson));
    std::vector<int> ids;
    for (const json& message : messages) {
        if (message["type"] == "token") {
            EXPECT_EQ(message["index"], ids.size());
            ids.push_back(message["id"]);
        }
    }
    EXPECT_EQ(json(ids), json::parse(outcome.metricsJson)["ids"]);
    const auto session = SessionFile::open(file, OpenMode::ReadOnly);
    EXPECT_EQ(session->run(1).metricsJson, outcome.metricsJson);
    EXPECT_EQ(json::parse(session->run(1).specJson)["max_new_tokens"], 6);
    EXPECT_FALSE(session->streams(1).empty());
    // What its plan said stands beside what was measured.
    const json metrics = json::parse(outcome.metricsJson);
    const auto measured = metrics["peak_bytes"].get<double>();
    EXPECT_NEAR(metrics["planned_peak_bytes"].get<double>(), measured, 0.01 * measured);
    // The session keeps the tokens one by one.
    std::vector<int> kept;
    for (const sessions::RunText& text : session->texts(1)) {
        if (text.kind == "tokens.000000") {
            std::istringstream lines(text.body);
            for (std::string line; std::getline(lines, line);) {
                kept.push_back(json::parse(line)["id"]);
            }
        }
    }
    EXPECT_EQ(kept, ids);
}

TEST(RunHost, ASinkThatFailsEndsTheRunSaved) {
    const test::TempFolder folder;
    const std::string file = folder.file("runs.vitrine");
    const auto host = RunHost::inProcess();
    int tokens = 0;
    host->start(engine::Experiment::parse(test::tinyExperiment(5000), "experiment"), file, [&](const json& message) {
        if (message["type"] == "token") {
            ++tokens;
            throw base::Internal("nobody reads");
        }
    });
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.status, RunOutcome::Status::Failed);
    EXPECT_EQ(outcome.exitCode, 1);
    EXPECT_EQ(outcome.error, "nobody reads");
    const auto run = SessionFile::open(file, OpenMode::ReadOnly)->run(1);
    EXPECT_EQ(run.status, sessions::RunStatus::Failed);
    EXPECT_EQ(run.error, "nobody reads");
    EXPECT_EQ(tokens, 1);
}

TEST(RunHost, ThrowsBeforeAnythingStartsWhenTheInputIsBad) {
    const test::TempFolder folder;
    const std::string file = folder.file("runs.vitrine");
    const auto host = RunHost::inProcess();
    EXPECT_THROW(
        host->start(engine::Experiment::parse({{"vitrine", 1}, {"workload", "generate"}, {"nope", 1}}, "experiment"),
                    file, {}),
        base::BadInput);
    EXPECT_FALSE(std::filesystem::exists(file));
    EXPECT_THROW(
        host->start(engine::Experiment::parse(test::tinyExperiment(1), "experiment"), folder.path().string(), {}),
        base::BadInput);
    EXPECT_FALSE(host->running());
}

TEST(RunHost, StopEndsTheRunSaved) {
    const test::TempFolder folder;
    const std::string file = folder.file("runs.vitrine");
    const auto host = RunHost::inProcess();
    std::atomic<int> tokens = 0;
    host->start(engine::Experiment::parse(test::tinyExperiment(1'000'000), "experiment"), file,
                [&](const json& message) { tokens += message["type"] == "token" ? 1 : 0; });
    ASSERT_TRUE(test::eventually([&] { return tokens >= 3; }));
    EXPECT_THROW(host->start(engine::Experiment::parse(test::tinyExperiment(1), "experiment"), file, {}),
                 base::Internal);
    host->stop();
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.status, RunOutcome::Status::Cancelled);
    EXPECT_EQ(outcome.exitCode, 130);
    EXPECT_EQ(SessionFile::open(file, OpenMode::ReadOnly)->run(1).status, sessions::RunStatus::Cancelled);
    // The next run works.
    host->start(engine::Experiment::parse(test::tinyExperiment(2), "experiment"), file, {});
    EXPECT_EQ(host->wait().exitCode, 0);
    EXPECT_EQ(SessionFile::open(file, OpenMode::ReadOnly)->runs().size(), 2u);
}

TEST(RunHost, AStoppedPlanKeepsWhatItKnew) {
    const test::TempFolder folder;
    const std::string file = folder.file("runs.vitrine");
    const auto host = RunHost::inProcess();
    std::atomic<int> tokens = 0;
    host->start(engine::Experiment::parse({{"vitrine", 1},
                                           {"plan", true},
                                           {"workload", "batch"},
                                           {"model", "synthetic:tiny-llama"},
                                           {"trace", "fixed"},
                                           {"requests", 100'000},
                                           {"prompt_tokens", "4"},
                                           {"new_tokens", "100"}},
                                          "experiment"),
                file, [&](const json& message) { tokens += message["type"] == "token" ? 1 : 0; });
    ASSERT_TRUE(test::eventually([&] { return tokens >= 5000; }));
    host->stop();
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.status, RunOutcome::Status::Cancelled) << outcome.error;
    const json metrics = json::parse(SessionFile::open(file, OpenMode::ReadOnly)->run(1).metricsJson);
    EXPECT_GE(metrics.value("generated_tokens", 0), 5000) << metrics;
    EXPECT_GT(metrics.value("finished_requests", 0), 0);
    EXPECT_GT(metrics.value("peak_bytes", 0), 0);
    EXPECT_FALSE(metrics.contains("fits")) << "nobody knows yet";
}

TEST(RunHost, AModelThatIsNotThereFailsWithOneSentence) {
    const auto host = RunHost::inProcess();
    json spec = test::tinyExperiment(1);
    spec["model"] = "/no/such/model";
    host->start(engine::Experiment::parse(spec, "experiment"), "", {});
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.status, RunOutcome::Status::Failed);
    EXPECT_EQ(outcome.exitCode, 2);
    EXPECT_NE(outcome.error.find("/no/such/model"), std::string::npos);
    EXPECT_EQ(outcome.run, 0);
    EXPECT_EQ(json::parse(outcome.metricsJson)["error"]["message"], outcome.error);
}

TEST(RunHost, MayBeDestroyedWhileItRuns) {
    const auto host = RunHost::inProcess();
    host->start(engine::Experiment::parse(test::tinyExperiment(1'000'000), "experiment"), "", {});
}

TEST(RunHost, ARunWhoseSessionWasDeletedEndsWithItsResultAndSaysSo) {
    const test::TempFolder folder;
    const std::string file = folder.file("runs.vitrine");
    const auto host = RunHost::inProcess();
    std::vector<std::string> notices;
    host->start(engine::Experiment::parse(test::tinyExperiment(3), "experiment"), file, [&](const json& message) {
        if (message["type"] == "token") {
            std::filesystem::remove(file);
        } else if (message["type"] == "notice") {
            notices.push_back(message["text"]);
        }
    });
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.status, RunOutcome::Status::Done) << outcome.error;
    EXPECT_EQ(outcome.exitCode, 1);
    EXPECT_EQ(json::parse(outcome.metricsJson)["ids"].size(), 3U);
    EXPECT_NE(outcome.unsaved.find("was deleted during the run"), std::string::npos) << outcome.unsaved;
    ASSERT_EQ(notices.size(), 1U);
    EXPECT_EQ(notices.front(), outcome.unsaved);
    EXPECT_FALSE(std::filesystem::exists(file + "-wal"));
}

TEST(RunHost, ARunWhoseSessionWasMovedSaysWhereItIsSaved) {
    const test::TempFolder folder;
    const std::string file = folder.file("runs.vitrine");
    const std::string moved = folder.file("moved.vitrine");
    const auto host = RunHost::inProcess();
    host->start(engine::Experiment::parse(test::tinyExperiment(3), "experiment"), file, [&](const json& message) {
        if (message["type"] == "token" && std::filesystem::exists(file)) {
            std::filesystem::rename(file, moved);
        }
    });
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.exitCode, 1);
    EXPECT_TRUE(outcome.unsaved.ends_with("is saved as run 1 of " + std::filesystem::canonical(moved).string()))
        << outcome.unsaved;
    const auto runs = sessions::SessionFile::open(moved, sessions::OpenMode::ReadOnly)->runs();
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_EQ(runs[0].status, sessions::RunStatus::Done);
}

} // namespace
} // namespace vitrine::app
