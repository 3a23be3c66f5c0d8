// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/batch/expert_ranks.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/resource_path.h"
#include "engine/workload/common/workload.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Json rankExperiment(std::int64_t ranks, const Json& more = Json::object()) {
    Json experiment = {{"vitrine", 1},     {"workload", "batch"},  {"model", "synthetic:qwen3-30b-a3b"},
                       {"plan", true},     {"trace", "fixed"},     {"requests", 32},
                       {"slots", 32},      {"new_tokens", "32"},   {"device_profile", "h200"},
                       {"profile", "off"}, {"expert_ranks", ranks}};
    experiment.update(more);
    return experiment;
}

Json rankPlan(std::int64_t ranks, const Json& more = Json::object()) {
    return runExperiment(Experiment::parse(rankExperiment(ranks, more), "experiment"), {}, {});
}

double weightBytes(const Json& plan) {
    return plan["max_by_category"]["weights"].get<double>();
}

TEST(ExpertRanks, ADeviceHoldsItsShareOfTheExperts) {
    const double one = weightBytes(rankPlan(1)), eight = weightBytes(rankPlan(8)), sixteen = weightBytes(rankPlan(16));
    const double experts = 48.0 * 128 * 3 * 2048 * 768 * 2;
    EXPECT_NEAR(one - eight, experts * 7 / 8, experts / 100);
    EXPECT_NEAR(one - sixteen, experts * 15 / 16, experts / 100);
}

TEST(ExpertRanks, RowsTakeTimeToGoFromDeviceToDevice) {
    test::TempFolder folder;
    Json profile = Json::parse(std::ifstream(base::resourcePath("device-profiles/h200.json")));
    profile.erase("rates_of");
    const auto seconds = [&](const char* key, double factor) {
        Json slower = profile;
        slower[key] = slower[key].get<double>() / factor;
        const std::string file = folder.file(std::string(key) + ".json");
        std::ofstream(file) << slower;
        return rankPlan(16, {{"device_profile", file}})["seconds"].get<double>();
    };
    const double usual = seconds("link_bandwidth", 1);
    EXPECT_GT(seconds("node_link_bandwidth", 10), 1.02 * usual) << "half of the rows go to the other node";
    EXPECT_GE(seconds("link_bandwidth", 2), usual);
}

TEST(ExpertRanks, WhatCannotBePlannedIsRefused) {
    const auto why = [](const Json& experiment) {
        return test::failure([&] { runExperiment(Experiment::parse(experiment, "experiment"), {}, {}); });
    };
    EXPECT_THAT(why(rankExperiment(2, {{"plan", false}})), HasSubstr("expert_ranks: is for plans"));
    EXPECT_THAT(why(rankExperiment(2, {{"adapter", "tuned"}})), HasSubstr("adapter: cannot be divided"));
    EXPECT_THAT(why(rankExperiment(2, {{"model", "synthetic:llama-3.1-8b"}})), HasSubstr("has no experts"));
    EXPECT_THAT(why(rankExperiment(7)), HasSubstr("cannot divide its 128 experts"));
    EXPECT_THAT(why(rankExperiment(32)), HasSubstr("at least the 8 of a token"));
    EXPECT_THAT(why(rankExperiment(2, {{"device_profile", "l4"}})), HasSubstr("says nothing of links"));
    EXPECT_THAT(why(rankExperiment(2, {{"model", test::fixture("qwen3-moe")}})), HasSubstr("synthetic models only"));
}

} // namespace
} // namespace vitrine::engine
