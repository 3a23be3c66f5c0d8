// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Runs on a device in a worker process, as the desktop program has them: what a fault leaves, and what stays
// between runs.

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/runner/host/run_host.h"
#include "base/error.h"
#include "base/resource_path.h"
#include "engine/workload/experiment/experiment.h"
#include "sessions/session_file.h"
#include "tests/app/runner/host/worker_testing.h"
#include "tests/fixture_paths.h"
#include "tests/gpu/context_testing.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::app {
namespace {

using nlohmann::json;

class WorkerGpu : public gpu::GpuTest {
protected:
    void SetUp() override {
        GpuTest::SetUp();
        if (!IsSkipped()) {
            host_ = RunHost::inWorker(test::kWorkerProgram);
        }
    }
    static json experiment(const json& more = json::object()) {
        json out = {{"vitrine", 1},        {"workload", "generate"}, {"model", test::fixture("gpt-oss-mxfp4")},
                    {"backend", "cuda"},   {"tokens", {1, 2, 3}},    {"ignore_eos", true},
                    {"max_new_tokens", 24}};
        out.update(more);
        return out;
    }
    RunOutcome run(const json& what) {
        notices_.clear();
        host_->start(engine::Experiment::parse(what, "experiment"), session(), [this](const json& message) {
            if (message["type"] == "notice") {
                notices_.push_back(message["text"]);
            }
        });
        return host_->wait();
    }
    json done(const json& what) {
        outcome_ = run(what);
        EXPECT_EQ(outcome_.status, RunOutcome::Status::Done) << outcome_.error;
        return json::parse(outcome_.metricsJson);
    }
    std::string session() const { return folder_.file("runs.vitrine"); }
    sessions::RunInfo saved(sessions::RunId run) const {
        return sessions::SessionFile::open(session(), sessions::OpenMode::ReadOnly)->run(run);
    }
    static bool kept(const json& metrics) { return metrics.value("weights_kept", false); }

    test::TempFolder folder_;
    std::unique_ptr<RunHost> host_;
    RunOutcome outcome_;
    std::vector<std::string> notices_;
};

const std::string kWildPack = test::fixture("kernel-packs/out-of-bounds");

TEST_F(WorkerGpu, AKernelThatWritesOutOfBoundsEndsItsRunAlone) {
    const json expected = done(experiment());
    const RunOutcome faulted = run(experiment({{"kernel_pack", {kWildPack}}}));
    EXPECT_EQ(faulted.status, RunOutcome::Status::Failed);
    EXPECT_EQ(faulted.errorKind, base::ErrorKind::DeviceFault) << faulted.error;
    EXPECT_EQ(faulted.exitCode, 1);
    EXPECT_NE(faulted.error.find("embedding/wild of pack out-of-bounds"), std::string::npos) << faulted.error;
    EXPECT_EQ(faulted.error.find('\n'), std::string::npos);
    EXPECT_EQ(faulted.keptBytes, 0U);
    EXPECT_EQ(saved(2).status, sessions::RunStatus::Failed);
    EXPECT_NE(saved(2).error.find("out-of-bounds"), std::string::npos) << saved(2).error;
    const json after = done(experiment());
    EXPECT_EQ(after["ids"], expected["ids"]);
    EXPECT_FALSE(kept(after));
    ASSERT_EQ(notices_.size(), 1U);
    EXPECT_NE(notices_[0].find("device fault"), std::string::npos) << notices_[0];
    EXPECT_EQ(saved(3).status, sessions::RunStatus::Done);
    EXPECT_TRUE(kept(done(experiment())));
}

TEST_F(WorkerGpu, TheNextRunTakesWeightsAndKernelsOver) {
    for (const char* profile : {"off", "light", "full"}) {
        const json first = done(experiment({{"profile", profile}, {"seed", 1}}));
        EXPECT_GT(outcome_.keptBytes, 0U);
        const json second = done(experiment({{"profile", profile}, {"seed", 1}}));
        EXPECT_TRUE(kept(second)) << profile;
        EXPECT_EQ(second["bytes_read"], 0);
        EXPECT_EQ(second["kernels_compiled"], 0);
        EXPECT_EQ(second["ids"], first["ids"]) << profile;
        EXPECT_EQ(second["kernels"].size(), first["kernels"].size());
        // Untracked bytes are those of context and libraries, which grow; what is tracked is the same.
        for (const char* category : {"weights", "kv_cache", "activations", "logits", "workspace"}) {
            EXPECT_EQ(second["max_by_category"][category], first["max_by_category"][category]) << category;
        }
        host_->release();
    }
}

TEST_F(WorkerGpu, OtherPacksAndOtherWeightsStartAfresh) {
    const json builtin = done(experiment());
    const std::string pack = base::resourcePath("kernel-packs/simple-moe");
    EXPECT_FALSE(kept(done(experiment({{"kernel_pack", {pack}}}))));
    EXPECT_TRUE(kept(done(experiment({{"kernel_pack", {pack}}}))));
    EXPECT_FALSE(kept(done(experiment({{"weights", "dequantized"}}))));
    EXPECT_FALSE(kept(done(experiment())));
    EXPECT_FALSE(kept(done(experiment({{"backend", "cpu"}}))));
    const json again = done(experiment());
    EXPECT_FALSE(kept(again));
    EXPECT_EQ(again["ids"], builtin["ids"]);
}

TEST_F(WorkerGpu, AKilledWorkerIsReplaced) {
    const json first = done(experiment());
    ASSERT_EQ(::kill(test::workerPid(), SIGKILL), 0);
    const json second = done(experiment());
    EXPECT_FALSE(kept(second));
    EXPECT_EQ(second["ids"], first["ids"]);
    EXPECT_EQ(notices_.size(), 1U);
}

/// Its budget counts what the device holds for all processes.
class WorkerMemoryGpu : public WorkerGpu {};

TEST_F(WorkerMemoryGpu, OutOfMemoryLeavesTheWorkerUsable) {
    const json first = done(experiment());
    const auto peak = first["peak_bytes"].get<std::uint64_t>();
    const auto tracked = peak - first["peak_by_category"]["untracked"].get<std::uint64_t>();
    const RunOutcome refused = run(experiment({{"vram_budget", peak - tracked / 2}}));
    EXPECT_EQ(refused.status, RunOutcome::Status::OutOfMemory) << refused.error;
    EXPECT_EQ(done(experiment())["ids"], first["ids"]);
    EXPECT_TRUE(notices_.empty());
}

} // namespace
} // namespace vitrine::app
