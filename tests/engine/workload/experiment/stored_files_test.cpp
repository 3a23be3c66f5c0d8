// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/stored_files.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class StoredFilesTest : public testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / fmt::format("vitrine-stored-files-{}", ::getpid());
        fs::create_directories(folder_ / "work/models/tiny");
        fs::create_directories(folder_ / "sessions/models/other");
        std::ofstream(folder_ / "work/rows.jsonl") << "{}\n";
        std::ofstream(folder_ / "work/out.json") << "{}\n";
    }
    void TearDown() override { fs::remove_all(folder_); }

    StoredPlaces places() const { return {path("work"), path("sessions"), {}}; }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    static Json found(const Json& spec, const StoredPlaces& places) {
        return Json::parse(findStoredFiles(spec.dump(), places).experiment);
    }

    fs::path folder_;
};

TEST_F(StoredFilesTest, RelativeNamesAreLookedForInTheFoldersOfTheRunAndOfTheSession) {
    const Json run{{"workload", "generate"}, {"model", "models/tiny"}};
    EXPECT_EQ(found(run, places())["model"], path("work/models/tiny"));
    EXPECT_EQ(findStoredFiles(run.dump(), places()).missingModel, "");
    const Json beside{{"workload", "generate"}, {"model", "./models/other"}};
    EXPECT_EQ(found(beside, places())["model"], path("sessions/models/other"));
    StoredPlaces older = places();
    older.workingFolder.clear();
    EXPECT_EQ(findStoredFiles(run.dump(), older).missingModel, "models/tiny");
    EXPECT_EQ(findStoredFiles(run.dump(), older).experiment, run.dump());
}

TEST_F(StoredFilesTest, WhatARunReadsIsFoundAndWhatItWritesKeepsItsName) {
    const Json spec{{"workload", "logits"},
                    {"model", "synthetic:tiny-llama"},
                    {"tokens_file", "rows.jsonl"},
                    {"output", "out.json"},
                    {"dtype", "rows.jsonl"}};
    const Json out = found(spec, places());
    EXPECT_EQ(out["tokens_file"], path("work/rows.jsonl"));
    EXPECT_EQ(out["output"], "out.json");
    EXPECT_EQ(out["dtype"], "rows.jsonl") << "an option that names no file";
    EXPECT_EQ(out["model"], "synthetic:tiny-llama");
}

TEST_F(StoredFilesTest, AMovedModelIsWhereOneSaidThatItIs) {
    StoredPlaces moved = places();
    const Json run{{"workload", "generate"}, {"model", "/old/disk/tiny"}};
    EXPECT_EQ(findStoredFiles(run.dump(), moved).missingModel, "/old/disk/tiny");
    moved.moved["/old/disk/tiny"] = path("work/models/tiny");
    EXPECT_EQ(found(run, moved)["model"], path("work/models/tiny"));
    EXPECT_EQ(findStoredFiles(run.dump(), moved).missingModel, "");
    moved.moved["/old/disk/tiny"] = path("gone");
    EXPECT_EQ(findStoredFiles(run.dump(), moved).missingModel, "/old/disk/tiny") << "asked again by its first name";
}

TEST_F(StoredFilesTest, TextsThatAreNoExperimentStayAsTheyAre) {
    for (const char* text : {"", "x", "[1]", R"({"file":"a.qdrep"})"}) {
        EXPECT_EQ(findStoredFiles(text, places()).experiment, text);
        EXPECT_EQ(findStoredFiles(text, places()).missingModel, "");
    }
}

} // namespace
} // namespace vitrine::engine
