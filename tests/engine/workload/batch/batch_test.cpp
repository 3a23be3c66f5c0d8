// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Batches through runExperiment: traces in, answers and percentiles out, and plans of them.

#include "engine/workload/batch/batch.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unistd.h>

#include "base/error.h"
#include "base/resource_path.h"
#include "engine/workload/batch/batch_ceiling.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/fixture_paths.h"
#include "tests/repetitions.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class WorkloadBatch : public ::testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / fmt::format("vitrine-batch-{}", ::getpid());
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    Json batch(const Json& more, const WorkloadSinks& sinks = {}) const {
        Json experiment = {{"vitrine", 1},     {"workload", "batch"}, {"model", test::fixture("gpt-oss-mxfp4")},
                           {"backend", "cpu"}, {"slots", 3},          {"outputs", path("out.jsonl")}};
        experiment.update(more);
        return runExperiment(Experiment::parse(experiment, "experiment"), sinks, {});
    }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    std::string file(const std::string& name, const std::string& text) const {
        std::ofstream(path(name), std::ios::binary) << text;
        return path(name);
    }
    std::vector<Json> outputs() const {
        std::vector<Json> rows;
        std::ifstream in(path("out.jsonl"));
        for (std::string line; std::getline(in, line);) {
            rows.push_back(Json::parse(line));
        }
        return rows;
    }

    fs::path folder_;
};

TEST_F(WorkloadBatch, AnswersAreThoseOfGenerateUnderBothModes) {
    std::string trace;
    std::map<std::string, std::vector<std::int32_t>> expected;
    for (int i = 0; i < 7; ++i) {
        std::vector<std::int32_t> tokens;
        for (int t = 0; t < 2 + 5 * i; ++t) {
            tokens.push_back((t * 13 + i) % 200);
        }
        const std::string id = fmt::format("r{}", i);
        trace += Json{{"id", id}, {"tokens", tokens}, {"max_new_tokens", 3 + 2 * i}}.dump() + "\n";
        expected[id] = runExperiment(Experiment::parse({{"vitrine", 1},
                                                        {"workload", "generate"},
                                                        {"model", test::fixture("gpt-oss-mxfp4")},
                                                        {"backend", "cpu"},
                                                        {"tokens", tokens},
                                                        {"max_new_tokens", 3 + 2 * i}},
                                                       "experiment"),
                                     {}, {})["ids"]
                           .get<std::vector<std::int32_t>>();
    }
    file("trace.jsonl", trace);
    for (const char* mode : {"static", "continuous"}) {
        const Json out = batch({{"trace", path("trace.jsonl")}, {"mode", mode}, {"token_budget", 20}});
        std::size_t generated = 0;
        const std::vector<Json> rows = outputs();
        ASSERT_EQ(rows.size(), 7U);
        for (const Json& row : rows) {
            EXPECT_EQ(row["ids"].get<std::vector<std::int32_t>>(), expected[row["id"]]) << mode << ' ' << row["id"];
            generated += row["ids"].size();
        }
        EXPECT_EQ(out["generated_tokens"], generated);
        EXPECT_EQ(out["finished_requests"], 7);
        std::uint64_t ended = 0;
        for (const auto& [reason, count] : out["finish_reasons"].items()) {
            EXPECT_TRUE(reason == "length" || reason == "stop_token") << reason;
            ended += count.get<std::uint64_t>();
        }
        EXPECT_EQ(ended, 7U);
        EXPECT_GT(out["tokens_per_second"].get<double>(), 0);
        EXPECT_DOUBLE_EQ(out["slot_utilization"].get<double>(),
                         static_cast<double>(generated) / (3 * out["decode_steps"].get<double>()));
        for (const char* key : {"ttft", "tpot", "e2e"}) {
            EXPECT_LE(out[key]["p50"], out[key]["p90"]);
            EXPECT_LE(out[key]["p90"], out[key]["p95"]);
            EXPECT_LE(out[key]["p95"], out[key]["p99"]);
        }
    }
}

