// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a worker process keeps between runs: a model's weights, as long as they are those that the next run asks for.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "app/runner/host/run_host.h"
#include "app/runner/recording/stored_timeline.h"
#include "app/runner/runs/run_compare.h"
#include "base/error.h"
#include "base/trace.h"
#include "engine/workload/experiment/experiment.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "profiler/timeline/timeline_rows.h"
#include "sessions/session_file.h"
#include "tests/app/runner/host/worker_testing.h"
#include "tests/fixture_paths.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::app {
namespace {

using nlohmann::json;
using test::kWorkerProgram;
using namespace std::chrono_literals;

class KeptWeights : public testing::Test {
protected:
    KeptWeights() {
        std::filesystem::copy(test::fixture("gpt-oss-mxfp4"), model());
        host_ = RunHost::inWorker(kWorkerProgram);
    }

    std::string model() const { return folder_.file("model"); }
    std::string weightsFile() const { return model() + "/model.safetensors"; }
    std::string session() const { return folder_.file("runs.vitrine"); }
    json experiment(const json& more = json::object()) const {
        json out = {{"vitrine", 1},        {"workload", "generate"}, {"model", model()},   {"backend", "cpu"},
                    {"tokens", {1, 2, 3}}, {"ignore_eos", true},     {"max_new_tokens", 4}};
        out.update(more);
        return out;
    }
    /// Runs it and returns its metrics.
    json run(const json& what) { return run(what, session()); }
    json run(const json& what, const std::string& file) {
        notices_.clear();
        host_->start(engine::Experiment::parse(what, "experiment"), file, [this](const json& message) {
            if (message["type"] == "notice") {
                notices_.push_back(message["text"]);
            }
        });
        outcome_ = host_->wait();
        EXPECT_EQ(outcome_.status, RunOutcome::Status::Done) << outcome_.error;
        return json::parse(outcome_.metricsJson);
    }
    static bool kept(const json& metrics) { return metrics.value("weights_kept", false); }

