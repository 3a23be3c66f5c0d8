// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The workload finetune from its options to its files.

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "kernels/cuda/kept_state.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using test::fixture;

class Finetune : public testing::Test {
protected:
    Json run(Json experiment) const {
        experiment["vitrine"] = 1;
        experiment["workload"] = "finetune";
        experiment["backend"] = "cpu";
        if (!experiment.contains("data") && !experiment.contains("prompt_length")) {
            experiment["tokens_file"] = fixture("llama-lora/batch.safetensors");
        }
        return runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
    }
    std::string at(const std::string& name) const { return folder_.path() + "/" + name; }

    static void expectRefused(const Json& experiment, const std::string& part) {
        try {
            parseOnly(experiment);
            ADD_FAILURE() << "accepted, but expected: " << part;
        } catch (const base::Error& error) {
            EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
        }
    }

private:
    static void parseOnly(Json experiment) {
        experiment["vitrine"] = 1;
        experiment["workload"] = "finetune";
        experiment["model"] = fixture("llama");
        Experiment::parse(experiment, "experiment");
    }

    test::TempFolder folder_;
};

TEST_F(Finetune, AResumedRunHasTheLossesOfOneThatWasNotStopped) {
    for (const char* method : {"lora", "full"}) {
        const std::string name = std::string("out-") + method;
        Json experiment = {{"model", fixture("llama")}, {"method", method}, {"lr", 0.001}, {"steps", 5},
                           {"optimizer", "adamw8bit"},  {"batch", 1}};
        const Json whole = run(experiment);
        experiment["steps"] = 3;
        experiment["save_every"] = 2;
        experiment["output"] = at(name);
        run(experiment);
        experiment["steps"] = 5;
        experiment["resume"] = at(name);
        const Json resumed = run(experiment);
        EXPECT_EQ(resumed["resumed_from_step"], 2);
        EXPECT_EQ(resumed["losses"], whole["losses"]);
        EXPECT_EQ(resumed["grad_norms"], whole["grad_norms"]);
    }
}

TEST_F(Finetune, AnAdapterIsReadAgainAndMerged) {
    const Json out = run({{"model", fixture("gpt-oss-mxfp4")},
                          {"tokens_file", fixture("gpt-oss-full-ft/batch.safetensors")},
                          {"method", "qlora"},
                          {"train", "attention+experts"},
                          {"rank", 4},
                          {"lr", 0.01},
                          {"steps", 6},
                          {"output", at("adapter")},
                          {"merge", "bf16"}});
    EXPECT_EQ(out["saved_loss"], out["trained_loss"]);
    EXPECT_LT(out["trained_loss"].get<double>(), out["base_loss"].get<double>() - 1);
    EXPECT_NEAR(out["merged_loss"].get<double>(), out["saved_loss"].get<double>(), 0.01);
    EXPECT_NEAR(out["merge_loss_kept"].get<double>(), 1, 0.02);
    EXPECT_GT(out["trained_share"].get<double>(), 0);
    // A second run goes on from the adapter.
    const Json more = run({{"model", fixture("gpt-oss-mxfp4")},
                           {"tokens_file", fixture("gpt-oss-full-ft/batch.safetensors")},
                           {"adapter", at("adapter")},
                           {"steps", 1}});
    EXPECT_NEAR(more["losses"][0].get<double>(), out["saved_loss"].get<double>(), 1e-6);
}

TEST_F(Finetune, AdaptersOfEmbeddingAndHeadAreMergedAndAnswer) {
    const Json out = run({{"model", fixture("llama")},
                          {"train", "embedding+head"},
                          {"lr", 0.02},
                          {"steps", 5},
                          {"output", at("ends")},
                          {"merge", "bf16"}});
    EXPECT_LT(out["trained_loss"].get<double>(), out["base_loss"].get<double>() - 0.1);
    EXPECT_EQ(out["saved_loss"], out["trained_loss"]);
    EXPECT_NEAR(out["merged_loss"].get<double>(), out["saved_loss"].get<double>(), 0.01);
    EXPECT_THROW(run({{"model", fixture("qwen3-tied")},
                      {"prompt_length", 8},
                      {"train", "embedding"},
                      {"output", at("tied")},
                      {"merge", "bf16"}}),
                 base::BadInput);
}