TEST_F(WorkloadBatch, ARowsOwnSeedGivesTheSameAnswerWhereverItStands) {
    Json seeded = {{"tokens", {3, 5, 8}}, {"max_new_tokens", 12}, {"temperature", 1}, {"seed", 11}};
    Json unseeded = seeded;
    unseeded.erase("seed");
    std::string trace;
    for (int i = 0; i < 6; ++i) {
        seeded["id"] = fmt::format("seeded {}", i);
        unseeded["id"] = fmt::format("plain {}", i);
        trace += seeded.dump() + "\n" + unseeded.dump() + "\n";
    }
    file("seeds.jsonl", trace);
    for (const char* mode : {"static", "continuous"}) {
        batch({{"trace", path("seeds.jsonl")}, {"mode", mode}});
        const std::vector<Json> rows = outputs();
        ASSERT_EQ(rows.size(), 12U);
        std::set<Json> withSeed;
        std::set<Json> without;
        for (const Json& row : rows) {
            (row["id"].get<std::string>().starts_with("seeded") ? withSeed : without).insert(row["ids"]);
        }
        EXPECT_EQ(withSeed.size(), 1U) << mode;
        EXPECT_GT(without.size(), 1U) << mode << ": without a seed they differ";
    }
    // `generate` draws the same for its first request.
    const Json alone = runExperiment(Experiment::parse({{"vitrine", 1},
                                                        {"workload", "generate"},
                                                        {"model", test::fixture("gpt-oss-mxfp4")},
                                                        {"backend", "cpu"},
                                                        {"tokens", {3, 5, 8}},
                                                        {"max_new_tokens", 12},
                                                        {"temperature", 1},
                                                        {"seed", 11}},
                                                       "experiment"),
                                     {}, {});
    const std::vector<Json> rows = outputs();
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const Json& row) { return row["ids"] == alone["ids"]; }));
}

TEST_F(WorkloadBatch, PenaltiesOfARowAreThoseOfGenerate) {
    const Json penalties = {{"frequency_penalty", -2}, {"presence_penalty", -1.5}};
    Json plain = {{"tokens", {3, 5, 8}}, {"max_new_tokens", 30}};
    Json punished = plain;
    punished.update(penalties);
    file("penalties.jsonl", plain.dump() + "\n" + punished.dump() + "\n" + plain.dump() + "\n");
    batch({{"trace", path("penalties.jsonl")}});
    const std::vector<Json> rows = outputs();
    punished.update(
        {{"vitrine", 1}, {"workload", "generate"}, {"model", test::fixture("gpt-oss-mxfp4")}, {"backend", "cpu"}});
    const Json alone = runExperiment(Experiment::parse(punished, "experiment"), {}, {});
    EXPECT_EQ(rows.at(1)["ids"], alone["ids"]);
    EXPECT_NE(rows.at(1)["ids"], rows.at(0)["ids"]) << "what was said is said again";
    EXPECT_EQ(rows.at(2)["ids"], rows.at(0)["ids"]);
    // Penalties of the experiment are those of the rows that name none.
    Json experiment = penalties;
    experiment["trace"] = path("penalties.jsonl");
    batch(experiment);
    EXPECT_EQ(outputs().at(0)["ids"], alone["ids"]);
}

TEST_F(WorkloadBatch, StaticUsesTheShareOfItsSlotsThatTheLengthsGive) {
    std::string trace;
    for (const int length : {32, 128, 64, 256}) {
        trace += Json{{"prompt_length", 5}, {"max_new_tokens", length}, {"stop_tokens", Json::array()}}.dump() + "\n";
    }
    const Json out = batch({{"trace", file("t.jsonl", trace)}, {"mode", "static"}, {"slots", 4}, {"backend", "meta"}});
    EXPECT_EQ(out["generated_tokens"], 480);
    EXPECT_EQ(out["decode_steps"], 256);
    EXPECT_DOUBLE_EQ(out["slot_utilization"].get<double>(), 480.0 / 1024);
}

TEST_F(WorkloadBatch, TextPromptsGiveText) {
    const std::string trace = "{\"id\": 1, \"prompt\": \"Hello\", \"max_new_tokens\": 8}\n"
                              "{\"id\": 2, \"tokens\": [5, 6], \"max_new_tokens\": 8}\n";
    const Json out = batch({{"model", base::resourcePath("models/vitrine-demo")}, {"trace", file("t.jsonl", trace)}});
    EXPECT_EQ(out["finished_requests"], 2);
    EXPECT_TRUE(outputs()[0].contains("text"));
}