    test::TempFolder folder_{test::TempFolder::Place::Memory};
    std::unique_ptr<RunHost> host_;
    RunOutcome outcome_;
    std::vector<std::string> notices_;
};

/// What a process has read so far, bytes, from files or their caches.
std::uint64_t bytesReadBy(pid_t process) {
    std::ifstream counters("/proc/" + std::to_string(process) + "/io");
    std::string name;
    std::uint64_t value = 0;
    while (counters >> name >> value && name != "rchar:") {
    }
    return value;
}

TEST_F(KeptWeights, TheNextRunReadsNoFile) {
    const json first = run(experiment());
    EXPECT_FALSE(kept(first));
    EXPECT_GE(outcome_.keptBytes, first["resident_bytes"].get<std::uint64_t>());
    const json second = run(experiment());
    EXPECT_TRUE(kept(second));
    EXPECT_EQ(second["bytes_read"], 0);
    // What the process itself counts: without a session, which reads a file of its own.
    const pid_t worker = test::workerPid();
    const auto bytesRead = [&] {
        const std::uint64_t before = bytesReadBy(worker);
        run(experiment(), "");
        return bytesReadBy(worker) - before;
    };
    const std::uint64_t ofKept = bytesRead();
    host_->release();
    EXPECT_GE(bytesRead(), ofKept + first["resident_bytes"].get<std::uint64_t>());
    for (const char* same : {"ids", "resident_bytes", "peak_bytes", "peak_by_category", "max_by_category"}) {
        EXPECT_EQ(second[same], first[same]) << same;
    }
    // Another type of activations has nothing to do with the weights.
    EXPECT_TRUE(kept(run(experiment({{"dtype", "bfloat16"}}))));
    EXPECT_TRUE(notices_.empty());
}

TEST_F(KeptWeights, TheSessionShowsThem) {
    run(experiment());
    const json second = run(experiment());
    const auto file = sessions::SessionFile::open(session(), sessions::OpenMode::ReadOnly);
    const auto timeline = loadTimeline(*file, 2);
    const auto weights = static_cast<std::size_t>(base::MemoryCategory::Weights);
    EXPECT_EQ(timeline->memory().at(timeline->end())[weights], 0U);
    bool phase = false;
    for (const profiler::ScopeRow& scope : timeline->scopes().all()) {
        if (timeline->text(scope.name) == "weights kept from the run before") {
            phase = true;
            EXPECT_EQ(timeline->memory().at(scope.end)[weights], second["resident_bytes"].get<std::uint64_t>());
        }
        EXPECT_NE(timeline->text(scope.name), "load");
    }
    EXPECT_TRUE(phase);
}

TEST_F(KeptWeights, OtherWeightsTakeTheirPlace) {
    const json packed = run(experiment());
    const json expanded = run(experiment({{"weights", "dequantized"}}));
    EXPECT_FALSE(kept(expanded));
    EXPECT_TRUE(kept(run(experiment({{"weights", "dequantized"}}))));
    EXPECT_FALSE(kept(run(experiment())));
    EXPECT_FALSE(kept(run(experiment({{"model", "synthetic:tiny-llama"}, {"seed", 1}}))));
    EXPECT_TRUE(kept(run(experiment({{"model", "synthetic:tiny-llama"}, {"seed", 1}, {"max_new_tokens", 2}}))));
    EXPECT_FALSE(kept(run(experiment({{"model", "synthetic:tiny-llama"}, {"seed", 2}}))));
    EXPECT_EQ(run(experiment())["ids"], packed["ids"]);
}

TEST_F(KeptWeights, AFileThatChangedIsReadAgain) {
    const json first = run(experiment());
    // Replaced, as downloads do, with the same bytes and the same times.
    const auto time = std::filesystem::last_write_time(weightsFile());
    std::filesystem::copy(weightsFile(), folder_.file("new"));
    std::filesystem::last_write_time(folder_.file("new"), time);
    std::filesystem::rename(folder_.file("new"), weightsFile());
    const json replaced = run(experiment());
    EXPECT_FALSE(kept(replaced));
    EXPECT_EQ(replaced["ids"], first["ids"]);
    // Written in place: the last tensor, so that results differ where anything is read of it.
    {
        std::fstream file(weightsFile(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(-64, std::ios::end);
        file.write(std::string(64, '\x3C').data(), 64);
    }
    std::filesystem::last_write_time(weightsFile(), time);
    EXPECT_FALSE(kept(run(experiment())));
    EXPECT_TRUE(kept(run(experiment())));
}

TEST_F(KeptWeights, ALoadThatIsStoppedLeavesNothing) {
    const json slow = experiment({{"model", "synthetic:gpt-oss-20b"}, {"set", {{"num_hidden_layers", "4"}}}});
    host_->start(engine::Experiment::parse(slow, "experiment"), session(), [&](const json& message) {
        if (message["type"] == "progress" && message.value("what", "").starts_with("Making")) {
            host_->stop();
        }
    });
    const RunOutcome outcome = host_->wait();
    EXPECT_EQ(outcome.status, RunOutcome::Status::Cancelled) << outcome.error;
    EXPECT_EQ(outcome.keptBytes, 0U);
    EXPECT_FALSE(kept(run(experiment())));
    EXPECT_TRUE(kept(run(experiment())));
}

TEST_F(KeptWeights, AWorkerKilledBetweenRunsIsReplaced) {
    const json first = run(experiment());
    ASSERT_EQ(::kill(test::workerPid(), SIGKILL), 0);
    const json second = run(experiment());
    EXPECT_FALSE(kept(second));
    EXPECT_EQ(second["ids"], first["ids"]);
    ASSERT_EQ(notices_.size(), 1U);
    EXPECT_NE(notices_[0].find("was killed"), std::string::npos) << notices_[0];
    EXPECT_TRUE(kept(run(experiment())));
    EXPECT_TRUE(notices_.empty());
}

TEST_F(KeptWeights, AreGivenBackWhenAskedAndWhenIdle) {
    run(experiment());
    host_->release();
    EXPECT_FALSE(kept(run(experiment())));
    host_ = RunHost::inWorker(kWorkerProgram, 0s);
    run(experiment());
    EXPECT_EQ(outcome_.keptBytes, 0U);
    EXPECT_FALSE(kept(run(experiment())));
    host_ = RunHost::inWorker(kWorkerProgram, 1s);
    run(experiment());
    EXPECT_GT(outcome_.keptBytes, 0U);
    // A worker that stood still meanwhile may find the next run before it looks at the time: then it waits again.
    bool still = true;
    for (int time = 0; still && time < 10; ++time) {
        std::this_thread::sleep_for(2500ms);
        still = kept(run(experiment()));
    }
    EXPECT_FALSE(still);
}

TEST_F(KeptWeights, ALoadIsALoad) {
    run(experiment());
    json load = experiment();
    for (const char* other : {"tokens", "ignore_eos", "max_new_tokens"}) {
        load.erase(other);
    }
    load["workload"] = "load";
    const json variant = run(load)["variants"][0];
    EXPECT_GT(variant["bytes_read"].get<std::uint64_t>(), 0U);
    EXPECT_EQ(outcome_.keptBytes, 0U);
    EXPECT_FALSE(kept(run(experiment())));
}

TEST_F(KeptWeights, CountAgainstTheBudgetOfTheNextRun) {
    const auto bytes = run(experiment())["resident_bytes"].get<std::uint64_t>();
    host_->start(engine::Experiment::parse(experiment({{"vram_budget", bytes / 2}}), "experiment"), session(), {});
    const RunOutcome refused = host_->wait();
    EXPECT_EQ(refused.status, RunOutcome::Status::OutOfMemory) << refused.error;
    const json facts = json::parse(refused.metricsJson)["error"];
    EXPECT_EQ(facts["what"], "weights");
    EXPECT_EQ(facts["budget_bytes"], bytes / 2);
    // Room for the weights and not for the rest: the run fails later, and what was loaded stays.
    host_->start(engine::Experiment::parse(experiment({{"vram_budget", bytes + 4096}}), "experiment"), session(), {});
    EXPECT_EQ(host_->wait().status, RunOutcome::Status::OutOfMemory);
    EXPECT_TRUE(kept(run(experiment())));
}

} // namespace
} // namespace vitrine::app