TEST_F(Finetune, OnlyTheLatestCheckpointsStay) {
    run({{"model", fixture("llama")},
         {"steps", 12},
         {"save_every", 1},
         {"keep_checkpoints", 2},
         {"output", at("few")}});
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(at("few"))) {
        if (entry.path().filename().string().starts_with("checkpoint")) {
            found.insert(entry.path().filename().string());
        }
    }
    EXPECT_EQ(found, (std::set<std::string>{"checkpoint-11", "checkpoint-12"}));
}

TEST_F(Finetune, BatchesAnswerWithTheAdapterAsGenerateDoes) {
    run({{"model", fixture("llama")}, {"train", "all-linear"}, {"lr", 0.05}, {"steps", 4}, {"output", at("adapter")}});
    const Json base = {{"vitrine", 1}, {"backend", "cpu"}, {"model", fixture("llama")}, {"ignore_eos", true}};
    Json generate = base;
    generate.update({{"workload", "generate"}, {"tokens", {5, 9, 200, 31}}, {"max_new_tokens", 6}});
    const auto ids = [](const Json& experiment) {
        return runExperiment(Experiment::parse(experiment, "experiment"), {}, {})["ids"];
    };
    const Json plain = ids(generate);
    generate["adapter"] = at("adapter");
    const Json adapted = ids(generate);
    EXPECT_NE(adapted, plain);
    std::ofstream(at("trace.jsonl")) << R"({"id": "a", "arrival": 0, "tokens": [5, 9, 200, 31], "max_new_tokens": 6})";
    Json batch = base;
    batch.update({{"workload", "batch"},
                  {"trace", at("trace.jsonl")},
                  {"adapter", at("adapter")},
                  {"outputs", at("answers.jsonl")}});
    runExperiment(Experiment::parse(batch, "experiment"), {}, {});
    EXPECT_EQ(Json::parse(std::ifstream(at("answers.jsonl")))["ids"], adapted);
}

TEST_F(Finetune, AnAdapterIsTrainedOverLinearsPackedAtLoad) {
    const Json out = run({{"model", "synthetic:tiny-llama"},
                          {"set", {{"intermediate_size", "192"}}},
                          {"weights", "nf4"},
                          {"method", "qlora"},
                          {"prompt_length", 16},
                          {"lr", 0.01},
                          {"steps", 8},
                          {"output", at("adapter")},
                          {"merge", "bf16"}});
    EXPECT_LT(out["losses"][7].get<double>(), out["losses"][0].get<double>() - 2);
    EXPECT_EQ(out["saved_loss"], out["trained_loss"]);
    EXPECT_NEAR(out["merged_loss"].get<double>(), out["saved_loss"].get<double>(), 0.02);
    // What is written packed is read packed.
    const Json packed = run({{"model", at("adapter/merged")},
                             {"prompt_length", 16},
                             {"lr", 0.001},
                             {"steps", 1},
                             {"output", at("packed")},
                             {"merge", "nf4"}});
    const Json again = run({{"model", at("packed/merged")}, {"method", "qlora"}, {"prompt_length", 16}, {"steps", 1}});
    EXPECT_NEAR(again["losses"][0].get<double>(), packed["merged_loss"].get<double>(), 1e-4);
    EXPECT_LT(again["resident_bytes"].get<double>(), 0.7 * packed["resident_bytes"].get<double>());
}

TEST_F(Finetune, MergesExpertsAsMxfp4) {
    const Json out = run({{"model", fixture("gpt-oss-mxfp4")},
                          {"tokens_file", fixture("gpt-oss-full-ft/batch.safetensors")},
                          {"train", "attention+experts"},
                          {"rank", 4},
                          {"lr", 0.01},
                          {"steps", 10},
                          {"output", at("adapter")},
                          {"merge", "mxfp4"}});
    EXPECT_GT(out["merge_loss_kept"].get<double>(), 0.5);
    EXPECT_TRUE(std::filesystem::exists(at("adapter/merged/config.json")));
}

