// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Quantization-aware training whose result is packed: of the weights themselves, of an adapter that is merged, and of
// one that stays beside packed weights.

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "engine/model/model.h"
#include "engine/quant/conversion_target.h"
#include "engine/workload/convert/model_converter.h"
#include "tests/engine/training/training_test_support.h"
#include "tests/engine/workload/finetune/qat_testing.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using test::fixture;
using test::QuantizationAware;

class QatOutput : public QuantizationAware {
protected:
    static void expectSameFiles(const std::string& left, const std::string& right) {
        const ModelSource a = openModel(left), b = openModel(right);
        ASSERT_EQ(a.config.packings.size(), b.config.packings.size());
        int packed = 0;
        for (const TensorSpec& spec : expectedTensors(a.config)) {
            const Checkpoint::Location* one = a.checkpoint->find(spec.name);
            const Checkpoint::Location* other = b.checkpoint->find(spec.name);
            ASSERT_TRUE(one != nullptr && other != nullptr) << spec.name;
            ASSERT_EQ(one->entry->dtype, other->entry->dtype) << spec.name;
            ASSERT_EQ(bytesOf(*one), bytesOf(*other)) << spec.name;
            packed += spec.packed() ? 1 : 0;
        }
        EXPECT_GT(packed, 0);
    }

private:
    static std::vector<std::byte> bytesOf(const Checkpoint::Location& place) {
        std::vector<std::byte> bytes(place.entry->bytes);
        place.file->read(*place.entry, 0, bytes.data(), bytes.size());
        return bytes;
    }
};

TEST_F(QatOutput, ThePackedModelIsWhatConvertMakesOfTheMasters) {
    for (const char* model : {"llama", "qwen3-moe"}) {
        for (const char* format : {"int4", "fp8"}) {
            for (const char* dtype : {"float32", "bfloat16"}) {
                SCOPED_TRACE(std::string(model) + " " + format + " " + dtype);
                Json experiment = experimentOf(model, {{"qat", format}, {"dtype", dtype}, {"steps", 3}});
                if (std::string(model) == "qwen3-moe" && std::string(format) == "fp8") {
                    continue; // gate and up of its experts share blocks
                }
                const std::string name = std::string(model) + format + dtype;
                experiment["output"] = at(name + "-masters");
                run(experiment);
                experiment["output"] = at(name + "-packed");
                experiment["merge"] = format;
                const Json out = run(experiment);
                EXPECT_NEAR(out["saved_loss"].get<double>(), out["trained_loss"].get<double>(),
                            std::string(dtype) == "float32" ? 2e-6 : 2e-3);
                EXPECT_NE(out["unquantized_loss"], out["trained_loss"]);
                const bool integers = std::string(format) == "int4";
                std::vector<std::string> ignored;
                if (std::string(model) == "qwen3-moe") {
                    ignored.emplace_back("re:.*self_attn.*");
                }
                base::ThreadPool pool(2);
                convertModel(openModel(at(name + "-masters")),
                             {conversionTarget(format, integers ? std::optional<std::int64_t>(32) : std::nullopt,
                                               std::nullopt, integers ? "seven" : ""),
                              ignored,
                              {}},
                             at(name + "-converted"), pool, nullptr, {});
                expectSameFiles(at(name + "-packed"), at(name + "-converted"));
            }
        }
    }
}

TEST_F(QatOutput, AnAdapterIsTrainedAsItIsMerged) {
    for (const char* model : {"llama", "qwen3-moe"}) {
        SCOPED_TRACE(model);
        Json experiment =
            experimentOf(model, {{"method", "lora"},
                                 {"train", std::string(model) == "llama" ? "all-linear" : "attention+experts"},
                                 {"lr", 0.01},
                                 {"merge", "int4"},
                                 {"output", at(model)}});
        const Json out = run(experiment);
        EXPECT_LT(out["losses"].back(), out["losses"].front());
        EXPECT_GT(out["codes_changed"].back().get<double>(), 0);
        EXPECT_NEAR(out["saved_loss"].get<double>(), out["trained_loss"].get<double>(), 1e-6);
        // Attention of the second one is merged into BF16.
        EXPECT_NEAR(out["merged_loss"].get<double>(), out["trained_loss"].get<double>(),
                    std::string(model) == "llama" ? 1e-6 : 1e-4)
            << "the merged model is the one that was trained";
        EXPECT_NE(out["unquantized_loss"], out["trained_loss"]);
        EXPECT_NEAR(out["adapter_loss"].get<double>(), out["unquantized_loss"].get<double>(), 1e-6);
        experiment["merge"] = "bf16";
        experiment["output"] = at(std::string(model) + "-dense");
        EXPECT_NEAR(run(experiment)["merged_loss"].get<double>(), out["trained_loss"].get<double>(), 5e-3)
            << "the values that the packed model has";
    }
}

