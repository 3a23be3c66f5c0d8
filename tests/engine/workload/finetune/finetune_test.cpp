// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The workload finetune from its options to its files.

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
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

TEST_F(Finetune, OptionsThatCannotBeHonouredAreErrors) {
    expectRefused({}, "data: missing");
    expectRefused({{"prompt_length", 8}, {"data", "x"}}, "choose one");
    expectRefused({{"prompt_length", 8}, {"train", "atention"}}, "no parameters are called \"atention\"");
    expectRefused({{"prompt_length", 8}, {"loss_chunks", "0"}}, "loss_chunks");
    expectRefused({{"prompt_length", 8}, {"method", "full"}, {"alpha", 2}}, "alpha");
    expectRefused({{"prompt_length", 8}, {"method", "full"}, {"merge_aware", true}}, "merge_aware");
    expectRefused({{"prompt_length", 8}, {"merge_aware", true}, {"merge", "bf16"}, {"output", "x"}}, "merge_aware");
    EXPECT_THROW(run({{"model", fixture("llama")}, {"prompt_length", 8}, {"merge_aware", true}}), base::BadInput);
    expectRefused({{"prompt_length", 8}, {"save_every", 2}}, "output: missing");
    expectRefused({{"prompt_length", 8}, {"merge", "bf16"}}, "output: missing");
    expectRefused({{"prompt_length", 8}, {"eval_every", 2}}, "nothing to evaluate");
    EXPECT_THROW(run({{"model", fixture("llama")}, {"prompt_length", 8}, {"method", "qlora"}}), base::BadInput);
    EXPECT_THROW(run({{"model", fixture("gpt-oss-mxfp4")}, {"prompt_length", 8}, {"method", "full"}}), base::BadInput);
    EXPECT_THROW(run({{"model", fixture("llama")}, {"prompt_length", 8}, {"resume", at("nothing")}}), base::BadInput);
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