TEST_F(WorkloadBatch, WhatDoesNotFitTheModelIsRefusedAndTheRestRuns) {
    const std::string trace = "{\"prompt_length\": 100000, \"max_new_tokens\": 8}\n"
                              "{\"tokens\": [5, 6], \"max_new_tokens\": 4, \"stop_tokens\": []}\n";
    const Json out = batch({{"trace", file("t.jsonl", trace)}, {"model", "synthetic:tiny-llama"}});
    EXPECT_EQ(out["refused_requests"], 1);
    EXPECT_EQ(out["finished_requests"], 1);
    EXPECT_THAT(outputs()[0]["refused"].get<std::string>(), HasSubstr("context"));
    EXPECT_EQ(outputs()[1]["ids"].size(), 4U);
}

TEST_F(WorkloadBatch, ASavedTraceIsTheSameTrace) {
    const Json first = batch({{"trace", "long-tail"},
                              {"requests", 9},
                              {"prompt_tokens", "1-9"},
                              {"new_tokens", "2-20"},
                              {"save_trace", path("saved.jsonl")}});
    const std::vector<Json> rows = outputs();
    const Json second = batch({{"trace", path("saved.jsonl")}, {"scheduler", "prefill-first"}});
    EXPECT_EQ(rows, outputs());
    EXPECT_EQ(first["generated_tokens"], second["generated_tokens"]);
}

