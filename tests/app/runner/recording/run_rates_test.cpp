// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/recording/run_rates.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiler/record/recorder.h"
#include "profiler/timeline/run_timeline_builder.h"

namespace vitrine::app {
namespace {

using Json = nlohmann::json;
using kernels::RateClass;

kernels::RunRateClasses classesOf(const Json& options) {
    Json spec = {{"vitrine", 1}, {"workload", "generate"}, {"model", "synthetic:tiny-gpt-oss"}};
    spec.update(options);
    return rateClassesOf(engine::Experiment::parse(spec, "test"));
}

TEST(RunRatesTest, ExpertsAreClassedByHowTheirWeightsAreHeldAndByCopies) {
    EXPECT_EQ(classesOf({{"prompt_length", 64}}).experts,
              kernels::expertRateClass(kernels::WeightFormat::Mxfp4, false));
    EXPECT_EQ(classesOf({{"prompt_length", 64}, {"weights", "dequantized"}}).experts,
              kernels::expertRateClass(kernels::WeightFormat::Dense, false));
    EXPECT_EQ(classesOf({{"prompt_length", 64}, {"batch", 4}}).experts,
              kernels::expertRateClass(kernels::WeightFormat::Mxfp4, true));
    EXPECT_EQ(classesOf({{"prompt_length", 64}, {"batch", 4}, {"weights", "dequantized"}}).experts,
              kernels::expertRateClass(kernels::WeightFormat::Dense, true));
    EXPECT_EQ(classesOf({{"prompt_length", 64}, {"batch", 4}, {"temperature", 1.0}}).experts,
              kernels::expertRateClass(kernels::WeightFormat::Mxfp4, false))
        << "drawn tokens differ, and with them the experts";
    EXPECT_EQ(classesOf({{"prompt_length", 64}, {"model", "synthetic:tiny-qwen3-moe"}}).experts,
              kernels::expertRateClass(kernels::WeightFormat::Dense, false));
    EXPECT_EQ(classesOf({{"workload", "load"}, {"weights", "both"}}).experts, RateClass());
}

TEST(RunRatesTest, ProductsAreClassedByTheFormatOfTheirWeights) {
    const char* fp8 = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";
    const auto dense = classesOf({{"prompt_length", 64}, {"model", "synthetic:qwen3-4b"}});
    EXPECT_EQ(dense.projections, RateClass());
    const auto packed =
        classesOf({{"prompt_length", 64}, {"model", "synthetic:qwen3-4b"}, {"set", {{"quantization_config", fp8}}}});
    EXPECT_EQ(packed.projections, kernels::weightRateClass(kernels::WeightFormat::Fp8));
    EXPECT_EQ(packed.mlp, kernels::weightRateClass(kernels::WeightFormat::Fp8));
    const auto nf4 = classesOf({{"prompt_length", 64}, {"model", "synthetic:qwen3-4b"}, {"weights", "nf4"}});
    EXPECT_EQ(nf4.projections, kernels::weightRateClass(kernels::WeightFormat::Nf4));
    const auto gptOss = classesOf({{"prompt_length", 64}});
    EXPECT_EQ(gptOss.projections, RateClass());
    EXPECT_EQ(gptOss.mlp, RateClass()) << "only its experts are packed";
    const auto experts = classesOf(
        {{"prompt_length", 64}, {"model", "synthetic:qwen3-30b-a3b"}, {"set", {{"quantization_config", fp8}}}});
    EXPECT_EQ(experts.experts, kernels::expertRateClass(kernels::WeightFormat::Fp8, false));
}

TEST(RunRatesTest, AttentionIsClassedByHeadsAndCache) {
    const RateClass plain = classesOf({{"prompt_length", 64}}).attention;
    const RateClass fp8 = classesOf({{"prompt_length", 64}, {"kv_dtype", "fp8"}}).attention;
    const RateClass int8 = classesOf({{"prompt_length", 64}, {"kv_dtype", "int8"}}).attention;
    EXPECT_EQ(plain, RateClass::NarrowHeads);
    EXPECT_EQ(fp8, RateClass::NarrowHeadsFp8);
    EXPECT_EQ(int8, RateClass::NarrowHeadsInt8);
}

TEST(RunRatesTest, MeasuredCallsStandInTheFamiliesOfTheirClasses) {
    profiler::Recorder recorder;
    const auto scope = [&](std::uint64_t id, std::uint64_t parent, base::ScopeKind kind, const char* name,
                           base::TimeNs begin, base::TimeNs end) {
        recorder.record(base::ScopeBeginEvent{begin, {id}, {parent}, kind, recorder.intern(name), 0, 4, 0, {}});
        recorder.record(base::ScopeEndEvent{end, {id}, 1000, 2000});
    };
    scope(1, 0, base::ScopeKind::Step, "decode", 0, 9000);
    scope(2, 1, base::ScopeKind::Op, "Attention", 1000, 2000);
    scope(3, 1, base::ScopeKind::Op, "ExpertMlp", 2000, 4000);
    scope(4, 1, base::ScopeKind::Op, "Rope", 4000, 5000);
    profiler::RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : recorder.finish()) {
        builder.add(chunk);
    }
    const Json ops = ratesOf(*builder.snapshot(),
                             {RateClass::WideHeadsInt8, kernels::expertRateClass(kernels::WeightFormat::Dense, false)})
                         .toJson()["ops"];
    EXPECT_EQ(ops.size(), 3U);
    EXPECT_TRUE(ops.contains("Attention.wide.int8"));
    EXPECT_TRUE(ops.contains("ExpertMlp.dense"));
    EXPECT_TRUE(ops.contains("Rope"));
}

} // namespace
} // namespace vitrine::app
