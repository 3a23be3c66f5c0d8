// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Updates of a policy against losses, KL, shares of clipped tokens and gradients that PyTorch made
// (tests/fixtures/grpo-*).

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/rl/policy/rollout_testing.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine::test {

class PolicyRun : public testing::Test {
protected:
    static nlohmann::json experimentOf(const std::string& model,
                                       const nlohmann::json& more = nlohmann::json::object()) {
        nlohmann::json experiment = {{"vitrine", 1},
                                     {"workload", "rl"},
                                     {"backend", "cpu"},
                                     {"model", fixture(model)},
                                     {"rollouts", fixture("grpo-" + model + "/rollouts.safetensors")},
                                     {"method", "full"},
                                     {"lr", 0.0002},
                                     {"weight_decay", 0},
                                     {"updates", 3},
                                     {"dtype", "float32"}};
        experiment.update(more);
        return experiment;
    }
    static nlohmann::json run(const nlohmann::json& experiment) {
        return runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
    }
    static std::string failure(const nlohmann::json& experiment) {
        return test::failure([&] { run(experiment); });
    }
    std::string at(const std::string& name) const { return folder_.file(name); }

    /// Runs the fixture of a model, with `more` options, which change results by rounding only.
    void expectAsPyTorch(const std::string& model, nlohmann::json more) const {
        const std::string gradients = at("gradients.safetensors");
        if (model == "llama") {
            more.update({{"kl", 0.05}});
        } else {
            more.update({{"aggregation", "sequence"}, {"clip_high", 0.2}, {"importance_cap", 0}});
        }
        more["save_gradients"] = gradients;
        const nlohmann::json out = run(experimentOf(model, more));
        const nlohmann::json expected =
            nlohmann::json::parse(std::ifstream(fixture("grpo-" + model + "/expected.json")));
        expectNear(out["losses"], expected["loss"], 1e-4, "loss");
        expectNear(out["kl"], expected["kl_k3"], 1e-4, "kl");
        expectNear(out["clip_share"], expected["clip_share"], 1e-6, "clip share");
        expectNear(out["mean_ratio"], expected["mean_ratio"], 1e-3, "ratio");
        expectNear(out["grad_norms"], expected["grad_norm"], 0.01, "gradient norm");
        EXPECT_NEAR(out["logprob_abs_diff"].get<double>(), expected["logprob_abs_diff"].get<double>(), 1e-5);
        EXPECT_NEAR(out["mismatch_k3"].get<double>(), expected["mismatch_k3"].get<double>(), 1e-5);
        EXPECT_GT(out["entropy"][0].get<double>(), 0);
        const std::string theirs = fixture("grpo-" + model + "/grads-step0.safetensors");
        const auto file = SafetensorsFile::open(theirs);
        for (const TensorEntry& tensor : file->tensors()) {
            EXPECT_LT(relativeError(readTensor<float>(gradients, tensor.name), readTensor<float>(theirs, tensor.name)),
                      2e-3)
                << tensor.name;
        }
    }

    /// The rollouts of llama without some tensors.
    std::string without(const std::vector<std::string>& names) const {
        const std::string path = fixture("grpo-llama/rollouts.safetensors");
        TensorFileMaker maker;
        const auto file = SafetensorsFile::open(path);
        for (const TensorEntry& tensor : file->tensors()) {
            if (std::ranges::find(names, tensor.name) != names.end()) {
                continue;
            }
            if (tensor.dtype == kernels::DType::F32) {
                maker.set(tensor.name, tensor.shape, readTensor<float>(path, tensor.name));
            } else {
                maker.set(tensor.name, tensor.shape, readTensor<std::int32_t>(path, tensor.name));
            }
        }
        return folder_.write("part.safetensors", maker.bytes());
    }

    TempFolder folder_;

private:
    static void expectNear(const nlohmann::json& actual, const nlohmann::json& expected, double tolerance,
                           const std::string& what) {
        ASSERT_EQ(actual.size(), expected.size()) << what;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            EXPECT_NEAR(actual[i].get<double>(), expected[i].get<double>(), tolerance) << what << " " << i;
        }
    }
};

} // namespace vitrine::engine::test
