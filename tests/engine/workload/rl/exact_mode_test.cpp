// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/exact_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/workload/common/workload.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using test::fixture;
using testing::HasSubstr;

struct ExactCase {
    const char* model;
    Json more = Json::object();
};

class ExactMode : public testing::TestWithParam<ExactCase> {
protected:
    static Json experimentOf(const char* model, const Json& more) {
        Json experiment = {{"vitrine", 1},       {"workload", "rl"}, {"backend", "cpu"},  {"model", fixture(model)},
                           {"prompt_length", 9}, {"method", "full"}, {"lr", 0.001},       {"dtype", "bfloat16"},
                           {"steps", 3},         {"prompts", 4},     {"samples", 4},      {"max_new_tokens", 12},
                           {"slots", 4},         {"exact", true},    {"ignore_eos", true}};
        experiment.update(more);
        return experiment;
    }
    static Json run(const Json& experiment) {
        return runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
    }
};

TEST_P(ExactMode, TrainerAndSamplerSayTheSame) {
    const Json out = run(experimentOf(GetParam().model, GetParam().more));
    ASSERT_EQ(out["logprob_max_diff"].size(), 3U);
    for (std::size_t step = 0; step < 3; ++step) {
        EXPECT_EQ(out["logprob_max_diff"][step], 0.0) << step;
        EXPECT_EQ(out["mismatch_k3"][step], 0.0) << step;
        EXPECT_GT(out["grad_norms"][step], 0.0) << step;
    }
}

std::string nameOfExactCase(const testing::TestParamInfo<ExactCase>& info) {
    return "Case" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(
    Families, ExactMode,
    testing::Values(ExactCase{"llama"}, ExactCase{"llama", {{"dtype", "float32"}, {"temperature", 0.7}}},
                    ExactCase{"llama", {{"qat", "int4"}, {"top_p", 0.8}}}, ExactCase{"llama", {{"method", "lora"}}},
                    ExactCase{"llama", {{"speculate", "ngram"}}}, ExactCase{"qwen2", {{"temperature", 4}}},
                    ExactCase{"qwen3"}, ExactCase{"qwen3-tied", {{"temperature", 4}}},
                    ExactCase{"gemma2", {{"temperature", 4}}}, ExactCase{"mistral"}, ExactCase{"qwen2-sliding"},
                    ExactCase{"qwen3-moe"}, ExactCase{"gpt-oss-bf16"},
                    ExactCase{"gpt-oss-mxfp4", {{"method", "lora"}}}),
    nameOfExactCase);

TEST(ExactModeOptions, WhatCannotBeEqualIsRefused) {
    const Json base = {
        {"vitrine", 1}, {"workload", "rl"}, {"model", fixture("llama")}, {"prompt_length", 9}, {"exact", true}};
    const std::vector<std::pair<Json, const char*>> cases{
        {{{"kv_dtype", "int8"}}, "kv_dtype: an exact run caches"},
        {{{"rollout", "fp8"}}, "rollout: fp8 weights sample with other numbers"},
        {{{"rollout", "bf16"}, {"qat", "int4"}, {"method", "full"}}, "rollout: training computes with the weights"},
        {{{"page_size", 4}}, "page_size: an exact run takes multiples of 8"}};
    for (const auto& [more, expected] : cases) {
        Json experiment = base;
        experiment.update(more);
        EXPECT_THAT(test::failure([&] { Experiment::parse(experiment, "experiment"); }), HasSubstr(expected));
    }
}

TEST(ExactModeOptions, FrequenciesThatFollowTheLengthAreRefused) {
    const Json experiment = {{"vitrine", 1},       {"workload", "rl"}, {"model", fixture("llama-dynamic-rope")},
                             {"prompt_length", 9}, {"exact", true},    {"steps", 1},
                             {"method", "full"}};
    EXPECT_THAT(test::failure([&] { runExperiment(Experiment::parse(experiment, "experiment"), {}, {}); }),
                HasSubstr("exact: the model's rotary frequencies follow"));
}

} // namespace
} // namespace vitrine::engine
