// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/rates/rate_series.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "engine/workload/experiment/workload_table.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::app {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class RateSeries : public testing::Test {
protected:
    std::string write(const json& value) {
        const std::string path = folder_.file("series.json");
        std::ofstream(path) << value;
        return path;
    }
    std::string refusalOf(const json& value) {
        try {
            readRateSeries(write(value));
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return "taken";
    }
    static json generate() {
        return {{"vitrine", 1}, {"workload", "generate"}, {"model", "synthetic:tiny-gpt-oss"}, {"prompt_length", 8}};
    }

    test::TempFolder folder_;
};

engine::Experiment experimentOf(const char* layers) {
    return engine::Experiment::parse({{"vitrine", 1},
                                      {"workload", "generate"},
                                      {"model", "synthetic:llama-3.1-8b"},
                                      {"set", {{"num_hidden_layers", layers}}},
                                      {"prompt_length", 64},
                                      {"max_new_tokens", 2}},
                                     "test");
}

std::string layersOfModel(const std::optional<engine::Experiment>& experiment) {
    return experiment ? experiment->pairs("set").at("num_hidden_layers") : "none";
}

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST_F(RateSeries, TheShippedOneCoversDecodePrefillPackedWeightsCachesBatchesAndTraining) {
    const std::vector<RateExperiment> series = readRateSeries("");
    std::set<std::string> names, workloads, caches, methods;
    std::size_t packed = 0;
    for (const RateExperiment& one : series) {
        names.insert(one.name);
        workloads.insert(std::string(one.experiment.workload().name));
        EXPECT_EQ(one.experiment.text("profile"), "light") << one.name << ": times as those of usual runs";
        if (one.experiment.has("kv_dtype")) {
            caches.insert(one.experiment.text("kv_dtype"));
        }
        if (one.experiment.has("method")) {
            methods.insert(one.experiment.text("method"));
        }
        packed += one.experiment.toJson().dump().find("quantization_config") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(names.size(), series.size()) << "each name says which one it is";
    EXPECT_EQ(workloads, (std::set<std::string>{"batch", "finetune", "generate", "rl"}));
    EXPECT_EQ(methods, (std::set<std::string>{"full", "lora", "qlora"}));
    EXPECT_TRUE(caches.contains("fp8") && caches.contains("int8"));
    EXPECT_GE(packed, 4U);
}

TEST_F(RateSeries, NamesTheEntryThatIsWrong) {
    EXPECT_THAT(refusalOf(json::array()), HasSubstr("an array of 1 to"));
    EXPECT_THAT(refusalOf(json::array({{{"name", "a"}}})), HasSubstr("entry 1"));
    EXPECT_THAT(refusalOf(json::array({{{"name", ""}, {"experiment", generate()}}})), HasSubstr("entry 1: name"));
    json wrong = generate();
    wrong["prompt_lenth"] = 3;
    EXPECT_THAT(
        refusalOf(json::array({{{"name", "a"}, {"experiment", generate()}}, {{"name", "b"}, {"experiment", wrong}}})),
        testing::AllOf(HasSubstr("entry 2"), HasSubstr("prompt_lenth")));
    json plan = generate(), quiet = generate();
    plan["plan"] = true;
    EXPECT_THAT(refusalOf(json::array({{{"name", "a"}, {"experiment", plan}}})), HasSubstr("no plan"));
    quiet["profile"] = "off";
    EXPECT_THAT(refusalOf(json::array({{{"name", "a"}, {"experiment", quiet}}})), HasSubstr("no profile off"));
    EXPECT_EQ(refusalOf(json::array({{{"name", "a"}, {"experiment", generate()}}})), "taken");
}

TEST_F(RateSeries, AModelHasAsManyLayersAsFit) {
    const base::StopToken never;
    EXPECT_EQ(layersOfModel(fittedToDevice(experimentOf("32"), 100 * kGiB, never)), "32");
    const std::string few = layersOfModel(fittedToDevice(experimentOf("32"), 8 * kGiB, never));
    EXPECT_TRUE(few == "8" || few == "4") << few;
    EXPECT_EQ(layersOfModel(fittedToDevice(experimentOf("32"), kGiB, never)), "none");
}

} // namespace
} // namespace vitrine::app