/// What training with an adapter is compared with: the merged weights rounded by convert.
TEST_F(QatOutput, MergedCopiesAreThoseThatConvertMakesOfTheMergedModel) {
    Json experiment = experimentOf(
        "llama",
        {{"method", "lora"}, {"train", "all-linear"}, {"lr", 0.01}, {"merge", "int4"}, {"output", at("packed")}});
    const double packed = run(experiment)["merged_loss"];
    experiment["qat"] = "none";
    experiment["merge"] = "none";
    experiment["adapter"] = at("packed");
    experiment["lr"] = 0;
    experiment["steps"] = 1;
    experiment.erase("train");
    experiment["output"] = at("beside");
    experiment["merge"] = "bf16";
    run(experiment);
    base::ThreadPool pool(2);
    convertModel(openModel(at("beside/merged")), {conversionTarget("int4", 32, std::nullopt, "seven"), {}, {}},
                 at("converted"), pool, nullptr, {});
    Json evaluated = experimentOf(
        "llama", {{"model", at("converted")}, {"method", "qlora"}, {"qat", "none"}, {"lr", 0}, {"steps", 1}});
    EXPECT_NEAR(run(evaluated)["losses"][0].get<double>(), packed, 5e-3) << "its weights were rounded to BF16 before";
}

TEST_F(QatOutput, AnAdapterBesidePackedWeightsSeesTheirValues) {
    Json experiment = experimentOf("llama", {{"method", "qlora"}, {"train", "all-linear"}, {"lr", 0.01}});
    const Json dense = run(experiment);
    base::ThreadPool pool(2);
    convertModel(openModel(fixture("llama")), {conversionTarget("int4", 32, std::nullopt, "seven"), {}, {}},
                 at("packed"), pool, nullptr, {});
    experiment["model"] = at("packed");
    const Json packed = run(experiment);
    EXPECT_EQ(packed["losses"].size(), 6U);
    for (std::size_t i = 0; i < 6; ++i) {
        // Scales of the packed files are BF16 where the files of the model are.
        EXPECT_NEAR(packed["losses"][i].get<double>(), dense["losses"][i].get<double>(), 1e-2) << i;
    }
    experiment["qat"] = "none";
    EXPECT_EQ(run(experiment)["losses"], packed["losses"]) << "nothing is quantized anew";
    experiment["qat"] = "fp8";
    expectRefused(experiment, "is packed already, as int4");
    experiment["qat"] = "int4";
    experiment["merge"] = "int4";
    experiment["output"] = at("no");
    expectRefused(experiment, "choose method lora");
    experiment["merge"] = "none";
    experiment["group_size"] = 16;
    expectRefused(experiment, "is packed already, as int4 in groups of 32");
}

/// What an adapter is beside cannot stay packed in a merged model.
TEST_F(QatOutput, PackedWeightsWithAnAdapterBesideThemAreMergedDense) {
    base::ThreadPool pool(2);
    convertModel(openModel(fixture("qwen3-moe")), {conversionTarget("int4", 32, std::nullopt, "seven"), {}, {}},
                 at("packed"), pool, nullptr, {});
    const Json out = run(experimentOf("qwen3-moe", {{"model", at("packed")},
                                                    {"method", "lora"},
                                                    {"train", "attention+experts"},
                                                    {"lr", 0.01},
                                                    {"merge", "int4"},
                                                    {"output", at("out")}}));
    EXPECT_NEAR(out["merged_loss"].get<double>(), out["trained_loss"].get<double>(), 2e-3);
    const ModelSource merged = openModel(at("out/merged"));
    EXPECT_EQ(merged.config.packing("model.layers.0.self_attn.q_proj.weight"), nullptr);
    EXPECT_NE(merged.config.packing("model.layers.0.mlp.experts.0.up_proj.weight"), nullptr);
}

