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
    EXPECT_EQ(classesOf({{"prompt_length", 64}}).experts, RateClass::PackedExperts);
    EXPECT_EQ(classesOf({{"prompt_length", 64}, {"weights", "dequantized"}}).experts, RateClass::DenseExperts);
    EXPECT_EQ(classesOf({{"prompt_length", 64}, {"batch", 4}}).experts, RateClass::CopiesPacked);
    EXPECT_EQ(classesOf({{"prompt_length", 64}, {"batch", 4}, {"weights", "dequantized"}}).experts,
              RateClass::CopiesDense);
    EXPECT_EQ(classesOf({{"prompt_length", 64}, {"batch", 4}, {"temperature", 1.0}}).experts, RateClass::PackedExperts)
        << "drawn tokens differ, and with them the experts";
    EXPECT_EQ(classesOf({{"prompt_length", 64}, {"model", "synthetic:tiny-qwen3-moe"}}).experts,
              RateClass::DenseExperts);
    EXPECT_EQ(classesOf({{"workload", "load"}, {"weights", "both"}}).experts, RateClass::Any);
}

TEST(RunRatesTest, ProductsAreClassedByTheFormatOfTheirWeights) {
    const char* fp8 = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";
    const auto dense = classesOf({{"prompt_length", 64}, {"model", "synthetic:qwen3-4b"}});
    EXPECT_EQ(dense.projections, RateClass::Any);
    const auto packed =
        classesOf({{"prompt_length", 64}, {"model", "synthetic:qwen3-4b"}, {"set", {{"quantization_config", fp8}}}});
    EXPECT_EQ(packed.projections, RateClass::Fp8Weights);
    EXPECT_EQ(packed.mlp, RateClass::Fp8Weights);
    const auto nf4 = classesOf({{"prompt_length", 64}, {"model", "synthetic:qwen3-4b"}, {"weights", "nf4"}});
    EXPECT_EQ(nf4.projections, RateClass::Nf4Weights);
    const auto gptOss = classesOf({{"prompt_length", 64}});
    EXPECT_EQ(gptOss.projections, RateClass::Any);
    EXPECT_EQ(gptOss.mlp, RateClass::Any) << "only its experts are packed";
    const auto experts = classesOf(
        {{"prompt_length", 64}, {"model", "synthetic:qwen3-30b-a3b"}, {"set", {{"quantization_config", fp8}}}});
    EXPECT_EQ(experts.experts, RateClass::Fp8Experts);
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
    const Json ops = ratesOf(*builder.snapshot(), {RateClass::WideHeadsInt8, RateClass::DenseExperts}).toJson()["ops"];
    EXPECT_EQ(ops.size(), 3U);
    EXPECT_TRUE(ops.contains("Attention.wide.int8"));
    EXPECT_TRUE(ops.contains("ExpertMlp.dense"));
    EXPECT_TRUE(ops.contains("Rope"));
}

} // namespace
} // namespace vitrine::app
