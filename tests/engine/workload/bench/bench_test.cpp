// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// bench gpt-oss on a tiny model: rows, their bytes and ceilings. Nothing is asserted about speed.

#include "engine/workload/bench/bench.h"

#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/generation/generator.h"
#include "engine/workload/experiment/experiment.h"
#include "kernels/ops/attention/kv_rows.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

Json bench(Json experiment) {
    experiment["vitrine"] = 1;
    experiment["workload"] = "bench";
    return runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
}

Json rowNamed(const Json& result, const std::string& name) {
    for (const Json& row : result["rows"]) {
        if (row["name"] == name) {
            return row;
        }
    }
    ADD_FAILURE() << "no row " << name << " in " << result["rows"].dump();
    return {};
}

const Json kTiny = {{"bench", "gpt-oss"}, {"model", "synthetic:tiny-gpt-oss"},
                    {"batches", "1,3"},   {"contexts", "64"},
                    {"prompt_lengths", "40"},    {"backend", "cpu"}};

TEST(Bench, GptOssRowsStandBesideTheirRooflines) {
    const Json out = bench(kTiny);
    const double copy = rowNamed(out, "copy")["value"].get<double>() * 1e9;
    const double multiply = rowNamed(out, "matmul")["value"].get<double>() * 1e12;
    EXPECT_GT(copy, 0);
    EXPECT_GT(multiply, 0);
    for (const int batch : {1, 3}) {
        const Json row = rowNamed(out, fmt::format("decode batch {} context 64", batch));
        EXPECT_GT(row["value"], 0.0);
        EXPECT_DOUBLE_EQ(row["ratio"].get<double>(), row["value"].get<double>() / row["ceiling"].get<double>());
        const double bytes = row["experts_bytes"].get<double>() + row["attention_bytes"].get<double>() +
                             row["head_bytes"].get<double>() + row["kv_bytes"].get<double>();
        EXPECT_LE(row["ceiling"].get<double>(), batch * copy / bytes * 1.0001);
    }
    const Json row = rowNamed(out, "prefill 40");
    EXPECT_GT(row["tflop"], 0.0);
    EXPECT_GT(row["value"], 0.0);
    EXPECT_GT(rowNamed(out, "weights")["value"], 0.0);
    EXPECT_EQ(out["decode_contexts"], "random keys and values, no prefill");
}

TEST(Bench, AttentionRowsAreProgramsInBothDirections) {
    const Json out =
        bench({{"bench", "attention"}, {"model", "synthetic:tiny-llama"}, {"backend", "cpu"}, {"repeat", 1}});
    EXPECT_EQ(out["rows"].size(), 1 + 2 * 8 * 2);
    for (const char* program : {"noop", "alibi", "sliding-128", "documents"}) {
        const Json forward = rowNamed(out, fmt::format("{} D64 forward", program));
        const Json backward = rowNamed(out, fmt::format("{} D128 backward", program));
        EXPECT_GT(forward["value"], 0.0);
        EXPECT_GT(backward["value"], 0.0);
        EXPECT_EQ(forward["ceiling"], rowNamed(out, "matmul")["value"]);
    }
    // The same work in less than the whole square: 3 of 4 blocks of 128.
    const Json noop = rowNamed(out, "noop D64 forward");
    const Json causal = rowNamed(out, "causal D64 forward");
    const auto work = [](const Json& row) { return row["value"].get<double>() * row["ms"].get<double>(); };
    EXPECT_NEAR(work(causal) / work(noop), 0.75, 1e-6);
}