TEST_F(QatOutput, APackedBaseKeepsItsOwnRule) {
    base::ThreadPool pool(2);
    for (const char* rule : {"compressed-tensors", "seven"}) {
        const std::string folder = at(std::string("base-") + rule);
        convertModel(openModel(fixture("llama")), {conversionTarget("int4", 32, std::nullopt, rule), {}, {}}, folder,
                     pool, nullptr, {});
        const Json experiment = experimentOf("llama", {{"model", folder},
                                                       {"method", "lora"},
                                                       {"train", "all-linear"},
                                                       {"lr", 0},
                                                       {"steps", 1},
                                                       {"dtype", "bfloat16"}});
        const Json out = run(experiment);
        EXPECT_LT(out["codes_changed"][0].get<double>(), 0.001) << rule << ": weights that are packed again stay";
        Json alias = experiment;
        alias["qat"] = "none";
        alias["merge_aware"] = true;
        EXPECT_EQ(run(alias)["losses"], out["losses"]) << "merge_aware is qat in the format of the base";
    }
}

TEST_F(QatOutput, AResumedAdapterGoesOnToTheBit) {
    const Json more = {{"method", "lora"}, {"train", "all-linear"}, {"lr", 0.01}, {"steps", 5}};
    const Json whole = run(experimentOf("llama", more));
    Json part = experimentOf("llama", more);
    part["steps"] = 3;
    part["save_every"] = 2;
    part["output"] = at("part");
    run(part);
    part["steps"] = 5;
    part["resume"] = at("part");
    const Json resumed = run(part);
    EXPECT_EQ(resumed["losses"], whole["losses"]);
    EXPECT_EQ(resumed["trained_loss"], whole["trained_loss"]);
}

/// gpt_oss stores dense experts as (in, out). They are trained as those are that its packed files expand to.
TEST_F(QatOutput, ExpertsThatAreStoredTurnedHaveTheSameCodes) {
    base::ThreadPool pool(2);
    convertModel(openModel(fixture("gpt-oss-mxfp4")), {std::nullopt, {}, {}}, at("dense"), pool, nullptr, {});
    Json experiment = {{"vitrine", 1},        {"workload", "finetune"},  {"backend", "cpu"}, {"steps", 3},
                       {"method", "full"},    {"qat", "int4"},           {"lr", 0.001},      {"prompt_length", 48},
                       {"dtype", "bfloat16"}, {"weights", "dequantized"}};
    for (const char* method : {"full", "lora"}) {
        experiment["method"] = method;
        experiment["train"] = std::string(method) == "full" ? "all" : "experts";
        experiment["model"] = fixture("gpt-oss-mxfp4");
        const Json expanded = run(experiment);
        experiment["model"] = at("dense");
        const Json turned = run(experiment);
        EXPECT_EQ(turned["losses"][0], expanded["losses"][0]) << method;
        EXPECT_EQ(turned["codes_changed"][0], expanded["codes_changed"][0]) << method;
        // Gradients of turned weights are summed in another order, and rounded to BF16.
        EXPECT_NEAR(turned["losses"][2].get<double>(), expanded["losses"][2].get<double>(), 0.02) << method;
    }
    experiment["output"] = at("no");
    experiment["merge"] = "int4";
    expectRefused(experiment, "gpt_oss");
}

TEST_F(QatOutput, AnAdapterOverAFormatThatIsNotPackedAgainIsRefused) {
    Json experiment = {{"vitrine", 1},
                       {"workload", "finetune"},
                       {"backend", "cpu"},
                       {"model", "synthetic:llama-3.1-8b"},
                       {"set",
                        {{"hidden_size", "128"},
                         {"num_hidden_layers", "1"},
                         {"intermediate_size", "128"},
                         {"num_attention_heads", "4"},
                         {"num_key_value_heads", "2"},
                         {"head_dim", "32"},
                         {"vocab_size", "64"}}},
                       {"weights", "nf4"},
                       {"prompt_length", 8},
                       {"steps", 1},
                       {"method", "qlora"},
                       {"qat", "int4"}};
    expectRefused(experiment, "is packed already, as nf4");
    experiment["method"] = "lora";
    expectRefused(experiment, "is packed already, as nf4");
    experiment["qat"] = "none";
    experiment["merge_aware"] = true;
    expectRefused(experiment, "can be packed again");
}

TEST_F(QatOutput, BlocksThatReachFromGateToUpAreRefused) {
    expectRefused(experimentOf("qwen3-moe", {{"qat", "fp8"}}), "no whole blocks of 128");
}

} // namespace
} // namespace vitrine::engine
