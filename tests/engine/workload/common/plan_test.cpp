// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Sizes of known models in plans, and that a plan is what a run does.

#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/resource_path.h"
#include "base/strict_json.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/engine/workload/common/sum_of_bytes.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

Experiment planOf(Json experiment) {
    experiment["vitrine"] = 1;
    experiment["plan"] = true;
    return Experiment::parse(experiment, "experiment");
}

Json plan(const Json& experiment) {
    return planExperiment(planOf(experiment), {}, {});
}

/// Cancels the run at its first step.
class StopsAtAStep final : public base::TraceSink {
public:
    base::StringId intern(std::string_view) override { return {}; }
    void record(const base::TraceEvent& event) override {
        const auto* begin = std::get_if<base::ScopeBeginEvent>(&event);
        if (begin != nullptr && begin->kind == base::ScopeKind::Step) {
            stop.request_stop();
        }
    }
    base::StopSource stop;
};

TEST(Plan, LoadsGptOssQuantizedAndDequantized) {
    const Json out = plan({{"workload", "load"}, {"model", "synthetic:gpt-oss-20b"}, {"weights", "both"}});
    EXPECT_TRUE(out["fits"]);
    EXPECT_EQ(out["device_profile"], "h100-80gb");
    ASSERT_EQ(out["variants"].size(), 2U);
    EXPECT_EQ(out["variants"][0]["resident_bytes"], 13'761'264'768U);
    EXPECT_EQ(out["variants"][0]["peak_by_category"]["weights"], 13'761'264'768U);
    EXPECT_EQ(out["variants"][1]["resident_bytes"], 41'829'514'368U);
    EXPECT_EQ(out["variants"][1]["bytes_read"], 13'761'264'768U) << "both read the same file";
    EXPECT_GT(out["variants"][0]["seconds"], 0.0);
    for (const Json& variant : out["variants"]) {
        EXPECT_EQ(test::sumOfBytes(variant["peak_by_category"]), variant["peak_bytes"]);
    }
}

TEST(Plan, SlidingLayersHalveTheCacheOfALongContext) {
    Json experiment = {
        {"workload", "generate"}, {"model", "synthetic:gpt-oss-20b"}, {"prompt_length", 131072}, {"max_new_tokens", 1}};
    const Json with = plan(experiment);
    EXPECT_EQ(with["kv_bytes"], std::uint64_t{131072} * 24576 + 3'121'152);
    EXPECT_EQ(with["max_by_category"]["kv_cache"], with["kv_bytes"]) << "131,072 tokens fill their pages";
    experiment["sliding_cache"] = false;
    const Json without = plan(experiment);
    EXPECT_EQ(without["kv_bytes"], std::uint64_t{6} << 30);
    EXPECT_EQ(test::sumOfBytes(with["peak_by_category"]), with["peak_bytes"]);
    EXPECT_GT(with["step_seconds_estimate"], 0.0);
    EXPECT_GT(with["prefill_seconds"], 0.0);
}

TEST(Plan, WhatIsCancelledKeepsWhatIsKnown) {
    const Json experiments[] = {
        {{"workload", "generate"}, {"prompt_length", 40}, {"max_new_tokens", 100}},
        {{"workload", "batch"}, {"trace", "fixed"}, {"requests", 4}},
    };
    for (Json experiment : experiments) {
        experiment["vitrine"] = 1;
        experiment["model"] = "synthetic:tiny-llama";
        StopsAtAStep sink;
        WorkloadSinks sinks;
        sinks.trace = &sink;
        Json partial;
        EXPECT_THROW(planExperiment(planOf(experiment), sinks, sink.stop.get_token(), &partial), base::Cancelled);
        EXPECT_GT(partial.value("peak_bytes", 0), 0) << experiment;
        EXPECT_GT(partial.value("resident_bytes", 0), 0) << experiment;
        EXPECT_FALSE(partial.contains("fits")) << experiment;
    }
}

/// A profile of which no op was measured: its times follow from its rates alone.
std::string unmeasuredH200() {
    const std::string file = ::testing::TempDir() + "/unmeasured-h200.json";
    Json profile = base::readStrictJson(base::resourcePath("device-profiles/h200.json"));
    profile.erase("rates_of");
    std::ofstream(file) << profile;
    return file;
}

/// The H200 as a card of one's own that takes the rates of another one.
std::string scaledH200() {
    const std::string file = ::testing::TempDir() + "/scaled-h200.json";
    std::ofstream(file) << std::ifstream(base::resourcePath("device-profiles/h200.json")).rdbuf();
    return file;
}

TEST(Plan, AStepIsADecodeStepOrWithoutOneTheLongestPrefillStep) {
    Json experiment = {{"workload", "generate"},
                       {"model", "synthetic:gpt-oss-20b"},
                       {"device_profile", unmeasuredH200()},
                       {"max_new_tokens", 1}};
    experiment["prompt_length"] = 8192;
    const Json whole = plan(experiment);
    EXPECT_EQ(whole["step_seconds_estimate"], whole["prefill_seconds"]) << "one step is all there is";
    EXPECT_EQ(whole["decode_seconds"], 0.0);
    experiment["prompt_length"] = 8193;
    EXPECT_GT(plan(experiment)["step_seconds_estimate"], 0.9 * whole["step_seconds_estimate"].get<double>())
        << "the last piece of the prompt is one token";
    experiment["max_new_tokens"] = 3;
    const Json decoded = plan(experiment);
    EXPECT_LT(decoded["step_seconds_estimate"], whole["step_seconds_estimate"].get<double>() / 10);
    EXPECT_NEAR(decoded["step_seconds_estimate"], decoded["decode_seconds"].get<double>() / 2, 1e-6);
}

TEST(Plan, ExpertsAreTooSlowByAsMuchAsTheirKernelsAre) {
    const auto prefill = [](const char* weights) {
        return plan({{"workload", "generate"},
                     {"model", "synthetic:gpt-oss-20b"},
                     {"device_profile", unmeasuredH200()},
                     {"weights", weights},
                     {"prompt_length", 8192},
                     {"max_new_tokens", 1}})["prefill_seconds"]
            .get<double>();
    };
    // 24 layers, 4 experts of 3 x 2880 x 2880 weights: the same FLOPs at 0.41 and at 0.72 of 790 TFLOP/s.
    const double flops = 24.0 * 8192 * 4 * 6 * 2880 * 2880;
    EXPECT_NEAR(prefill("dequantized") - prefill("quantized"), flops / 790e12 * (1 / 0.41 - 1 / 0.72), 2e-3);
}

TEST(Plan, AMeasuredDeviceSaysSoAndKnowsWhatTheFirstStepsTake) {
    const auto planned = [](const std::string& profile) {
        return plan({{"workload", "generate"},
                     {"model", "synthetic:gpt-oss-20b"},
                     {"device_profile", profile},
                     {"prompt_length", 64},
                     {"max_new_tokens", 4}});
    };
    const Json measured = planned("h100-80gb"), scaled = planned(scaledH200()), sheet = planned(unmeasuredH200()),
               own = planned("h200");
    EXPECT_EQ(measured["times_from"], "measured on this kind of device");
    EXPECT_EQ(scaled["times_from"], "measured on a device like this one, scaled");
    EXPECT_EQ(sheet["times_from"], "data sheet");
    EXPECT_EQ(own["times_from"], "measured on this kind of device");
    EXPECT_FALSE(sheet.contains("extrapolated_share")) << "nothing is extrapolated where nothing was measured";
    EXPECT_GT(measured["prefill_seconds"], measured["step_seconds_estimate"]);
    EXPECT_EQ(scaled["peak_bytes"], sheet["peak_bytes"]) << "times change no allocation";
}

TEST(Plan, SaysWhichPartOfItsTimeIsExtrapolated) {
    const Json far = plan({{"workload", "generate"},
                           {"model", "synthetic:deepseek-v3"},
                           {"set", {{"num_hidden_layers", "4"}}},
                           {"device_profile", "h200"},
                           {"prompt_length", 200'000},
                           {"max_new_tokens", 1}});
    const double share = far.value("extrapolated_share", 0.0) + far.value("data_sheet_share", 0.0);
    EXPECT_GT(share, 0.2) << far.dump();
    EXPECT_LE(share, 1.0);
    EXPECT_FALSE((far.value("extrapolated_ops", "") + far.value("data_sheet_ops", "")).empty());
}

TEST(Plan, WhatDoesNotFitIsAResultAndNotAnError) {
    const Json out = plan({{"workload", "generate"},
                           {"model", "synthetic:gpt-oss-20b"},
                           {"tokens", {1, 2, 3}},
                           {"vram_budget", "12 GiB"}});
    EXPECT_FALSE(out["fits"]);
    EXPECT_EQ(out["out_of_memory"]["what"], "weights");
    EXPECT_EQ(out["out_of_memory"]["budget"], std::uint64_t{12} << 30);
    EXPECT_EQ(out["budget_bytes"], std::uint64_t{12} << 30);
    EXPECT_EQ(out["peak_by_category"]["weights"], 13'761'264'768U) << "what it needs is reported all the same";
    EXPECT_EQ(out["short_by_bytes"].get<std::uint64_t>(),
              out["peak_reserved_bytes"].get<std::uint64_t>() - out["budget_bytes"].get<std::uint64_t>());
    EXPECT_GT(out["step_seconds_estimate"], 0.0);
    const Json load = plan(
        {{"workload", "load"}, {"model", "synthetic:gpt-oss-20b"}, {"weights", "both"}, {"vram_budget", "16 GiB"}});
    EXPECT_FALSE(load["fits"]);
    EXPECT_TRUE(load["variants"][0]["fits"]);
    EXPECT_FALSE(load["variants"][1]["fits"]);
    EXPECT_EQ(load["variants"][1]["resident_bytes"], 41'829'514'368U);
    EXPECT_GT(load["variants"][1]["short_by_bytes"], std::uint64_t{20} << 30);
}

constexpr const char* kInt4Experts =
    R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
        "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"],
        "config_groups": {"group_0": {"targets": ["Linear"],
                                      "weights": {"num_bits": 4, "strategy": "group", "group_size": 32}}}})";

TEST(Plan, SaysHowManyDevicesHoldIt) {
    const Json small = plan({{"workload", "generate"}, {"model", "synthetic:tiny-llama"}, {"prompt_length", 8}});
    EXPECT_EQ(small["devices"], 1);
    EXPECT_EQ(small["parameters"], small["active_parameters"]);
    Json serving = {{"workload", "generate"},
                    {"model", "synthetic:kimi-k2"},
                    {"prompt_length", 2047},
                    {"max_new_tokens", 1},
                    {"batch", 16},
                    {"device_profile", "h200"}};
    const auto devices = [&](const char* quantization) {
        serving["set"] = {{"quantization_config", quantization}};
        const Json out = plan(serving);
        EXPECT_FALSE(out["fits"]);
        EXPECT_THAT(out["devices_text"].get<std::string>(),
                    testing::HasSubstr(fmt::format("{} devices of ", out["devices"].get<int>())));
        return out["devices"].get<int>();
    };
    EXPECT_GT(devices("null"), 8);
    EXPECT_LE(devices(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})"), 8);
    EXPECT_LE(devices(kInt4Experts), 5);
}

TEST(Plan, TheLongestContextFitsAndOneTokenMoreDoesNot) {
    Json experiment = {{"workload", "generate"},
                       {"model", "synthetic:gpt-oss-120b"},
                       {"max_context", true},
                       {"vram_budget", 68'000'000'000}};
    const Json out = plan(experiment);
    const std::int64_t context = out["max_context"];
    EXPECT_EQ(out["max_context_limited_by"], "memory");
    EXPECT_GT(context, 1000);
    EXPECT_TRUE(out["fits"]);
    experiment.erase("max_context");
    experiment["max_new_tokens"] = 1;
    experiment["prompt_length"] = context - 1;
    EXPECT_TRUE(plan(experiment)["fits"]);
    experiment["prompt_length"] = context;
    EXPECT_FALSE(plan(experiment)["fits"]);
}

TEST(Plan, TheLargestBatchFitsAndOneMoreDoesNot) {
    Json experiment = {{"workload", "generate"}, {"model", "synthetic:gpt-oss-20b"},
                       {"prompt_length", 2000},  {"max_new_tokens", 50},
                       {"max_batch", true},      {"device_profile", "l4"}};
    const std::int64_t batch = plan(experiment)["max_batch"];
    EXPECT_GT(batch, 10);
    experiment.erase("max_batch");
    experiment["batch"] = batch;
    EXPECT_TRUE(plan(experiment)["fits"]);
    experiment["batch"] = batch + 1;
    EXPECT_FALSE(plan(experiment)["fits"]);
}

TEST(Plan, PredictsWhatTheCpuThenAllocates) {
    for (const std::string& name : test::modelFixtures()) {
        for (const char* workload : {"generate", "load"}) {
            Json experiment = {
                {"vitrine", 1}, {"workload", workload}, {"model", test::fixture(name)}, {"backend", "cpu"}};
            if (std::string(workload) == "generate") {
                experiment["tokens"] = {5, 6, 7, 8, 9, 10, 11};
                experiment["max_new_tokens"] = 30;
                experiment["ignore_eos"] = true;
                if (name == "llama-dynamic-rope") {
                    experiment["max_new_tokens"] = 5;
                }
            }
            const Json run = runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
            const Json planned = plan(experiment);
            EXPECT_EQ(planned["peak_bytes"], run["peak_bytes"]) << name << " " << workload;
            EXPECT_EQ(planned["peak_by_category"], run["peak_by_category"]) << name << " " << workload;
            EXPECT_EQ(planned["max_by_category"], run["max_by_category"]) << name << " " << workload;
        }
    }
}

TEST(Plan, OnlyGenerateAndLoadCanBePlanned) {
    EXPECT_THROW(
        plan({{"workload", "logits"}, {"model", "synthetic:tiny-llama"}, {"tokens_file", "x"}, {"output", "y"}}),
        base::BadInput);
}

} // namespace
} // namespace vitrine::engine
