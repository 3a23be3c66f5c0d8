// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a fine-tuning run does with the folder that it writes into.

#include <filesystem>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "engine/training/run/training_output.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;

class TrainingOutputTest : public testing::Test {
protected:
    Json training(std::int64_t steps, const Json& more = Json::object()) const {
        Json out = {{"vitrine", 1},     {"workload", "finetune"}, {"model", test::fixture("llama")},
                    {"backend", "cpu"}, {"prompt_length", 12},    {"batch", 1},
                    {"rank", 2},        {"steps", steps},         {"output", at("out")}};
        out.update(more);
        return out;
    }
    static Json run(const Json& experiment) {
        return runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
    }
    static std::string failure(const Json& experiment) {
        return test::failure([&] { run(experiment); });
    }
    std::string at(const std::string& name) const { return folder_.file(name); }
    bool has(const std::string& name) const { return fs::exists(at("out/" + name)); }

    test::TempFolder folder_;
};

TEST_F(TrainingOutputTest, OverwriteGoesOnFromNothingThatIsOlder) {
    run(training(4, {{"save_every", 2}, {"merge", "bf16"}}));
    ASSERT_TRUE(has("checkpoint-4") && has("merged/model.safetensors"));
    run(training(2, {{"save_every", 1}, {"keep_checkpoints", 1}, {"overwrite", true}, {"lr", 0.01}}));
    EXPECT_TRUE(has("checkpoint-2"));
    EXPECT_FALSE(has("checkpoint-1") || has("checkpoint-4") || has("merged"));
    const Json more = run(training(3, {{"resume", at("out")}, {"lr", 0.01}}));
    EXPECT_EQ(more["resumed_from_step"], 2);
    EXPECT_EQ(more["losses"], run(training(3, {{"output", at("whole")}, {"lr", 0.01}}))["losses"]);
}

TEST_F(TrainingOutputTest, OverwriteLeavesWhatNoTrainingWrote) {
    run(training(2, {{"save_every", 2}}));
    fs::create_directories(at("out/checkpoint-6"));
    std::ofstream(at("out/checkpoint-6/notes.txt")) << "mine";
    run(training(1, {{"overwrite", true}}));
    EXPECT_TRUE(has("checkpoint-6/notes.txt"));
    EXPECT_FALSE(has("checkpoint-2"));
    EXPECT_THAT(failure(training(6, {{"overwrite", true}, {"save_every", 3}})),
                HasSubstr("checkpoint-6 is in the place of a checkpoint"));
    EXPECT_TRUE(has("checkpoint-6/notes.txt"));
}

TEST_F(TrainingOutputTest, OverwriteDoesNotRemoveWhatIsRead) {
    run(training(1, {{"merge", "bf16"}}));
    EXPECT_THAT(failure(training(1, {{"model", at("out/merged")}, {"overwrite", true}})),
                HasSubstr("--overwrite would remove"));
    EXPECT_TRUE(has("merged/model.safetensors"));
}

TEST_F(TrainingOutputTest, OverwriteFollowsNoLink) {
    run(training(1, {{"save_every", 1}}));
    fs::create_directory_symlink(at("out"), at("link"));
    EXPECT_THAT(failure(training(1, {{"output", at("link")}, {"overwrite", true}})), HasSubstr("link is a link"));
    EXPECT_TRUE(has("checkpoint-1"));
}

TEST_F(TrainingOutputTest, LaterCheckpointsAreNotCountedAmongThoseThatStay) {
    run(training(4, {{"save_every", 1}}));
    run(training(3, {{"save_every", 1}, {"keep_checkpoints", 1}, {"resume", at("out/checkpoint-2")}}));
    EXPECT_TRUE(has("checkpoint-3") && has("checkpoint-4"));
    run(training(3, {{"save_every", 1}, {"resume", at("out/checkpoint-3")}, {"steps", 4}, {"overwrite", true}}));
    EXPECT_TRUE(has("checkpoint-3") && has("checkpoint-4"));
}

/// Does something once, after a step.
class AfterStep final : public base::ProgressSink {
public:
    AfterStep(std::uint64_t step, std::function<void()> work) : step_(step), work_(std::move(work)) {}
    void progress(std::string_view what, std::uint64_t done, std::uint64_t) override {
        if (what.starts_with("Training") && done == step_) {
            std::exchange(work_, [] {})();
        }
    }

private:
    std::uint64_t step_;
    std::function<void()> work_;
};

