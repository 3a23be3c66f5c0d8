// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/rates/rate_measurement.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/strict_json.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::app {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class RateMeasurementTest : public testing::Test {
protected:
    static RateExperiment generate(const std::string& name, const json& more = json::object()) {
        json spec = {{"vitrine", 1},        {"workload", "generate"}, {"model", "synthetic:tiny-gpt-oss"},
                     {"prompt_length", 16}, {"max_new_tokens", 4},    {"backend", "cpu"},
                     {"profile", "full"}};
        spec.update(more);
        return {name, engine::Experiment::parse(spec, "test")};
    }
    RateOptions options() {
        RateOptions out;
        out.sessionFile = folder_.file("runs.vitrine");
        out.makeHost = [] { return RunHost::inProcess(); };
        return out;
    }

    test::TempFolder folder_;
};

TEST_F(RateMeasurementTest, JoinsTheOpsOfAllRunsAndNamesWhatFailed) {
    std::vector<std::string> started;
    RateOptions measuring = options();
    measuring.listener.started = [&](std::size_t, const std::string& name) { started.push_back(name); };
    const RateMeasurement out =
        measureRates({generate("small"), generate("none such", {{"model", "synthetic:no-such-model"}}),
                      generate("int8", {{"kv_dtype", "int8"}})},
                     measuring, {});
    ASSERT_EQ(out.runs.size(), 3U);
    EXPECT_EQ(out.measuredRuns(), 2U);
    EXPECT_THAT(out.runs[1].reason, HasSubstr("no-such-model"));
    EXPECT_EQ(started, (std::vector<std::string>{"small", "none such", "int8"}));
    const json ops = out.rates.toJson()["ops"];
    EXPECT_TRUE(ops.contains("QkvProject"));
    EXPECT_TRUE(ops.contains("ExpertMlp.mxfp4"));
    EXPECT_TRUE(ops.contains("Attention.narrow") && ops.contains("Attention.narrow.int8"));
}

TEST_F(RateMeasurementTest, StepsCostWhatIsUsualInTheRuns) {
    const auto hostOf = [&](const std::vector<RateExperiment>& series) {
        return measureRates(series, options(), {}).rates.launch(kernels::LaunchKind::Launched);
    };
    const kernels::LaunchCost one = hostOf({generate("a")});
    const kernels::LaunchCost three = hostOf({generate("a"), generate("b"), generate("c")});
    EXPECT_GT(one.steps, 0);
    EXPECT_EQ(three.steps, 3 * one.steps) << "every run stands behind the medians";
    EXPECT_EQ(three.layers, 0) << "a CPU has no graphs whose first launches grow with the layers";
}

TEST_F(RateMeasurementTest, AStopKeepsWhatWasMeasured) {
    base::StopSource stop;
    RateOptions measuring = options();
    measuring.listener.ended = [&](const RateRun&) { stop.request_stop(); };
    const RateMeasurement out = measureRates({generate("a"), generate("b")}, measuring, stop.get_token());
    EXPECT_EQ(out.runs.size(), 1U);
    EXPECT_FALSE(out.rates.empty());
}

TEST_F(RateMeasurementTest, AStopThatComesBeforeARunBeginsEndsIt) {
    base::StopSource stop;
    RateOptions measuring = options();
    measuring.listener.started = [&](std::size_t, const std::string&) { stop.request_stop(); };
    const json endless{{"max_new_tokens", 100'000}, {"set", {{"max_position_embeddings", "131072"}}}};
    const RateMeasurement out = measureRates({generate("long", endless)}, measuring, stop.get_token());
    ASSERT_EQ(out.runs.size(), 1U);
    EXPECT_FALSE(out.runs[0].measured);
    EXPECT_THAT(out.runs[0].reason, HasSubstr("stopped"));
}

TEST_F(RateMeasurementTest, WritesAFileThatPlansReadAndReplacesNoOther) {
    kernels::OpRates rates;
    rates.add("Rope", {1e6, 1e6, 1e-5, 1});
    const std::string file = folder_.file("rates.json"), other = folder_.file("other.json");
    writeRates(file, "NVIDIA Test", rates);
    writeRates(file, "NVIDIA Test", rates);
    EXPECT_EQ(kernels::OpRates::read(file).families(), 1U);
    EXPECT_EQ(base::readStrictJson(file)["device"], "NVIDIA Test");
    std::ofstream(other) << R"({"mine": 1})";
    EXPECT_THROW(writeRates(other, "NVIDIA Test", rates), base::BadInput);
}

} // namespace
} // namespace vitrine::app