TEST(Bench, GptOssPricesADeviceOnMeta) {
    const Json out = bench({{"bench", "gpt-oss"},
                            {"model", "synthetic:gpt-oss-20b"},
                            {"backend", "meta"},
                            {"device_profile", "h200"},
                            {"batches", "1"},
                            {"contexts", "1024"},
                            {"prompt_lengths", "8192"}});
    const Json row = rowNamed(out, "decode batch 1 context 1024");
    EXPECT_DOUBLE_EQ(row["experts_hit"].get<double>(), 4.0);
    // 24 layers of 4 experts of 3 x 2880 x 2880 weights in 4.25 bits, with biases in BF16.
    EXPECT_NEAR(row["experts_bytes"].get<double>(), 24.0 * 4 * (3 * 2880 * 2880 * 4.25 / 8 + 3 * 2880 * 2), 1e3);
    EXPECT_EQ(row["head_bytes"], 201088 * 2880 * 2);
    EXPECT_EQ(row["kv_bytes"], 2 * 8 * 64 * 2 * (12 * 1024 + 12 * 127));
    EXPECT_LT(row["ratio"], 1.0);
    // 2 FLOPs for each of 3.0 G weights that a token multiplies, and the attention of 8,192 positions.
    EXPECT_NEAR(rowNamed(out, "prefill 8192")["tflop"].get<double>(), 56.4, 0.1);
}

TEST(Bench, WhatDoesNotFitIsARowWithoutAValue) {
    Json experiment = {{"bench", "gpt-oss"}, {"model", "synthetic:gpt-oss-20b"},
                       {"backend", "meta"},  {"device_profile", "l4"},
                       {"batches", "1,64"},  {"contexts", "8192"},
                       {"prompt_lengths", "none"}};
    const Json out = bench(experiment);
    EXPECT_GT(rowNamed(out, "decode batch 1 context 8192")["value"], 0.0);
    const Json row = rowNamed(out, "decode batch 64 context 8192");
    EXPECT_TRUE(row["value"].is_null());
    EXPECT_EQ(row["what"], "out of memory");
}

TEST(Bench, ListsAreChecked) {
    for (const char* list : {"1,", "x", "0", "1;2", "-1", "99999999999999999999"}) {
        Json experiment = kTiny;
        experiment["batches"] = list;
        EXPECT_THROW(bench(experiment), base::BadInput) << list;
    }
}

TEST(Bench, CeilingsStandAlone) {
    for (const char* name : {"copy", "matmul"}) {
        const Json out = bench({{"bench", name}, {"backend", "meta"}, {"device_profile", "h200"}});
        EXPECT_GT(rowNamed(out, name)["value"], 0.0);
        EXPECT_TRUE(rowNamed(out, name)["ceiling"].is_null());
    }
}

// The experts that a step reads are those that the router of each layer chose.
TEST(Bench, ExpertsAreCounted) {
    const auto context = test::makeContext(kernels::Backend::Cpu);
    const ModelSource source = openModel("synthetic:tiny-gpt-oss");
    Model model(*context, source, {false, kernels::DType::F32, 3}, nullptr);
    ExpertUse use;
    GenerateOptions options;
    options.cache.dtype = kernels::DType::F32;
    options.expertUse = &use;
    GenerateRequest request;
    request.prompt = {5};
    request.maxNewTokens = 8;
    GenerateReport report;
    Generator(model, nullptr, options).run({request}, report, {});
    const std::int64_t layers = model.weightBytes().moeLayers;
    EXPECT_EQ(use.steps, 7);
    EXPECT_EQ(use.experts, 7 * layers * source.config.expertsPerToken) << "one token reads each of its experts once";
    use = {};
    Generator(model, nullptr, options).run({request, request, request}, report, {});
    EXPECT_EQ(use.experts, 7 * layers * source.config.expertsPerToken) << "equal tokens choose equal experts";
}

/// Counts what is turned on, and what is reported to it.
class CountingProfiles final : public ProfileSwitch {
public:
    base::TraceSink& begin(const std::string& level) override {
        EXPECT_FALSE(std::exchange(on_, true));
        ++begun[level];
        return sink;
    }
    void settle() override { EXPECT_TRUE(on_); }
    std::uint64_t end() override {
        EXPECT_TRUE(std::exchange(on_, false));
        return 2;
    }
    std::map<std::string, int> begun;
    test::RecordingSink sink;

private:
    bool on_ = false;
};