TEST_F(TrainingOutputTest, ATrainingThatWasKilledBeforeItsResultIsFinished) {
    const Json asked = training(4, {{"save_every", 2}, {"merge", "bf16"}});
    const Json whole = run(asked);
    for (const char* name : {"adapter_config.json", "adapter_model.safetensors", "merged"}) {
        fs::remove_all(at("out/" + std::string(name)));
    }
    Json again = asked;
    again["resume"] = at("out");
    const Json finished = run(again);
    EXPECT_EQ(finished["resumed_from_step"], 4);
    EXPECT_TRUE(finished["step_seconds"].empty()) << "nothing is trained again";
    for (const char* key : {"losses", "saved_loss", "merged_loss", "trained_loss"}) {
        EXPECT_EQ(finished[key], whole[key]) << key;
    }
    EXPECT_TRUE(has("adapter_model.safetensors") && has("merged/model.safetensors"));
    again["steps"] = 3;
    EXPECT_THAT(failure(again), HasSubstr("has 4 steps already, and steps asks for 3"));
}

TEST_F(TrainingOutputTest, AnEvaluationThatIsCutIsSaidAndMadeLater) {
    const Json asked = training(4, {{"eval_every", 2}, {"data", at("rows.jsonl")}, {"eval_data", at("rows.jsonl")}});
    std::ofstream(at("rows.jsonl")) << R"({"tokens": [5, 9, 200, 31]})" << '\n'
                                    << R"({"tokens": [7, 9, 20, 3]})" << '\n';
    Json quick = asked;
    quick.erase("prompt_length"); // the data take its place
    for (const int step : {2, 4}) {
        const std::string out = at("cut" + std::to_string(step));
        quick["output"] = out;
        base::StopSource stop;
        AfterStep cut(static_cast<std::uint64_t>(step), [&] { stop.request_stop(); });
        WorkloadSinks sinks;
        sinks.progress = &cut;
        Json partial;
        EXPECT_THROW(runExperiment(Experiment::parse(quick, "experiment"), sinks, stop.get_token(), &partial),
                     base::Cancelled);
        EXPECT_EQ(partial["eval_cut_at_step"], step);
        EXPECT_TRUE(fs::exists(out + "/checkpoint-" + std::to_string(step)));
        Json more = quick;
        more["resume"] = out;
        EXPECT_EQ(run(more)["eval_steps"], (Json{2, 4})) << step;
    }
}

TEST_F(TrainingOutputTest, AFolderThatVanishesIsMadeAgain) {
    AfterStep gone(2, [&] { fs::remove_all(at("out")); });
    WorkloadSinks sinks;
    sinks.progress = &gone;
    std::string said;
    base::setLogSink([&](base::LogLevel, std::string_view text) { said += text; });
    runExperiment(Experiment::parse(training(4, {{"save_every", 4}}), "experiment"), sinks, {});
    base::setLogSink({});
    EXPECT_THAT(said, HasSubstr("out is gone; it is made again, and metrics.csv begins with step 3"));
    EXPECT_TRUE(has("checkpoint-4/trainer_state.json") && has("adapter_model.safetensors") && has("metrics.csv"));
}

TEST_F(TrainingOutputTest, AFolderThatWasMadeAgainIsLockedAnew) {
    std::string second;
    AfterStep gone(2, [&] {
        fs::remove_all(at("out"));
        fs::create_directories(at("out"));
    });
    AfterStep look(3, [&] { second = test::failure([&] { const FolderLock other("output", at("out")); }); });
    class Both final : public base::ProgressSink {
    public:
        Both(base::ProgressSink& first, base::ProgressSink& second) : first_(first), second_(second) {}
        void progress(std::string_view what, std::uint64_t done, std::uint64_t total) override {
            first_.progress(what, done, total);
            second_.progress(what, done, total);
        }

    private:
        base::ProgressSink &first_, &second_;
    } both(gone, look);
    WorkloadSinks sinks;
    sinks.progress = &both;
    runExperiment(Experiment::parse(training(4), "experiment"), sinks, {});
    EXPECT_THAT(second, HasSubstr("another run writes into"));
    EXPECT_TRUE(has("adapter_model.safetensors"));
}