TEST_F(Finetune, MergeAwareTrainingHasTheLossOfTheMergedModel) {
    Json experiment = {{"model", fixture("gpt-oss-mxfp4")},
                       {"tokens_file", fixture("gpt-oss-full-ft/batch.safetensors")},
                       {"train", "experts"},
                       {"rank", 4},
                       {"lr", 0.0002},
                       {"steps", 150},
                       {"merge", "mxfp4"},
                       {"output", at("plain")}};
    const Json plain = run(experiment);
    experiment["merge_aware"] = true;
    experiment["output"] = at("aware");
    const Json aware = run(experiment);
    EXPECT_LT(plain["merge_loss_kept"].get<double>(), 0.7);
    EXPECT_FALSE(plain.contains("adapter_loss"));
    // The trained loss is that of rounded weights, so the file keeps all of it by construction.
    EXPECT_GE(aware["merge_loss_kept"].get<double>(), 0.95);
    EXPECT_NEAR(aware["merged_loss"].get<double>(), aware["trained_loss"].get<double>(), 0.01);
    EXPECT_EQ(aware["saved_loss"], aware["trained_loss"]);
    // What training is for, at this rate and length: it is not so at every one, see docs/training.md.
    EXPECT_LT(aware["merged_loss"].get<double>(), plain["merged_loss"].get<double>());
    // The adapter's files are those of any adapter: beside the weights they give adapter_loss, in them saved_loss.
    Json again = experiment;
    again["merge"] = "none";
    again.erase("output");
    for (const char* key : {"train", "rank"}) {
        again.erase(key);
    }
    again["adapter"] = at("aware");
    again["steps"] = 1;
    EXPECT_NEAR(run(again)["losses"][0].get<double>(), aware["saved_loss"].get<double>(), 1e-6);
    again["merge_aware"] = false;
    EXPECT_NEAR(run(again)["losses"][0].get<double>(), aware["adapter_loss"].get<double>(), 1e-6);
}

TEST_F(Finetune, MergeAwareTrainingOfWeightsHasTheLossOfTheSavedModel) {
    for (const std::string dtype : {"bfloat16", "float32"}) {
        Json experiment = {{"model", fixture("gpt-oss-mxfp4")},
                           {"tokens_file", fixture("gpt-oss-full-ft/batch.safetensors")},
                           {"method", "full"},
                           {"weights", "dequantized"},
                           {"dtype", dtype},
                           {"lr", 0.002},
                           {"steps", 20},
                           {"output", at("plain-" + dtype)}};
        const Json plain = run(experiment);
        experiment["merge_aware"] = true;
        experiment["output"] = at("aware-" + dtype);
        const Json aware = run(experiment);
        EXPECT_EQ(aware["saved_loss"], aware["trained_loss"]) << dtype;
        EXPECT_GT(plain["saved_loss"].get<double>(), plain["trained_loss"].get<double>()) << dtype;
        EXPECT_LT(aware["losses"].back().get<double>(), aware["losses"][0].get<double>()) << dtype;
    }
    EXPECT_THROW(run({{"model", fixture("llama")}, {"prompt_length", 8}, {"method", "full"}, {"merge_aware", true}}),
                 base::BadInput);
}

TEST_F(Finetune, AResumedMergeAwareRunGoesOnBitForBit) {
    Json experiment = {{"model", fixture("gpt-oss-mxfp4")},
                       {"tokens_file", fixture("gpt-oss-full-ft/batch.safetensors")},
                       {"train", "attention+experts"},
                       {"merge_aware", true},
                       {"rank", 4},
                       {"lr", 0.01},
                       {"steps", 5}};
    const Json whole = run(experiment);
    experiment["steps"] = 3;
    experiment["save_every"] = 2;
    experiment["output"] = at("resumed");
    run(experiment);
    experiment["steps"] = 5;
    experiment["resume"] = at("resumed");
    const Json resumed = run(experiment);
    EXPECT_EQ(resumed["resumed_from_step"], 2);
    EXPECT_EQ(resumed["losses"], whole["losses"]);
    EXPECT_EQ(resumed["grad_norms"], whole["grad_norms"]);
}

