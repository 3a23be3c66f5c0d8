// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Quantization-aware training against losses, gradients and codes that PyTorch made (tests/fixtures/qat-*).

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/training/training_test_support.h"
#include "tests/engine/workload/finetune/qat_testing.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using test::fixture;
using test::QuantizationAware;

class QatFamily : public QuantizationAware, public testing::WithParamInterface<const char*> {};

TEST_P(QatFamily, LossesGradientsAndCodesAreThoseOfPyTorch) {
    const std::string expected = fixture(std::string("qat-") + GetParam() + "/losses.json");
    const std::string gradients = at("gradients.safetensors");
    const Json reference = Json::parse(std::ifstream(expected));
    Json more = reference.value("options", Json::object());
    more["save_gradients"] = gradients;
    const Json out = run(experimentOf(GetParam(), more));
    const std::vector<double> losses = test::numbersOf(expected, "loss");
    const std::vector<double> changed = test::numbersOf(expected, "codes_changed_by_each_step");
    ASSERT_EQ(out["losses"].size(), losses.size());
    ASSERT_EQ(out["codes_changed"].size(), changed.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
        EXPECT_NEAR(out["losses"][i].get<double>(), losses[i], 3e-4) << "step " << i + 1;
        EXPECT_NEAR(out["codes_changed"][i].get<double>(), changed[i], 0.02 * changed[i]) << "step " << i + 1;
    }
    EXPECT_EQ(out["quantized_updates"], losses.size() + 1) << "before the first step and after each";
    EXPECT_EQ(out["quantized_weights"], std::string(GetParam()) == "qwen3-moe" ? 6 : 21) << "no weight is left out";
    EXPECT_NEAR(out["saved_loss"].get<double>(), reference["loss_after_quantized"].get<double>(), 3e-4);
    EXPECT_NEAR(out["unquantized_loss"].get<double>(), reference["loss_after_unquantized"].get<double>(), 3e-4);
    const std::string theirs = fixture(std::string("qat-") + GetParam() + "/grads-step0.safetensors");
    const auto file = SafetensorsFile::open(theirs);
    for (const TensorEntry& tensor : file->tensors()) {
        EXPECT_LT(test::relativeError(test::readTensor<float>(gradients, tensor.name),
                                      test::readTensor<float>(theirs, tensor.name)),
                  2e-3)
            << tensor.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Families, QatFamily, testing::Values("gemma2", "llama", "mistral", "qwen3-moe"));

TEST_F(QuantizationAware, AResumedRunGoesOnToTheBit) {
    for (const char* format : {"int4", "fp8"}) {
        const Json more = {{"qat", format}, {"steps", 5}, {"dtype", "bfloat16"}};
        const Json whole = run(experimentOf("llama", more));
        Json part = experimentOf("llama", more);
        part["steps"] = 3;
        part["save_every"] = 2;
        part["output"] = at(format);
        run(part);
        part["steps"] = 5;
        part["resume"] = at(format);
        const Json resumed = run(part);
        EXPECT_EQ(resumed["losses"], whole["losses"]) << format;
        EXPECT_EQ(resumed["trained_loss"], whole["trained_loss"]) << format;
        part["group_size"] = 16;
        part["qat"] = "int4";
        part["steps"] = 6;
        expectRefused(part, "--");
    }
}

TEST_F(QuantizationAware, TheOutputHasTheMasters) {
    Json experiment = experimentOf("llama", {{"output", at("out")}, {"steps", 3}});
    const Json out = run(experiment);
    EXPECT_NEAR(out["saved_loss"].get<double>(), out["unquantized_loss"].get<double>(), 1e-6);
    EXPECT_NE(out["saved_loss"], out["trained_loss"]);
}

TEST_F(QuantizationAware, APlanHasAnArenaForTheCopies) {
    Json experiment = experimentOf("llama", {{"plan", true}, {"device_profile", "h100-80gb"}});
    experiment.erase("backend");
    const Json with = run(experiment);
    experiment["qat"] = "none";
    const Json without = run(experiment);
    EXPECT_GT(with["peak_bytes"], without["peak_bytes"]);
}

TEST_F(QuantizationAware, WhatCannotBeIsOneSentence) {
    expectRefused(experimentOf("llama", {{"group_size", 40}}), "layers.0.");
    expectRefused(experimentOf("llama", {{"group_size", 12}}), "multiple of 8");
    expectRefused(experimentOf("llama", {{"qat", "mxfp4"}}), "no stack of experts");
    expectRefused(experimentOf("llama", {{"qat", "none"}, {"group_size", 32}}), "give qat too");
    expectRefused(experimentOf("llama", {{"qat", "fp8"}, {"int4_rule", "seven"}}), "int4_rule");
    expectRefused(experimentOf("llama", {{"merge", "bf16"}, {"output", at("no")}}), "trained as int4");
    expectRefused(experimentOf("llama", {{"method", "lora"}, {"merge", "fp8"}, {"output", at("no")}}),
                  "choose it or bf16");
    expectRefused(experimentOf("llama", {{"method", "lora"}, {"qat", "none"}, {"merge", "int4"}, {"output", at("no")}}),
                  "give qat too");
    expectRefused(experimentOf("llama", {{"qat_weights", "head"}}), "never are");
    expectRefused(experimentOf("llama", {{"train", "attention"}}), "not trained");
    expectRefused(experimentOf("llama", {{"merge_aware", true}}), "merge_aware");
    Json gptq =
        experimentOf("llama", {{"model", fixture("gptq-v2")}, {"weights", "dequantized"}, {"prompt_length", 16}});
    gptq.erase("tokens_file");
    expectRefused(gptq, "packed by GPTQ");
}

} // namespace
} // namespace vitrine::engine