TEST_F(WorkloadBatch, MistakesAreNamed) {
    const auto messageOf = [&](const Json& more) {
        try {
            batch(more);
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return std::string("no error");
    };
    EXPECT_THAT(messageOf(Json::object()), HasSubstr("trace: missing"));
    EXPECT_THAT(messageOf({{"trace", "/nowhere.jsonl"}}), HasSubstr("/nowhere.jsonl: "));
    EXPECT_THAT(messageOf({{"trace", "poisson"}}), HasSubstr("rate: "));
    EXPECT_THAT(messageOf({{"trace", "uniform"}, {"prompt_tokens", "9-3"}}), HasSubstr("prompt_tokens: "));
    EXPECT_THAT(messageOf({{"trace", file("t.jsonl", "{\"tokens\": [99999999]}")}}), HasSubstr(": line 1: tokens: "));
    EXPECT_THAT(messageOf({{"trace", file("t.jsonl", "{\"tokens\": [1], \"stop\": [\"x\"]}")}}),
                HasSubstr(": line 1: stop: "));
    EXPECT_THAT(messageOf({{"trace", "uniform"}, {"slots", 0}}), HasSubstr("slots: "));
    EXPECT_THAT(messageOf({{"trace", "uniform"}, {"prefill_chunk", 3}}), HasSubstr("prefill_chunk: "));
}

TEST_F(WorkloadBatch, FilesThatCannotBeWrittenFailBeforeAnythingRuns) {
    const std::string trace = file("t.jsonl", "{\"tokens\": [5, 6], \"max_new_tokens\": 2}");
    const auto messageOf = [&](const Json& more) {
        try {
            // There is no such model: whoever gets as far as that is too late.
            Json all = {{"model", "/nowhere/model"}, {"trace", trace}};
            all.update(more);
            batch(all);
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return std::string("no error");
    };
    EXPECT_THAT(messageOf({{"outputs", path("no/such/file")}}), HasSubstr("no/such/file: creating: "));
    EXPECT_THAT(messageOf({{"outputs", folder_.string()}}), HasSubstr("is a folder"));
    EXPECT_THAT(messageOf({{"save_trace", path("no/such/file")}}), HasSubstr("no/such/file: creating: "));
    EXPECT_THAT(messageOf({{"outputs", path("./t.jsonl")}}), HasSubstr("is the file of trace too"));
    EXPECT_THAT(messageOf({{"save_trace", trace}}), HasSubstr("is the file of trace too"));
    EXPECT_THAT(messageOf({{"save_trace", path("a")}, {"outputs", path("a")}}), HasSubstr("save_trace too"));
    EXPECT_THAT(messageOf({{"trace", "unifrom"}}), HasSubstr("unifrom: is no file, and none of fixed, "));
    EXPECT_THAT(messageOf({{"outputs", path("new")}}), HasSubstr("/nowhere/model"));
    EXPECT_FALSE(fs::exists(path("new")));
}

TEST_F(WorkloadBatch, WhatEndsEarlyLeavesItsAnswers) {
    const std::string trace =
        file("t.jsonl", "{\"id\": 1, \"tokens\": [5], \"max_new_tokens\": 3, \"stop_tokens\": []}\n"
                        "{\"id\": 2, \"tokens\": [6], \"max_new_tokens\": 500, \"stop_tokens\": []}\n"
                        "{\"id\": 3, \"tokens\": [7], \"arrival\": 1000}\n");
    base::StopSource source;
    WorkloadSinks sinks;
    sinks.token = [&](const StreamedToken& token) {
        if (token.request == 1 && token.index == 9) {
            source.request_stop();
        }
    };
    const Json experiment = {{"vitrine", 1},     {"workload", "batch"}, {"model", test::fixture("llama")},
                             {"backend", "cpu"}, {"trace", trace},      {"outputs", path("out.jsonl")}};
    EXPECT_THROW(runExperiment(Experiment::parse(experiment, "experiment"), sinks, source.get_token()),
                 base::Cancelled);
    const std::vector<Json> rows = outputs();
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(rows[0]["finish_reason"], "length");
    EXPECT_EQ(rows[1]["finish_reason"], "cancelled");
    EXPECT_GE(rows[1]["ids"].size(), 10U);
    EXPECT_EQ(rows[2]["finish_reason"], "unfinished");
    EXPECT_TRUE(rows[2]["ids"].empty());
}

/// Whatever the budget: all that the pool can hold is served, or the run fails before its first step and says what does
/// not fit.
TEST_F(WorkloadBatch, NoBudgetFailsInTheMiddle) {
    constexpr std::uint64_t kContext = std::uint64_t{600} << 20; // what the profile's device takes for itself
    const std::vector<std::pair<std::string, std::string>> policies = {
        {"continuous", "recompute"}, {"continuous", "swap"}, {"continuous", "off"}, {"static", "recompute"}};
    int served = 0;
    int refused = 0;
    int failed = 0;
    for (int round = 0; round < 240; round += vitrine::test::kCaseStride) {
        const auto& [mode, preemption] = policies[static_cast<std::size_t>(round) % policies.size()];
        const std::uint64_t room = static_cast<std::uint64_t>(round * round * 600 + 300'000);
        Json experiment = {{"vitrine", 1},
                           {"workload", "batch"},
                           {"model", round % 3 == 0 ? test::fixture("gpt-oss-mxfp4") : "synthetic:tiny-llama"},
                           {"mode", mode},
                           {"preemption", preemption},
                           {"trace", round % 2 == 0 ? "long-tail" : "uniform"},
                           {"requests", 12},
                           {"slots", 1 + round % 7},
                           {"token_budget", round % 5 == 0 ? 64 : 8192},
                           {"share_prefixes", mode == "continuous" && round % 11 == 0},
                           {"seed", round},
                           {"kv_dtype", round % 6 == 1   ? "fp8"
                                        : round % 6 == 4 ? "int8"
                                                         : "bfloat16"},
                           {"repetition_penalty", round % 9 == 0 ? 1.2 : 1.0},
                           {"prompt_tokens", "2-" + std::to_string(round % 7 == 3 ? 8000 : 20 + round * 7 % 400)},
                           {"new_tokens", "1-" + std::to_string(20 + round * 13 % 90)},
                           {"vram_budget", kContext + room}};
        if (round % 8 == 1) {
            experiment["host_budget"] = 4096 + round * 1000; // hardly a page
        }
        Json metrics;
        try {
            planExperiment(Experiment::parse(experiment, "experiment"), {}, {}, &metrics);
        } catch (const base::Error& error) {
            ADD_FAILURE() << error.message() << "\n" << experiment;
            continue;
        }
        if (metrics.contains("out_of_memory")) {
            ++failed;
            EXPECT_EQ(metrics.value("steps", 0), 0) << experiment << metrics["out_of_memory"];
            EXPECT_EQ(metrics["out_of_memory"]["budget"], kContext + room);
            continue;
        }
        EXPECT_EQ(metrics["finished_requests"].get<int>() + metrics["refused_requests"].get<int>(), 12) << experiment;
        EXPECT_EQ(metrics["out_of_memory_steps"], 0) << experiment;
        EXPECT_LE(metrics["step_tokens"], experiment["token_budget"]);
        EXPECT_LE(metrics.value("peak_reserved_bytes", kContext + room),
                  kContext + room + metrics.value("short_by_bytes", std::uint64_t{0}));
        served += metrics["refused_requests"] == 0 ? 1 : 0;
        refused += metrics["refused_requests"] == 0 ? 0 : 1;
    }
    EXPECT_GT(served, vitrine::test::moreThan(40));
    EXPECT_TRUE(refused > 0 || vitrine::test::kSanitized);
    EXPECT_GT(failed, vitrine::test::moreThan(5));
}

TEST_F(WorkloadBatch, ASmallBudgetOnTheCpuMeansSmallSteps) {
    const Json experiment = {{"vitrine", 1},     {"workload", "batch"}, {"model", "synthetic:tiny-llama"},
                             {"backend", "cpu"}, {"trace", "uniform"},  {"requests", 20}};
    for (const char* budget : {"1 MiB", "4 MiB", "8 MiB"}) {
        Json small = experiment;
        small["vram_budget"] = budget;
        const Json metrics = runExperiment(Experiment::parse(small, "experiment"), {}, {});
        EXPECT_EQ(metrics["finished_requests"], 20) << budget;
        EXPECT_LT(metrics["step_tokens"], 8192) << budget;
        EXPECT_EQ(metrics["out_of_memory_steps"], 0) << budget;
    }
}

TEST_F(WorkloadBatch, APlanAnswersNothing) {
    batch({{"plan", true}, {"trace", "fixed"}, {"requests", 2}, {"new_tokens", "3"}, {"prompt_tokens", "3"}});
    EXPECT_FALSE(fs::exists(path("out.jsonl"))) << "ids of a plan are no answers";
}

TEST_F(WorkloadBatch, StopTextsNeedATextInAnyRow) {
    const std::string demo = base::resourcePath("models/vitrine-demo");
    const std::string stops = "{\"id\": 1, \"tokens\": [5, 6], \"max_new_tokens\": 4, \"stop\": [\"x\"]}\n";
    const std::string text = "{\"id\": 2, \"prompt\": \"Hello\", \"max_new_tokens\": 4}\n";
    const auto messageOf = [&](const Json& more) {
        try {
            batch(more);
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return std::string("no error");
    };
    EXPECT_EQ(messageOf({{"model", demo}, {"trace", file("a.jsonl", text + stops)}}), "no error");
    EXPECT_EQ(messageOf({{"model", demo}, {"trace", file("b.jsonl", stops + text)}}), "no error");
    EXPECT_THAT(messageOf({{"model", demo}, {"trace", file("c.jsonl", stops)}}), HasSubstr("c.jsonl: line 1: stop: "));
    EXPECT_THAT(messageOf({{"model", demo}, {"trace", "fixed"}, {"stop", Json::array({"x"})}}),
                HasSubstr("stop: needs"));
    EXPECT_THAT(messageOf({{"trace", file("d.jsonl", "{\"tokens\": [5]}\n" + text)}}),
                HasSubstr("d.jsonl: line 2: prompt: "));
}

TEST_F(WorkloadBatch, ATemperatureWithoutAnInverseIsGreedy) {
    batch({{"trace", file("a.jsonl", "{\"tokens\": [5, 6, 7], \"max_new_tokens\": 8, \"temperature\": 0}")}});
    const std::vector<Json> greedy = outputs();
    batch({{"trace", file("b.jsonl", "{\"tokens\": [5, 6, 7], \"max_new_tokens\": 8, \"temperature\": 1e-40}")}});
    EXPECT_EQ(outputs(), greedy);
}

TEST_F(WorkloadBatch, APlanSaysWhatFitsAndAllocatesWhatItPredicts) {
    Json plan = {{"plan", true},
                 {"model", "synthetic:gpt-oss-20b"},
                 {"device_profile", "h100-80gb"},
                 {"trace", "uniform"},
                 {"requests", 20},
                 {"slots", 8}};
    const Json out = batch(plan);
    EXPECT_TRUE(out["fits"].get<bool>());
    // The pool is all of the KV cache: its formula is what was allocated.
    EXPECT_EQ(out["max_by_category"]["kv_cache"], out["kv_pool_bytes"]);
    EXPECT_GT(out["step_seconds_estimate"].get<double>(), 0);
    plan["vram_budget"] = "12GiB";
    const Json small = batch(plan);
    EXPECT_FALSE(small["fits"].get<bool>());
    EXPECT_GT(small["short_by_bytes"].get<std::uint64_t>(), 0U);
}

TEST_F(WorkloadBatch, APlanThatRefusesForWantOfMemoryDoesNotFit) {
    Json plan = {{"plan", true},
                 {"model", "synthetic:llama-3.1-8b"},
                 {"trace", "fixed"},
                 {"requests", 3},
                 {"prompt_tokens", "40000"},
                 {"new_tokens", "4"},
                 {"vram_budget", "20GiB"},
                 {"token_budget", 512},
                 {"slots", 2}};
    const Json out = batch(plan);
    EXPECT_EQ(out["refused_requests"], 3);
    EXPECT_FALSE(out["fits"].get<bool>());
    EXPECT_GT(out["short_by_bytes"].get<std::uint64_t>(), 0U);
    plan["kv_pages"] = 9; // whoever asks for few pages gets what fits them
    EXPECT_TRUE(batch(plan)["fits"].get<bool>());
    plan.erase("kv_pages");
    plan["vram_budget"] = "40GiB";
    const Json large = batch(plan);
    EXPECT_TRUE(large["fits"].get<bool>());
    EXPECT_EQ(large["finished_requests"], 3);
}

TEST_F(WorkloadBatch, BenchmarkRowsCompareBothModes) {
    const Json out = runExperiment(Experiment::parse({{"vitrine", 1},
                                                      {"workload", "bench"},
                                                      {"bench", "batch"},
                                                      {"model", "synthetic:tiny-gpt-oss"},
                                                      {"backend", "meta"},
                                                      {"scenarios", "uniform-8,long-tail-8,uniform-8-longest-first"}},
                                                     "experiment"),
                                   {}, {});
    const Json& rows = out["rows"];
    ASSERT_EQ(rows.size(), 8U);
    EXPECT_EQ(rows[0]["name"], "copy");
    EXPECT_EQ(rows[1]["name"], "matmul");
    EXPECT_EQ(rows[2]["name"], "8 slots, uniform static");
    EXPECT_GT(rows[3]["gain_limit"].get<double>(), 1.2);
    EXPECT_GT(rows[3]["slot_utilization"], rows[2]["slot_utilization"]);
    EXPECT_GT(rows[5]["slot_utilization"], rows[4]["slot_utilization"]);
    EXPECT_EQ(rows[7]["name"], "8 slots, uniform continuous, longest first");
    EXPECT_LT(rows[6]["steps"], rows[2]["steps"]);
    EXPECT_LT(rows[7]["steps"], rows[3]["steps"]);
    EXPECT_LT(rows[7]["least_steps"], rows[3]["least_steps"]);
    for (std::size_t i = 2; i < rows.size(); ++i) {
        EXPECT_LT(rows[i]["value"].get<double>(), rows[i]["trace_limit"].get<double>()) << rows[i]["name"];
        EXPECT_LE(rows[i]["trace_limit"], rows[i]["ceiling"]);
        EXPECT_GE(rows[i]["steps"], rows[i]["least_steps"]);
        EXPECT_LE(rows[i]["ttft_p90_seconds"], rows[i]["ttft_p95_seconds"]);
    }
}

TEST(BatchCeiling, StepsFollowFromTheLengths) {
    std::vector<TraceRow> trace(4);
    for (std::size_t i = 0; i < trace.size(); ++i) {
        trace[i].promptLength = 1;
        trace[i].maxNewTokens = std::array{3, 1, 2, 1}[i];
    }
    EXPECT_THAT(rowsOfSteps(trace, 2), ::testing::ElementsAre(2, 2, 2, 1));
    EXPECT_THAT(rowsOfSteps(trace, 1), ::testing::ElementsAre(1, 1, 1, 1, 1, 1, 1));
    EXPECT_THAT(rowsOfSteps(trace, 9), ::testing::ElementsAre(4, 2, 1));
    EXPECT_TRUE(rowsOfSteps({}, 2).empty());
}

TEST(BatchPercentiles, AreValuesThatOccur) {
    const Json out = percentilesJson({4, 1, 3, 2});
    EXPECT_EQ(out["p50"], 2);
    EXPECT_EQ(out["p90"], 4);
    EXPECT_EQ(out["p95"], 4);
    EXPECT_EQ(out["p99"], 4);
    EXPECT_EQ(out["mean"], 2.5);
    EXPECT_TRUE(percentilesJson({})["p50"].is_null());
}

} // namespace
} // namespace vitrine::engine
