// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Runs in a child process: the same results, and nothing of the owner is lost when the child is.

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>
#include <vector>

#include "app/runner/host/run_host.h"
#include "app/runner/host/worker_loop.h"
#include "base/error.h"
#include "base/line_pipe.h"
#include "engine/workload/experiment/experiment.h"
#include "sessions/session_file.h"
#include "tests/app/runner/host/tiny_experiment.h"
#include "tests/app/runner/host/worker_testing.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::app {
namespace {

using nlohmann::json;
using sessions::OpenMode;
using sessions::RunStatus;
using sessions::SessionFile;

using test::kWorkerProgram;
using test::workerPid;

/// Starts a long run and returns when its first token has come. `more` sees its messages too.
void startLongRun(RunHost& host, const std::string& file, const std::function<void(const json&)>& more = {}) {
    const auto tokens = std::make_shared<std::atomic<int>>(0);
    host.start(engine::Experiment::parse(test::tinyExperiment(1'000'000), "experiment"), file,
               [tokens, more](const json& message) {
                   *tokens += message["type"] == "token" ? 1 : 0;
                   if (more) {
                       more(message);
                   }
               });
    ASSERT_TRUE(test::eventually([&] { return *tokens > 0; }));
}

TEST(Worker, GivesWhatARunInThisProcessGives) {
    const test::TempFolder folder(test::TempFolder::Place::Memory);
    const auto here = RunHost::inProcess();
    here->start(engine::Experiment::parse(test::tinyExperiment(6), "experiment"), "", {});
    const RunOutcome expected = here->wait();
    const auto host = RunHost::inWorker(kWorkerProgram);
    for (int run = 1; run <= 2; ++run) {
        std::vector<json> messages;
        host->start(engine::Experiment::parse(test::tinyExperiment(6), "experiment"), folder.file("runs.vitrine"),
                    [&](const json& message) { messages.push_back(message); });
        const RunOutcome outcome = host->wait();
        EXPECT_EQ(outcome.status, RunOutcome::Status::Done) << outcome.error;
        EXPECT_EQ(outcome.run, run);
        EXPECT_EQ(json::parse(outcome.metricsJson)["ids"], json::parse(expected.metricsJson)["ids"]);
        EXPECT_EQ(messages.front()["type"], "started");
        EXPECT_EQ(messages.back()["type"], "ended");
    }
}

TEST(Worker, StopEndsTheRunSaved) {
    const test::TempFolder folder(test::TempFolder::Place::Memory);
    const auto host = RunHost::inWorker(kWorkerProgram);
    startLongRun(*host, folder.file("runs.vitrine"));
    host->stop();
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.status, RunOutcome::Status::Cancelled);
    EXPECT_EQ(outcome.exitCode, 130);
    EXPECT_EQ(SessionFile::open(folder.file("runs.vitrine"), OpenMode::ReadOnly)->run(1).status, RunStatus::Cancelled);
}

TEST(Worker, SaysThatTheSessionWasDeleted) {
    const test::TempFolder folder(test::TempFolder::Place::Memory);
    const std::string file = folder.file("runs.vitrine");
    const auto host = RunHost::inWorker(kWorkerProgram);
    std::vector<std::string> notices;
    startLongRun(*host, file, [&](const json& message) {
        if (message["type"] == "notice") {
            notices.push_back(message["text"]);
        }
    });
    std::filesystem::remove(file);
    host->stop();
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.status, RunOutcome::Status::Cancelled);
    EXPECT_NE(outcome.unsaved.find("runs.vitrine: the session file was deleted"), std::string::npos) << outcome.unsaved;
    EXPECT_EQ(notices, std::vector{outcome.unsaved});
}

TEST(Worker, ADeadWorkerEndsItsRunAndTheNextRunWorks) {
    const test::TempFolder folder(test::TempFolder::Place::Memory);
    const std::string file = folder.file("runs.vitrine");
    const auto host = RunHost::inWorker(kWorkerProgram);
    startLongRun(*host, file);
    ASSERT_EQ(::kill(workerPid(), SIGABRT), 0);
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.status, RunOutcome::Status::Failed);
    EXPECT_EQ(outcome.errorKind, base::ErrorKind::DeviceFault);
    EXPECT_NE(outcome.error.find("crashed"), std::string::npos) << outcome.error;
    EXPECT_EQ(outcome.run, 1);
    EXPECT_FALSE(host->running());
    host->start(engine::Experiment::parse(test::tinyExperiment(3), "experiment"), file, {});
    EXPECT_EQ(host->wait().status, RunOutcome::Status::Done);
    const auto session = SessionFile::open(file, OpenMode::ReadOnly);
    EXPECT_EQ(session->run(1).status, RunStatus::Interrupted);
    EXPECT_EQ(session->run(2).status, RunStatus::Done);
}

