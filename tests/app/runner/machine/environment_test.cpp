// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/machine/environment.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/resource_path.h"
#include "engine/workload/experiment/experiment.h"

namespace vitrine::app {
namespace {

nlohmann::json environmentOf(const std::string& model) {
    return runEnvironment(engine::Experiment::parse(
        {{"vitrine", 1}, {"workload", "generate"}, {"model", model}, {"backend", "cpu"}, {"prompt", "x"}}, "test"));
}

TEST(Environment, SaysWhichProgramRanWhichModel) {
    const nlohmann::json own = environmentOf(base::resourcePath("models/vitrine-demo"));
    EXPECT_EQ(own.at("model_hash").get<std::string>().size(), 16u);
    EXPECT_FALSE(own.at("commit").get<std::string>().empty());
    EXPECT_NE(own.at("command_line").get<std::string>().find("app_tests"), std::string::npos);
    EXPECT_EQ(own.at("working_directory"), std::filesystem::current_path().string());
    EXPECT_FALSE(own.contains("driver_version")) << "not of a run on the CPU";
    EXPECT_FALSE(environmentOf("synthetic:tiny-gpt-oss").contains("model_hash")) << "it has no files";
}

} // namespace
} // namespace vitrine::app
