// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The attention workload as an experiment: what the command line, an experiment file and the desktop program start
// alike.

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json experiment() {
    return {{"vitrine", 1},
            {"workload", "attention"},
            {"backend", "cpu"},
            {"program", "W = 64\ndef m(b, h, q, k):\n    return (q >= k) & (q - k < W) & (doc[q] == doc[k])\n"},
            {"mask", "m"},
            {"parameter", {"W=100"}},
            {"capture", {"doc=documents:100,412"}},
            {"random", "1,2,1,512,16"},
            {"block_size", 64}};
}

std::string failureOf(const json& spec) {
    try {
        runExperiment(Experiment::parse(spec, "experiment"), {}, {});
    } catch (const base::Error& error) {
        return error.message();
    }
    return {};
}

/// What has rates to plan by is predicted by the plan of its kernel: Meta's clock runs by that.
TEST(WorkloadAttention, ThePlanOfTheKernelPredicts) {
    const json metrics = runExperiment(Experiment::parse({{"vitrine", 1},
                                                          {"workload", "attention"},
                                                          {"backend", "meta"},
                                                          {"device_profile", "h200"},
                                                          {"random", "1,8,8,2048,64"},
                                                          {"mask", "causal_mask"},
                                                          {"backward", true}},
                                                         "experiment"),
                                       {}, {});
    for (const std::string name : {"forward", "backward"}) {
        EXPECT_NEAR(metrics["predicted_" + name + "_ms"].get<double>(), metrics[name + "_ms"].get<double>(), 1e-5);
    }
}

TEST(WorkloadAttention, TimesWithTheMaskAndWithout) {
    json spec = experiment();
    spec["backward"] = true;
    spec["compare_full"] = true;
    spec["repeat"] = 1;
    const json metrics = runExperiment(Experiment::parse(spec, "experiment"), {}, {});
    for (const std::string name : {"forward", "backward"}) {
        ASSERT_TRUE(metrics.contains("full_" + name + "_ms"));
        EXPECT_GT(metrics[name + "_ms"], 0);
        EXPECT_GT(metrics[name + "_tflops"], 0);
        EXPECT_NEAR(metrics["predicted_" + name + "_ms"].get<double>(),
                    metrics["full_" + name + "_ms"].get<double>() * (1 - metrics["block_sparsity"].get<double>()),
                    1e-9);
    }
    // Rows of 64: 1, 2, then the window of 100 reaches two blocks back; the border of the documents lies in block 1.
    EXPECT_EQ(metrics["block_size"], 64);
    EXPECT_DOUBLE_EQ(metrics["block_sparsity"].get<double>(), 1 - 20.0 / 64);
    EXPECT_EQ(metrics["q_len"], 512);
    EXPECT_EQ(metrics["kv_heads"], 1);
    EXPECT_GT(metrics["peak_bytes"], 0);
}

TEST(WorkloadAttention, QueriesAndKeysMayDiffer) {
    json spec = experiment();
    spec["random"] = "1,2,2,128,384,32";
    spec["capture"] = {"doc=documents:512"};
    const json metrics = runExperiment(Experiment::parse(spec, "experiment"), {}, {});
    EXPECT_EQ(metrics["q_len"], 128);
    EXPECT_EQ(metrics["kv_len"], 384);
    EXPECT_TRUE(metrics["backward_ms"].is_null());
    EXPECT_FALSE(metrics.contains("full_forward_ms"));
}

TEST(WorkloadAttention, BadInputIsNamed) {
    json spec = experiment();
    spec["random"] = "1,2,2,128";
    EXPECT_THAT(failureOf(spec), HasSubstr("random"));
    spec.erase("random");
    EXPECT_THAT(failureOf(spec), HasSubstr("tensors"));
    spec = experiment();
    spec["mask"] = "nothing";
    EXPECT_THAT(failureOf(spec), HasSubstr("nothing"));
    spec = experiment();
    spec["program"] = "def m(b, h, q, k):\n    return q >= \n";
    EXPECT_THAT(failureOf(spec), HasSubstr("program:2:"));
    spec = experiment();
    spec["parameter"] = {"W"};
    EXPECT_THAT(failureOf(spec), HasSubstr("parameter"));
    spec = experiment();
    spec["stands_for"] = "1,2";
    EXPECT_THAT(failureOf(spec), HasSubstr("stands_for"));
    spec = experiment();
    spec["model"] = "synthetic:tiny-llama";
    EXPECT_THAT(failureOf(spec), HasSubstr("attention does not take it"));
}

TEST(WorkloadAttention, StopsBetweenRepeats) {
    base::StopSource stop;
    stop.request_stop();
    json partial;
    EXPECT_THROW(runExperiment(Experiment::parse(experiment(), "experiment"), {}, stop.get_token(), &partial),
                 base::Cancelled);
}

TEST(WorkloadAttention, OtherWorkloadsHaveTwoTypes) {
    const json spec = {{"vitrine", 1}, {"workload", "load"}, {"model", "synthetic:tiny-llama"}, {"dtype", "float64"}};
    EXPECT_THAT(failureOf(spec), HasSubstr("dtype"));
}

} // namespace
} // namespace vitrine::engine