TEST(Bench, ProfilingIsMeasuredInTurnsOnOneModel) {
    Json experiment = {{"vitrine", 1},        {"workload", "bench"}, {"bench", "profiling"},
                       {"backend", "cpu"},    {"contexts", "64"},    {"prompt_lengths", "40"},
                       {"profile_window", 2}, {"profile_every", 9},  {"model", "synthetic:tiny-gpt-oss"}};
    EXPECT_THROW(runExperiment(Experiment::parse(experiment, "experiment"), {}, {}), base::Unsupported)
        << "the engine has no profilers of its own";
    CountingProfiles profiles;
    WorkloadSinks sinks;
    sinks.profiles = &profiles;
    const Json out = runExperiment(Experiment::parse(experiment, "experiment"), sinks, {});
    // Three rounds and one before them for each of two batches and a prompt; light rounds only count.
    EXPECT_EQ(profiles.begun["light"], 9);
    EXPECT_EQ(profiles.begun["full"], 13);
    EXPECT_FALSE(profiles.sink.lines().empty());
    EXPECT_EQ(rowNamed(out, "lost records")["value"], 42);
    for (const char* name : {"decode batch 1, light", "decode batch 16, full inside a window", "prefill 40, full"}) {
        const Json row = rowNamed(out, name);
        EXPECT_GT(row["value"], 0.0) << name;
        EXPECT_GT(row["ceiling"], 1.0) << name;
        EXPECT_DOUBLE_EQ(row["value"].get<double>(),
                         row["step_seconds"].get<double>() / row["off_seconds"].get<double>());
    }
    EXPECT_EQ(rowNamed(out, "decode batch 1, full inside a window")["ceiling"], 1.4);
    EXPECT_EQ(rowNamed(out, "decode batch 16, full inside a window")["ceiling"], 1.15);
}

TEST(Bench, AContextOfRandomKeysIsAsLongAsAPrefill) {
    const auto context = test::makeContext(kernels::Backend::Cpu);
    const ModelSource source = openModel("synthetic:tiny-gpt-oss");
    KvCacheOptions options;
    options.dtype = kernels::DType::F32;
    options.pageTokens = 8;
    KvCache cache(*context, source.config, options);
    const int sequence = cache.addSequence();
    cache.fillRandom(sequence, 50, 1);
    EXPECT_EQ(cache.length(sequence), 50);
    EXPECT_EQ(cache.usedBytes(), source.config.kvBytes(50, kernels::DType::F32));
    EXPECT_THROW(cache.fillRandom(sequence, 1, 1), base::Internal);
}

TEST(Bench, RandomBytesAreNormalValues) {
    for (const kernels::DType dtype : {kernels::DType::I8, kernels::DType::F8E4M3}) {
        const auto context = test::makeContext(kernels::Backend::Cpu);
        const ModelSource source = openModel("synthetic:tiny-gpt-oss");
        KvCacheOptions options;
        options.dtype = dtype;
        options.pageTokens = 8;
        KvCache cache(*context, source.config, options);
        cache.fillRandom(cache.addSequence(), 50, 1);
        const kernels::KvView view = cache.layerView(source.config.layers[0].window > 0 ? 1 : 0);
        const std::int64_t dim = source.config.headDim;
        std::vector<double> row(static_cast<std::size_t>(dim));
        double squares = 0;
        for (std::int64_t token = 0; token < 8; ++token) {
            for (std::int64_t head = 0; head < source.config.kvHeads; ++head) {
                const std::int64_t at = (token * source.config.kvHeads + head) * dim;
                kernels::dequantizeKvRow(dtype, view.values.as<const std::uint8_t>() + at,
                                         view.valueScales.as<const float>()[head * 8 + token], dim, row.data());
                for (const double x : row) {
                    EXPECT_LT(std::fabs(x), 6) << token;
                    squares += x * x;
                }
            }
        }
        EXPECT_NEAR(squares / static_cast<double>(8 * source.config.kvHeads * dim), 1, 0.25);
    }
}

} // namespace
} // namespace vitrine::engine