TEST_F(TrainingOutputTest, AFolderThatAnotherRunTookMeanwhileIsLeftAlone) {
    std::optional<FolderLock> other;
    for (const std::uint64_t step : {2, 4}) {
        AfterStep gone(step, [&] {
            fs::remove_all(at("out"));
            other.emplace("output", at("out"));
        });
        WorkloadSinks sinks;
        sinks.progress = &gone;
        const std::string what =
            test::failure([&] { runExperiment(Experiment::parse(training(4), "experiment"), sinks, {}); });
        EXPECT_THAT(what, HasSubstr("another run writes into"));
        const std::string mark = "is saved in ";
        ASSERT_THAT(what, HasSubstr(mark)) << step;
        const std::size_t begin = what.find(mark) + mark.size();
        fs::remove_all(fs::path(what.substr(begin, what.find(':', begin) - begin)).parent_path());
        EXPECT_FALSE(has("metrics.csv") || has("adapter_model.safetensors")) << step;
        other.reset();
    }
}

TEST_F(TrainingOutputTest, WhereTheFolderCannotBeMadeTheStateIsSavedElsewhere) {
    const auto blocked = [&] {
        fs::remove_all(at("out"));
        std::ofstream(at("out")) << "a file";
    };
    AfterStep gone(2, blocked);
    WorkloadSinks sinks;
    sinks.progress = &gone;
    const std::string what =
        test::failure([&] { runExperiment(Experiment::parse(training(4), "experiment"), sinks, {}); });
    const std::string mark = "is saved in ";
    ASSERT_THAT(what, HasSubstr(mark));
    const std::size_t begin = what.find(mark) + mark.size();
    const std::string place = what.substr(begin, what.find(':', begin) - begin);
    fs::remove(at("out"));
    const Json whole = run(training(4, {{"output", at("whole")}}));
    EXPECT_EQ(run(training(4, {{"resume", place}}))["losses"], whole["losses"]);
    fs::remove_all(fs::path(place).parent_path());
}

TEST_F(TrainingOutputTest, CheckpointsThatHaveNoRoomOnTheDiskAreRefusedFirst) {
    run(training(1, {{"save_every", 1}}));
    const std::int64_t many = 16'000'000;
    EXPECT_THAT(failure(training(many, {{"save_every", 1}, {"overwrite", true}, {"rank", 64}})),
                HasSubstr(at("out") + ": needs "));
    EXPECT_TRUE(has("checkpoint-1")) << "nothing is removed for a run that does not begin";
    base::StopSource stop;
    AfterStep enough(1, [&] { stop.request_stop(); });
    WorkloadSinks sinks;
    sinks.progress = &enough;
    const Json fewKept = training(many, {{"save_every", 1}, {"overwrite", true}, {"keep_checkpoints", 2}});
    EXPECT_THAT(
        test::failure([&] { runExperiment(Experiment::parse(fewKept, "experiment"), sinks, stop.get_token()); }),
        testing::Not(HasSubstr("of disk")));
}

TEST_F(TrainingOutputTest, WhatAKilledProcessLeftIsRemoved) {
    fs::create_directories(at("out/checkpoint-3.partial"));
    fs::create_directories(at("out/checkpoint-5.partial"));
    for (const char* name :
         {"adapter_model.safetensors.part-1", "checkpoint-3.partial/trainer_state.safetensors.part-1",
          "checkpoint-5.partial/notes.txt", "rows.jsonl.part-1", "model.safetensors.part-x"}) {
        std::ofstream(at("out/" + std::string(name))) << "half";
    }
    run(training(1, {{"overwrite", true}}));
    EXPECT_FALSE(has("adapter_model.safetensors.part-1") || has("checkpoint-3.partial"));
    EXPECT_TRUE(has("checkpoint-5.partial/notes.txt") && has("rows.jsonl.part-1") && has("model.safetensors.part-x"));
}

TEST_F(TrainingOutputTest, AnEmptyNameOfAFolderIsAnError) {
    EXPECT_THAT(failure(training(1, {{"output", ""}})), HasSubstr("output: is empty; name a file or folder"));
}

TEST_F(TrainingOutputTest, OneRunWritesIntoAFolder) {
    std::string second;
    AfterStep meanwhile(1, [&] { second = failure(training(1, {{"overwrite", true}})); });
    WorkloadSinks sinks;
    sinks.progress = &meanwhile;
    runExperiment(Experiment::parse(training(2), "experiment"), sinks, {});
    EXPECT_THAT(second, HasSubstr("output: another run writes into " + at("out")));
    EXPECT_FALSE(has(".vitrine-lock"));
    EXPECT_EQ(
        failure(
            {{"vitrine", 1}, {"workload", "synthesize"}, {"model", "synthetic:tiny-llama"}, {"output", at("tiny")}}),
        "no error");
}

} // namespace
} // namespace vitrine::engine