TEST(Worker, ItsOwnersEndStopsTheRunSaved) {
    const test::TempFolder folder(test::TempFolder::Place::Memory);
    const std::string file = folder.file("runs.vitrine");
    {
        const auto host = RunHost::inWorker(kWorkerProgram);
        startLongRun(*host, file);
    }
    EXPECT_EQ(SessionFile::open(file, OpenMode::ReadOnly)->run(1).status, RunStatus::Cancelled);
}

TEST(Worker, RefusesBeforeItStartsAndAfter) {
    const test::TempFolder folder(test::TempFolder::Place::Memory);
    const auto host = RunHost::inWorker(kWorkerProgram);
    EXPECT_THROW(
        host->start(engine::Experiment::parse({{"vitrine", 1}, {"workload", "generate"}, {"modle", "x"}}, "experiment"),
                    "", {}),
        base::BadInput);
    std::ofstream(folder.file("notes.txt"))
        << "a file of another program, long enough to have a header of its own ..." << std::string(200, '.');
    host->start(engine::Experiment::parse(test::tinyExperiment(3), "experiment"), folder.file("notes.txt"), {});
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.errorKind, base::ErrorKind::BadInput);
    EXPECT_EQ(outcome.exitCode, 2);
    EXPECT_NE(outcome.error.find("notes.txt"), std::string::npos) << outcome.error;
    EXPECT_THROW(RunHost::inWorker(folder.file("nothing"))
                     ->start(engine::Experiment::parse(test::tinyExperiment(3), "experiment"), "", {}),
                 base::Internal);
}

/// What a worker answers to these lines.
std::vector<json> answersTo(const std::string& lines) {
    std::array<int, 2> in{}, out{};
    EXPECT_EQ(::pipe(in.data()), 0);
    EXPECT_EQ(::pipe(out.data()), 0);
    EXPECT_EQ(::write(in[1], lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
    ::close(in[1]);
    EXPECT_EQ(serveRuns(in[0], out[1], std::chrono::seconds(0)), 0);
    ::close(in[0]);
    ::close(out[1]);
    std::vector<json> answers;
    base::LineReader reader(out[0]);
    while (const auto line = reader.next()) {
        answers.push_back(json::parse(*line));
    }
    ::close(out[0]);
    return answers;
}

TEST(Worker, LinesThatAreNoRequestsAreRefused) {
    const std::vector<json> answers =
        answersTo("nonsense\n[1]\n{\"type\": 5}\n{\"type\": \"walk\"}\n{\"type\": \"run\"}\n"
                  "{\"type\": \"run\", \"experiment\": {}, \"session\": 7}\n");
    ASSERT_EQ(answers.size(), 6U);
    for (const json& answer : answers) {
        EXPECT_EQ(answer["type"], "refused");
        EXPECT_EQ(answer["kind"], "bad_input") << answer;
        EXPECT_EQ(answer["error"].get<std::string>().find("request: "), 0U) << answer;
        EXPECT_EQ(answer["error"].get<std::string>().find("json."), std::string::npos) << answer;
    }
}

TEST(Worker, AnotherProgramInItsPlaceEndsNothing) {
    const test::TempFolder folder;
    const std::string program = folder.file("worker");
    test::writeAll(program,
                   "#!/bin/sh\nread request\n"
                   "echo nonsense\necho '[1]'\necho '{\"type\": 5}'\necho '{\"type\": \"started\", \"run\": []}'\n"
                   "echo '{\"type\": \"ended\", \"status\": 7, \"exit_code\": \"x\", \"run\": [], \"error\": 1}'\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const auto host = RunHost::inWorker(program);
    host->start(engine::Experiment::parse(test::tinyExperiment(3), "experiment"), "",
                [](const json& message) { message.value("type", ""); });
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.exitCode, 1);
    EXPECT_EQ(outcome.status, RunOutcome::Status::Failed);
    EXPECT_EQ(outcome.run, 0);
}

TEST(Worker, ALineWithoutEndEndsTheRunAndTheNextRunWorks) {
    const test::TempFolder folder;
    const std::string program = folder.file("worker");
    test::writeAll(program, "#!/bin/sh\nread request\nexec tr '\\0' x < /dev/zero\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const auto host = RunHost::inWorker(program);
    host->start(engine::Experiment::parse(test::tinyExperiment(3), "experiment"), "", {});
    const RunOutcome outcome = host->wait();
    EXPECT_EQ(outcome.status, RunOutcome::Status::Failed);
    EXPECT_EQ(outcome.error, "the worker process sent a line of more than 64 MiB, which is no message, and was ended; "
                             "what it recorded is in the session, and the next run starts a new worker");
    EXPECT_EQ(outcome.errorKind, base::ErrorKind::Internal) << "the same run would send it again";
    std::filesystem::remove(program); // its last process may still end
    std::filesystem::create_symlink(kWorkerProgram, program);
    host->start(engine::Experiment::parse(test::tinyExperiment(3), "experiment"), "", {});
    EXPECT_EQ(host->wait().status, RunOutcome::Status::Done);
}

} // namespace
} // namespace vitrine::app
