// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a fine-tuning run does with the folder that it writes into.

#include "engine/workload/finetune/training_output.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/workload/common/workload.h"
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

} // namespace
} // namespace vitrine::engine