/// Lists of other programs and damaged ones end in a sentence; a loss that was no number is one again.
TEST_F(Finetune, AProgressWithOtherValuesIsRefusedByName) {
    Json experiment = {{"model", fixture("llama")}, {"prompt_length", 8}, {"rank", 2}, {"steps", 2},
                       {"save_every", 2},           {"output", at("run")}};
    run(experiment);
    experiment["steps"] = 3;
    experiment["resume"] = at("run") + "/checkpoint-2";
    const std::string file = at("run") + "/checkpoint-2/trainer_state.json";
    const Json before = Json::parse(std::ifstream(file));
    const auto refusal = [&](const char* field, const Json& value) {
        Json changed = before;
        changed[field] = value;
        std::ofstream(file) << changed;
        try {
            run(experiment);
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return std::string("none");
    };
    EXPECT_THAT(refusal("losses", {1.5, "a"}), testing::HasSubstr("trainer_state.json: losses: value 2 is no number"));
    EXPECT_THAT(refusal("eval_steps", {1.5}), testing::HasSubstr("eval_steps: value 1 is no whole number"));
    EXPECT_THAT(refusal("grad_norms", "many"), testing::HasSubstr("grad_norms: is missing or is no list"));
    EXPECT_THAT(refusal("step", -1), testing::HasSubstr("step: is missing or is no number of a step"));
    EXPECT_EQ(refusal("answers", {{{"step", 1}, {"prompt", 5}}, 7}), "none");
    EXPECT_EQ(refusal("losses", {1.5, nullptr}), "none");
    std::ofstream(file) << "[";
    EXPECT_THROW(run(experiment), base::BadInput);
    experiment["resume"] = std::string(5000, 'a');
    EXPECT_THROW(run(experiment), base::BadInput);
}

TEST_F(Finetune, APlanCountsTheMergedCopies) {
    const auto planned = [](bool aware) {
        const Json experiment = {
            {"vitrine", 1},       {"workload", "finetune"}, {"plan", true},         {"model", "synthetic:gpt-oss-20b"},
            {"train", "experts"}, {"merge_aware", aware},   {"prompt_length", 512}, {"device_profile", "h100-80gb"}};
        return planExperiment(Experiment::parse(experiment, "experiment"), {}, {});
    };
    const Json plain = planned(false);
    const Json aware = planned(true);
    // 24 layers of 32 experts: gate and up (5760, 2880), down (2880, 2880), at 17 bytes for 32 elements.
    const double copies = 24.0 * 32 * (5760 + 2880) * 2880 * 17 / 32;
    const double more =
        aware["max_by_category"]["weights"].get<double>() - plain["max_by_category"]["weights"].get<double>();
    EXPECT_NEAR(more / copies, 1, 0.001);
}

TEST_F(Finetune, FullFineTuningWritesAModelThatGivesTheSameLoss) {
    for (const char* model : {"qwen3-moe", "gemma2", "llama"}) {
        const Json out = run({{"model", fixture(model)},
                              {"method", "full"},
                              {"lr", 0.001},
                              {"steps", 2},
                              {"output", at(std::string("full-") + model)}});
        EXPECT_NEAR(out["saved_loss"].get<double>(), out["trained_loss"].get<double>(), 0.01) << model;
    }
}

TEST_F(Finetune, RowsArePackedShuffledAndHeldBack) {
    std::ofstream file(at("rows.jsonl"));
    for (int i = 0; i < 20; ++i) {
        file << Json({{"tokens", std::vector<int>(static_cast<std::size_t>(5 + i), 3 + i)}}).dump() << "\n";
    }
    file.close();
    const Json out = run({{"model", fixture("llama")},
                          {"data", at("rows.jsonl")},
                          {"sequence_length", 20},
                          {"validation", 0.2},
                          {"eval_every", 2},
                          {"epochs", 2},
                          {"schedule", "cosine"},
                          {"warmup_steps", 2},
                          {"output", at("packed")}});
    EXPECT_EQ(out["validation_rows"], 4);
    EXPECT_LT(out["sequences"].get<int>(), 16);
    EXPECT_EQ(out["steps"].get<int>(), 2 * out["sequences"].get<int>());
    EXPECT_EQ(out["losses"].size(), out["steps"].get<std::size_t>());
    EXPECT_FALSE(out["eval_losses"].empty());
    EXPECT_GT(out["cut_rows"].get<int>(), 0);
    EXPECT_EQ(out["learning_rates"][0], 0.0);
    EXPECT_TRUE(std::filesystem::exists(at("packed/metrics.csv")));
}

TEST_F(Finetune, RowsWithNothingToLearnAreLeftOutAndCounted) {
    // The second row has its only target behind the cut.
    std::ofstream(at("rows.jsonl")) << R"({"tokens": [5, 9, 20, 31]})"
                                    << "\n"
                                    << R"({"tokens": [1, 2, 3, 4], "labels": [-100, -100, -100, 4]})"
                                    << "\n";
    std::ofstream(at("late.jsonl")) << R"({"tokens": [1, 2, 3, 4], "labels": [-100, -100, -100, 4]})" << "\n";
    Json experiment = {{"model", fixture("llama")}, {"data", at("rows.jsonl")}, {"sequence_length", 3}, {"steps", 3}};
    const Json out = run(experiment);
    EXPECT_EQ(out["rows_without_targets"], 1);
    EXPECT_EQ(out["sequences"], 1);
    EXPECT_EQ(out["cut_rows"], 2);
    EXPECT_EQ(out["losses"].size(), 3u);
    experiment["eval_data"] = at("late.jsonl");
    EXPECT_THROW(run(experiment), base::BadInput);
    experiment.erase("eval_data");
    experiment["data"] = at("late.jsonl");
    EXPECT_THROW(run(experiment), base::BadInput);
}

TEST_F(Finetune, OptionsThatCannotBeHonouredAreErrors) {
    expectRefused({}, "data: missing");
    expectRefused({{"prompt_length", 8}, {"data", "x"}}, "choose one");
    expectRefused({{"prompt_length", 8}, {"train", "atention"}}, "no parameters are called \"atention\"");
    expectRefused({{"prompt_length", 8}, {"loss_chunks", "0"}}, "loss_chunks");
    expectRefused({{"prompt_length", 8}, {"method", "full"}, {"alpha", 2}}, "alpha");
    expectRefused({{"prompt_length", 8}, {"method", "full"}, {"dropout", 0.1}}, "dropout");
    expectRefused({{"prompt_length", 8}, {"adapter", "x"}, {"dropout", 0.1}}, "dropout");
    expectRefused({{"prompt_length", 8}, {"method", "full"}, {"rslora", true}}, "rslora");
    expectRefused({{"prompt_length", 8}, {"merge_aware", true}, {"merge", "bf16"}, {"output", "x"}}, "merge_aware");
    EXPECT_THROW(run({{"model", fixture("llama")}, {"prompt_length", 8}, {"merge_aware", true}}), base::BadInput);
    expectRefused({{"prompt_length", 8}, {"save_every", 2}}, "output: missing");
    expectRefused({{"prompt_length", 8}, {"merge", "bf16"}}, "output: missing");
    expectRefused({{"prompt_length", 8}, {"eval_every", 2}}, "nothing to evaluate");
    EXPECT_THROW(run({{"model", fixture("llama")}, {"prompt_length", 8}, {"method", "qlora"}}), base::BadInput);
    EXPECT_THROW(run({{"model", fixture("llama")}, {"prompt_length", 8}, {"router_aux_loss", 0.1}}), base::BadInput);
    EXPECT_THROW(run({{"model", fixture("qwen3-moe")}, {"prompt_length", 8}, {"train", "experts"}, {"dropout", 0.1}}),
                 base::BadInput);
    EXPECT_THROW(run({{"model", fixture("gpt-oss-mxfp4")}, {"prompt_length", 8}, {"method", "full"}}), base::BadInput);
    EXPECT_THROW(run({{"model", fixture("llama")}, {"prompt_length", 8}, {"resume", at("nothing")}}), base::BadInput);
}

Json planned(Json experiment) {
    experiment["vitrine"] = 1;
    experiment["workload"] = "finetune";
    experiment["plan"] = true;
    experiment["device_profile"] = "h100-80gb";
    if (!experiment.contains("vram_budget")) {
        experiment["vram_budget"] = "80GiB";
    }
    return planExperiment(Experiment::parse(experiment, "experiment"), {}, {});
}

TEST_F(Finetune, APlanShowsWhatEachTechniqueBuys) {
    const Json out = planned({{"model", "synthetic:gpt-oss-20b"},
                              {"train", "attention+experts"},
                              {"prompt_length", 524288},
                              {"checkpoint", "offload"},
                              {"techniques", true}});
    const Json& rows = out["techniques"];
    ASSERT_EQ(rows.size(), 6U);
    for (const char* key : {"peak_bytes", "peak_at", "fits", "step_seconds_estimate"}) {
        EXPECT_EQ(rows[0][key], out[key]) << key;
    }
    EXPECT_EQ(rows[0]["host_bytes"], out["host_peak_bytes"]);
    EXPECT_FALSE(rows[1]["fits"].get<bool>());
    EXPECT_TRUE(rows[5]["fits"].get<bool>());
    for (std::size_t row = 2; row < rows.size(); ++row) {
        EXPECT_LT(rows[row]["peak_bytes"], rows[row - 1]["peak_bytes"]) << rows[row]["name"];
    }
    EXPECT_EQ(rows[3]["host_bytes"], 0);
    EXPECT_GT(rows[4]["host_bytes"], std::int64_t{60} << 30);
    EXPECT_GE(rows[5]["step_seconds_estimate"], rows[1]["step_seconds_estimate"]);
    const std::string text = resultText(
        Experiment::parse({{"vitrine", 1}, {"workload", "finetune"}, {"model", "m"}, {"prompt_length", 8}}, "x"), out);
    EXPECT_NE(text.find("+ chunked loss"), std::string::npos) << text;
}

TEST_F(Finetune, ThePeakIsWhereTheTechniqueLeavesIt) {
    const auto at = [](Json options) {
        options["model"] = "synthetic:gpt-oss-20b";
        options["prompt_length"] = 16384;
        return planned(options)["peak_at"].get<std::string>();
    };
    EXPECT_EQ(at({{"loss_chunks", "1"}}), "loss chunk 0");
    EXPECT_EQ(at({{"loss_chunks", "64"}, {"checkpoint", "offload"}}).find("backward layer "), 0U);
    // A run that rehearses a device's allocations has its peak where the plan has it.
    for (const char* checkpoint : {"none", "layer"}) {
        const Json experiment = {{"model", fixture("llama")},     {"prompt_length", 500},
                                 {"device_profile", "h100-80gb"}, {"dtype", "float32"},
                                 {"checkpoint", checkpoint},      {"steps", 1}};
        const Json plan = planned(experiment);
        const Json ran = run(experiment);
        EXPECT_EQ(ran["peak_at"], plan["peak_at"]);
        EXPECT_EQ(ran["peak_bytes"], plan["peak_bytes"]);
    }
}

TEST_F(Finetune, ATableOfTechniquesHasTheLongestSequenceOfEach) {
    const Json out = planned({{"model", "synthetic:tiny-llama"},
                              {"max_context", true},
                              {"techniques", true},
                              {"vram_budget", "632MiB"}}); // 600 of them are the driver's
    const Json& rows = out["techniques"];
    ASSERT_EQ(rows.size(), 6U);
    EXPECT_EQ(rows[0]["max_context"], out["max_context"]);
    EXPECT_LT(rows[1]["max_context"], rows[3]["max_context"]);
    for (const Json& row : rows) {
        EXPECT_EQ(row["fits"].get<bool>(), row["max_context"] >= out["max_context"]) << row;
    }
}

TEST_F(Finetune, InputsThatFindNoRoomOnTheHostStayOnTheDeviceAndAreCounted) {
    Json experiment = {{"model", "synthetic:gpt-oss-20b"}, {"prompt_length", 16384}, {"checkpoint", "offload"}};
    EXPECT_EQ(planned(experiment)["checkpoints_on_device"], 0);
    experiment["host_budget"] = "1GiB"; // of 24 inputs of 90 MiB
    const Json some = planned(experiment);
    EXPECT_GT(some["checkpoints_on_device"], 10);
    EXPECT_LT(some["checkpoints_on_device"], 16);
    experiment["checkpoint"] = "layer";
    EXPECT_EQ(planned(experiment)["checkpoints_on_device"], 0) << "none was to leave";
    const Json ran = run({{"model", fixture("llama")},
                          {"prompt_length", 256},
                          {"steps", 1},
                          {"checkpoint", "offload"},
                          {"host_budget", "16KiB"}});
    EXPECT_GT(ran["checkpoints_on_device"], 0);
}

TEST_F(Finetune, ChangedWeightsAreNotThoseOfTheNextRun) {
    kernels::KeptState kept;
    WorkloadSinks keeping;
    keeping.kept = &kept;
    const auto logits = [&](const WorkloadSinks& sinks, const std::string& name) {
        const Json experiment = {{"vitrine", 1},
                                 {"workload", "logits"},
                                 {"backend", "cpu"},
                                 {"model", fixture("llama")},
                                 {"tokens_file", fixture("llama-lora/batch.safetensors")},
                                 {"output", at(name)}};
        const Json metrics = runExperiment(Experiment::parse(experiment, "experiment"), sinks, {});
        return std::pair(metrics, test::readTensor<float>(at(name), "logits"));
    };
    const auto fresh = logits({}, "fresh.safetensors");
    logits(keeping, "first.safetensors");
    EXPECT_TRUE(logits(keeping, "kept.safetensors").first.contains("weights_kept"));
    const Json experiment = {{"vitrine", 1},     {"workload", "finetune"},
                             {"backend", "cpu"}, {"model", fixture("llama")},
                             {"method", "full"}, {"tokens_file", fixture("llama-lora/batch.safetensors")},
                             {"lr", 0.01},       {"steps", 2}};
    const Json trained = runExperiment(Experiment::parse(experiment, "experiment"), keeping, {});
    EXPECT_LT(trained["losses"][1], trained["losses"][0]);
    const auto after = logits(keeping, "after.safetensors");
    EXPECT_FALSE(after.first.contains("weights_kept"));
    EXPECT_EQ(after.second, fresh.second);
    EXPECT_EQ(logits(keeping, "again.safetensors").second, fresh.second);
}

TEST_F(Finetune, APlanFindsTheOrderOfTheTechniques) {
    const auto longest = [](const char* checkpoint, const char* chunks, const char* tiled) {
        const Json experiment = {{"vitrine", 1},
                                 {"workload", "finetune"},
                                 {"plan", true},
                                 {"model", "synthetic:gpt-oss-20b"},
                                 {"train", "attention+experts"},
                                 {"device_profile", "h100-80gb"},
                                 {"vram_budget", "80GiB"},
                                 {"max_context", true},
                                 {"checkpoint", checkpoint},
                                 {"loss_chunks", chunks},
                                 {"tiled_mlp", tiled}};
        return planExperiment(Experiment::parse(experiment, "experiment"), {}, {})["max_context"].get<std::int64_t>();
    };
    const std::int64_t plain = longest("layer", "1", "off");
    const std::int64_t chunked = longest("layer", "auto", "off");
    const std::int64_t offloaded = longest("offload", "auto", "off");
    const std::int64_t tiled = longest("offload", "auto", "on");
    EXPECT_GT(plain, 50'000);
    EXPECT_GT(chunked, 2 * plain);
    EXPECT_GT(offloaded, chunked + chunked / 2);
    EXPECT_GT(tiled, 750'000);
}

} // namespace
} // namespace vitrine::engine
