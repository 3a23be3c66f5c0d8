// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Runs of quantization-aware training on a GPU, beside the same on the CPU.

#include <nlohmann/json.hpp>

#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/training/training_test_support.h"
#include "tests/gpu/gpu_testing.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

Json runOn(const char* backend, const Json& more) {
    Json experiment = {{"vitrine", 1}, {"workload", "finetune"}, {"backend", backend}, {"steps", 4},
                       {"lr", 0.001},  {"weight_decay", 0},      {"dtype", "float32"}, {"train", "all-linear"}};
    experiment.update(more);
    return runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
}

void expectAsOnTheCpu(const std::string& model, const Json& more, double tolerance) {
    SCOPED_TRACE(model + " " + more.dump());
    Json experiment = {{"model", test::fixture(model)},
                       {"tokens_file", test::fixture("qat-" + model + "/batch.safetensors")}};
    experiment.update(more);
    const Json cpu = runOn("cpu", experiment), gpu = runOn("cuda", experiment);
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(gpu["losses"][i].get<double>(), cpu["losses"][i].get<double>(), tolerance) << "step " << i + 1;
        EXPECT_NEAR(gpu["codes_changed"][i].get<double>(), cpu["codes_changed"][i].get<double>(),
                    0.05 * cpu["codes_changed"][i].get<double>() + 0.001)
            << "step " << i + 1;
    }
    EXPECT_NEAR(gpu["trained_loss"].get<double>(), cpu["trained_loss"].get<double>(), 2 * tolerance);
    EXPECT_NEAR(gpu["unquantized_loss"].get<double>(), cpu["unquantized_loss"].get<double>(), 2 * tolerance);
}

TEST(QuantizedTrainingGpu, MastersFollowTheCpu) {
    VITRINE_NEEDS_GPU();
    for (const char* model : {"llama", "qwen3-moe"}) {
        expectAsOnTheCpu(model, {{"method", "full"}, {"train", "all"}, {"qat", "int4"}}, 1e-3);
        expectAsOnTheCpu(model, {{"method", "full"}, {"train", "all"}, {"qat", "int4"}, {"dtype", "bfloat16"}}, 0.03);
    }
    expectAsOnTheCpu("llama", {{"method", "full"}, {"train", "all"}, {"qat", "fp8"}}, 1e-3);
}

TEST(QuantizedTrainingGpu, MergedAdaptersFollowTheCpu) {
    VITRINE_NEEDS_GPU();
    expectAsOnTheCpu("llama", {{"method", "lora"}, {"qat", "int4"}, {"lr", 0.01}}, 2e-3);
    expectAsOnTheCpu("llama", {{"method", "lora"}, {"qat", "fp8"}, {"lr", 0.01}}, 2e-3);
    expectAsOnTheCpu("qwen3-moe", {{"method", "lora"}, {"qat", "int4"}, {"lr", 0.01}, {"dtype", "bfloat16"}}, 0.05);
}

} // namespace
} // namespace vitrine::engine
