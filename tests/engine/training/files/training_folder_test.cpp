// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/files/training_folder.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TrainingFolder : public testing::Test {
protected:
    void SetUp() override { fs::create_directories(out()); }
    std::string out() const { return folder_.file("out"); }
    std::string at(const std::string& name) const { return out() + "/" + name; }
    void write(const std::string& name) const {
        fs::create_directories(fs::path(at(name)).parent_path());
        folder_.write("out/" + name, "{}");
    }
    void writeCheckpoint(const std::string& name) const {
        write(name + "/trainer_state.json");
        write(name + "/trainer_state.safetensors");
    }
    std::string removal() const {
        return test::failure([&] { removeEarlierTraining(out()); });
    }

    test::TempFolder folder_;
};

TEST_F(TrainingFolder, OfAnEarlierTrainingNothingStays) {
    writeCheckpoint("checkpoint-2");
    write("checkpoint-4.partial/trainer_state.safetensors.part-7");
    write("adapter_config.json");
    write("merged/config.json");
    noteTrainingFiles(out(), {"adapter_config.json"});
    noteTrainingFiles(out(), {"merged/config.json"});
    EXPECT_EQ(removal(), "no error");
    EXPECT_TRUE(fs::is_empty(out()));
}

TEST_F(TrainingFolder, OneWithoutACheckpointIsAbandoned) {
    EXPECT_TRUE(abandonedTraining(out()).empty()) << "there is nothing";
    write("metrics.csv");
    EXPECT_TRUE(abandonedTraining(out()).empty()) << "which nobody has listed";
    noteTrainingFiles(out(), {"metrics.csv", "tensorboard/events", "model.safetensors"});
    write("tensorboard/events");
    write("checkpoint-4.partial/trainer_state.safetensors.part-7");
    EXPECT_EQ(abandonedTraining(out()).size(), 4U);
    writeCheckpoint("checkpoint-4");
    EXPECT_TRUE(abandonedTraining(out()).empty()) << "a run can go on from it";
    fs::remove_all(at("checkpoint-4"));
    write("model.safetensors");
    EXPECT_TRUE(abandonedTraining(out()).empty()) << "it has a result";
}

TEST_F(TrainingFolder, FilesOfSomebodyElseStay) {
    const std::vector<std::string> others = {"checkpoint-6/notes.txt",
                                             "checkpoint-7/trainer_state.json",
                                             "checkpoint-07/trainer_state.json",
                                             "checkpoint-07/trainer_state.safetensors",
                                             "checkpoint-8.partial/rows.jsonl",
                                             "model.safetensors",
                                             "merged/notes.txt",
                                             "adapter_config.json.bak"};
    for (const std::string& name : others) {
        write(name);
    }
    writeCheckpoint("checkpoint-5");
    write("merged/config.json");
    noteTrainingFiles(out(), {"merged/config.json", "../outside.json", "/etc/hostname", "merged/../../outside.json"});
    folder_.write("outside.json", "{}");
    EXPECT_EQ(removal(), "no error");
    for (const std::string& name : others) {
        EXPECT_TRUE(fs::exists(at(name))) << name;
    }
    EXPECT_TRUE(fs::exists(folder_.file("outside.json")));
    EXPECT_FALSE(fs::exists(at("checkpoint-5")));
    EXPECT_FALSE(fs::exists(at("merged/config.json")));
}

TEST_F(TrainingFolder, ACheckpointWithOtherFilesIsNamedAndStays) {
    writeCheckpoint("checkpoint-5");
    writeCheckpoint("checkpoint-6");
    write("checkpoint-6/notes.txt");
    EXPECT_EQ(checkpointKind(at("checkpoint-6")), CheckpointKind::Mixed);
    EXPECT_THAT(removal(), HasSubstr("checkpoint-6 is a checkpoint with other files in it"));
    EXPECT_TRUE(fs::exists(at("checkpoint-5"))) << "nothing is removed before all is checked";
    EXPECT_THAT(test::failure([&] { removeCheckpoint(at("checkpoint-6")); }),
                HasSubstr("files that no training wrote"));
    EXPECT_TRUE(fs::exists(at("checkpoint-6/trainer_state.json")));
}

TEST_F(TrainingFolder, LinksAreNotFollowed) {
    const std::string elsewhere = folder_.file("elsewhere");
    fs::create_directories(elsewhere);
    for (const char* name : {"trainer_state.json", "trainer_state.safetensors", "config.json", "metrics.csv"}) {
        folder_.write("elsewhere/" + std::string(name), "{}");
    }
    for (const char* name : {"checkpoint-3", "merged", "metrics.csv"}) {
        const bool isFile = std::string(name) == "metrics.csv";
        fs::create_symlink(isFile ? elsewhere + "/metrics.csv" : elsewhere, at(name));
        noteTrainingFiles(out(), {"merged/config.json", "metrics.csv"});
        EXPECT_THAT(removal(), HasSubstr(std::string(name) + " is a link"));
        fs::remove(at(name));
    }
    writeCheckpoint("checkpoint-5");
    fs::create_directory_symlink(out(), folder_.file("link"));
    for (const char* link : {"link", "link/", "link/."}) {
        EXPECT_THAT(test::failure([&] { removeEarlierTraining(folder_.file(link)); }), HasSubstr("link is a link"))
            << link;
    }
    EXPECT_TRUE(fs::exists(at("checkpoint-5")));
    EXPECT_TRUE(fs::exists(elsewhere + "/config.json"));
}

/// Versions before training_files.json.
class UnlistedTraining : public TrainingFolder {
protected:
    void SetUp() override {
        TrainingFolder::SetUp();
        fs::create_directories(at("merged"));
        fs::create_directories(at("tensorboard"));
        folder_.write("out/metrics.csv", "step,loss,learning_rate,grad_norm,tokens_per_second\n1,2,3,4,5\n");
        folder_.write("out/adapter_config.json", text({{"peft_type", "LORA"}, {"task_type", "CAUSAL_LM"}, {"r", 2}}));
        folder_.write("out/adapter_model.safetensors", tensors("base_model.model.x.lora_A.weight"));
        folder_.write("out/merged/config.json", text({{"model_type", "llama"}}));
        folder_.write("out/merged/model.safetensors", tensors("model.norm.weight"));
        write("merged/tokenizer.json");
        write("tensorboard/events.out.tfevents.1");
        write("notes.txt");
        writeCheckpoint("checkpoint-2");
    }
    static std::string text(const nlohmann::json& object) { return object.dump(2) + "\n"; }
    static std::string tensors(const std::string& name) {
        return std::string(8, '\0') + R"({"__metadata__":{"format":"pt"},")" + name + R"(":{"dtype":"F32"}})";
    }
    std::string warning() const {
        std::string said;
        base::setLogSink([&](base::LogLevel, std::string_view text) { said += text; });
        EXPECT_EQ(removal(), "no error");
        base::setLogSink({});
        return said;
    }
};

TEST_F(UnlistedTraining, LosesWhatATrainingSurelyWrote) {
    const std::string said = warning();
    for (const char* name : {"metrics.csv", "adapter_config.json", "adapter_model.safetensors", "merged/config.json",
                             "merged/model.safetensors", "checkpoint-2"}) {
        EXPECT_FALSE(fs::exists(at(name))) << name;
    }
    EXPECT_THAT(said, HasSubstr("output: " + out() + " has no training_files.json"));
    EXPECT_THAT(said, HasSubstr("stays: merged/tokenizer.json, notes.txt, tensorboard"));
    EXPECT_TRUE(fs::exists(at("merged/tokenizer.json")) && fs::exists(at("notes.txt")));
}

TEST_F(UnlistedTraining, KeepsAnAdapterThatSomebodyElseWrote) {
    const std::string own = text({{"peft_type", "LORA"}, {"task_type", "CAUSAL_LM"}, {"r", 2}});
    folder_.write("out/adapter_config.json", own.substr(0, own.size() - 1)); // as PEFT does
    EXPECT_THAT(warning(), HasSubstr("stays: adapter_config.json, adapter_model.safetensors, merged/config.json"));
    EXPECT_FALSE(fs::exists(at("metrics.csv")) || fs::exists(at("checkpoint-2")));
    EXPECT_TRUE(fs::exists(at("adapter_model.safetensors")) && fs::exists(at("merged/model.safetensors")));
}

TEST_F(UnlistedTraining, WithoutATraceOfATrainingAllStays) {
    write("metrics.csv");
    fs::remove_all(at("checkpoint-2"));
    EXPECT_EQ(warning(), "");
    EXPECT_TRUE(fs::exists(at("adapter_config.json")) && fs::exists(at("metrics.csv")));
}

TEST_F(TrainingFolder, ADamagedListRemovesNothing) {
    write("model.safetensors");
    for (const char* text :
         {"", "[1", "{\"files\": 3}", "{\"files\": [3, null, \"\", \".\", \"..\", \"./model.safetensors\"]}"}) {
        folder_.write("out/training_files.json", text);
        EXPECT_EQ(removal(), "no error");
        EXPECT_TRUE(fs::exists(at("model.safetensors"))) << text;
    }
}

} // namespace
} // namespace vitrine::engine
