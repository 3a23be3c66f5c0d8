// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Whole runs: errors against plain sums, probabilities against those of models that `convert` wrote.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/resource_path.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/convert/weight_reader.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/precision/keep_parts.h"
#include "engine/workload/precision/lab_text.h"
#include "engine/workload/precision/lab_weights.h"
#include "engine/workload/precision/precision_result.h"
#include "engine/workload/precision/text_scorer.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/engine/workload/common/stop_at.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Json = nlohmann::json;

Json runOf(Json experiment, const WorkloadSinks& sinks = {}, base::StopToken stop = {}) {
    experiment["vitrine"] = 1;
    return runExperiment(Experiment::parse(experiment, "experiment"), sinks, std::move(stop));
}

std::string demoModel() {
    return base::resourcePath("models/vitrine-demo");
}

class Precision : public testing::Test {
protected:
    std::string randomModel(const std::string& family, bool tokenizer) const {
        const std::string folder = folder_.file(family);
        Json set = {{"num_hidden_layers", "2"}};
        set[family == "qwen3-moe" ? "moe_intermediate_size" : "intermediate_size"] = "64";
        // As many tokens as the tokenizer of the demo model has.
        set["vocab_size"] = "1536";
        runOf({{"workload", "synthesize"}, {"model", "synthetic:tiny-" + family}, {"set", set}, {"output", folder}});
        if (tokenizer) {
            fs::copy_file(demoModel() + "/tokenizer.json", folder + "/tokenizer.json");
        }
        return folder;
    }
    static Json spec(const std::string& model, const std::string& formats, int tokens) {
        return {{"workload", "precision"}, {"model", model}, {"formats", formats},   {"text_tokens", tokens},
                {"backend", "cpu"},        {"threads", 2},   {"kv_dtype", "float32"}};
    }
    static PrecisionResult resultOf(const Json& metrics) {
        auto result = precisionFromJson(metrics);
        EXPECT_TRUE(result);
        return result.value_or(PrecisionResult());
    }

    test::TempFolder folder_;
    base::ThreadPool pool_{2};
};

TEST_F(Precision, ErrorsOfEachWeightAreThePlainSums) {
    for (const std::string family : {"llama", "qwen3-moe"}) {
        const std::string model = randomModel(family, false);
        const PrecisionResult result = resultOf(runOf(spec(model, "int4:32,mxfp4,int4:128", 0)));
        const ModelSource source = openModel(model);
        const std::vector<LabMatrix> matrices = labMatrices(source.config);
        ASSERT_EQ(result.weights.size(), matrices.size());
        WeightReader reader(source, pool_);
        for (std::size_t i = 0; i < matrices.size(); ++i) {
            const std::vector<float> values = reader.matrix(matrices[i].weight, matrices[i].matrix);
            const RoundedMatrix matrix(precisionFormat("int4:32"), "weight", matrices[i].size(), kernels::DType::BF16,
                                       values, pool_);
            const std::vector<float> rounded = matrix.expanded(pool_);
            double error = 0, signal = 0, product = 0, length = 0, largest = 0;
            for (std::size_t at = 0; at < values.size(); ++at) {
                const double w = values[at], r = rounded[at];
                error += (w - r) * (w - r), signal += w * w, product += w * r, length += r * r;
                largest = std::max(largest, std::abs(w - r));
            }
            const WeightEffect& effect = result.effect(1, i);
            EXPECT_EQ(effect.kept, matrices[i].lab.role == "router") << result.weights[i].name;
            EXPECT_NEAR(effect.error.signalToNoise().value(), 10 * std::log10(signal / error), 1e-6);
            EXPECT_NEAR(effect.error.cosine().value(), product / std::sqrt(signal * length), 1e-7);
            EXPECT_NEAR(effect.error.meanSquare(), error / static_cast<double>(values.size()), 1e-8 * error);
            EXPECT_NEAR(effect.error.largest, largest, 1e-8);
            EXPECT_EQ(effect.bytes * 8, values.size() * 9 / 2);
            EXPECT_EQ(result.effect(0, i).bytes, values.size() * 2);
            EXPECT_EQ(result.effect(3, i).packable, result.weights[i].in % 128 == 0);
            EXPECT_EQ(result.effect(3, i).kept, !result.effect(3, i).packable || effect.kept);
        }
        EXPECT_EQ(result.formats[1].bitsPerWeight, 4.5);
        EXPECT_EQ(result.formats[2].bitsPerWeight, 4.25);
        EXPECT_TRUE(result.text.ids.empty());
        EXPECT_FALSE(result.formats[1].klMean);
    }
}

TEST_F(Precision, RolesAndPlacesComeFromTheNames) {
    const std::string model = randomModel("qwen3-moe", false);
    const PrecisionResult result = resultOf(runOf(spec(model, "int4:32", 0)));
    const auto found =
        std::ranges::find(result.weights, "model.layers.1.mlp.experts.3.down_proj.weight", &LabWeight::name);
    ASSERT_NE(found, result.weights.end());
    EXPECT_EQ(found->role, "down");
    EXPECT_EQ(found->layer, 1);
    EXPECT_EQ(found->expert, 3);
    const auto query = std::ranges::find(result.weights, "model.layers.0.self_attn.q_proj.weight", &LabWeight::name);
    ASSERT_NE(query, result.weights.end());
    EXPECT_EQ(query->role, "q");
    EXPECT_EQ(query->expert, -1);
}

/// Log-probabilities of the tokens of a text by a loaded model.
std::vector<TokenEffect> scored(const std::string& folder, const std::vector<std::int32_t>& ids) {
    const auto context = test::makeContext(kernels::Backend::Cpu);
    ModelOptions options;
    options.dequantize = true;
    Model model(*context, openModel(folder), options, nullptr);
    KvCacheOptions cache;
    cache.dtype = kernels::DType::F32;
    return TextScorer(model, ids, cache, 1000).score("", nullptr);
}

TEST_F(Precision, ProbabilitiesAreThoseOfTheModelThatConvertWrites) {
    for (const std::string family : {"llama", "qwen3-moe"}) {
        const std::string model = randomModel(family, true), packed = folder_.file(family + "-int4");
        const PrecisionResult result = resultOf(runOf(spec(model, "int4:32,nf4", 40)));
        runOf({{"workload", "convert"}, {"model", model}, {"to", "int4"}, {"group_size", 32}, {"output", packed}});
        ASSERT_EQ(result.text.ids.size(), 40U);
        const std::vector<TokenEffect> before = scored(model, result.text.ids), after = scored(packed, result.text.ids);
        for (std::size_t i = 1; i < 40; ++i) {
            EXPECT_NEAR(result.token(0, i).logprob, before[i].logprob, 1e-4);
            EXPECT_NEAR(result.token(1, i).logprob, after[i].logprob, 1e-4) << family;
            EXPECT_EQ(result.token(1, i).best[0].id, after[i].best[0].id);
        }
        EXPECT_EQ(result.formats[0].klMean, 0);
        EXPECT_EQ(result.formats[0].topOne, 1);
        EXPECT_GT(result.formats[1].klMean.value(), 0);
        EXPECT_GT(result.formats[2].klMean.value(), 0) << "the second format begins with the model's own weights";
        EXPECT_GT(result.formats[1].plannedRate.value(), 0);
    }
}

TEST_F(Precision, WhatIsIgnoredStaysExact) {
    const std::string model = randomModel("llama", true);
    Json experiment = spec(model, "int4:32", 20);
    experiment["ignore"] = {"re:.*layers.*"};
    const PrecisionResult result = resultOf(runOf(experiment));
    EXPECT_EQ(result.formats[1].klMean, 0);
    EXPECT_EQ(result.formats[1].packedWeights, 0U);
    EXPECT_EQ(result.formats[1].bytes, result.formats[0].bytes);
    EXPECT_GT(result.effect(1, 0).error.squaredError, 0) << "the error says what the format would do";
}

TEST_F(Precision, TheDemoModelLosesLessWithMoreBits) {
    Json experiment = spec(demoModel(), "int8,int4:32", 64);
    experiment["keep_effects"] = true;
    const Json metrics = runOf(experiment);
    const PrecisionResult result = resultOf(metrics);
    EXPECT_LT(result.formats[1].klMean.value(), result.formats[2].klMean.value());
    std::string text;
    for (const std::string& piece : result.text.pieces) {
        text += piece;
    }
    EXPECT_EQ(result.text.name, "text of vitrine-demo");
    EXPECT_THAT(text, HasSubstr("You are Vitrine's demo model"));
    EXPECT_LT(result.formats[0].perplexity.value(), 20) << "the model knows the text of its folder";
    // A part alone cannot save more than all; what is left is the effect of the others.
    std::size_t roles = 0, layers = 0;
    for (const KeepEffect& keep : result.keep) {
        EXPECT_NEAR(keep.klMean + keep.klSaved, result.formats[keep.format].klMean.value(), 1e-6);
        EXPECT_LE(keep.klSaved, result.formats[keep.format].klMean.value() + 1e-6);
        EXPECT_GT(keep.bytesAdded, 0U);
        roles += keep.format == 2 && keep.part.allLayers() ? 1 : 0;
        layers += keep.format == 2 && !keep.part.allLayers() ? keep.part.lastLayer - keep.part.firstLayer + 1 : 0;
    }
    EXPECT_EQ(roles, 6U) << "q, k, v, o, gate_up, down";
    EXPECT_EQ(layers, kWorstCells);
    experiment["vitrine"] = 1;
    const std::string words = resultText(Experiment::parse(experiment, "experiment"), metrics);
    EXPECT_THAT(words, HasSubstr("INT4, g32"));
    EXPECT_THAT(words, HasSubstr("63 tokens scored"));
}

TEST_F(Precision, AFolderWithoutATextOfItsOwnGetsThatOfTheProgram) {
    const std::string model = randomModel("llama", true);
    EXPECT_EQ(resultOf(runOf(spec(model, "int4:32", 20))).text.name, "text of the program");
    std::ofstream(model + "/precision.txt") << "the quick brown fox jumps over the lazy dog, and again over the dog";
    const PrecisionResult own = resultOf(runOf(spec(model + "/", "int4:32", 20)));
    EXPECT_THAT(own.text.name, testing::StartsWith("text of "));
    EXPECT_NE(own.text.name, "text of the program");
    EXPECT_NE(own.text.name, "text of ");
}

TEST_F(Precision, AKeptRoleIsRoundedAgainAfterwards) {
    const std::string model = randomModel("llama", true);
    Json experiment = spec(model, "int4:32,nf4", 20);
    const PrecisionResult plain = resultOf(runOf(experiment));
    experiment["keep_effects"] = true;
    const PrecisionResult kept = resultOf(runOf(experiment));
    EXPECT_EQ(plain.formats[2].klMean, kept.formats[2].klMean);
    // All roles but one in BF16 is not asked for, so the sum of single effects need not be the whole.
    const auto first = static_cast<std::size_t>(std::ranges::count(kept.keep, 1U, &KeepEffect::format));
    EXPECT_EQ(std::ranges::count_if(kept.keep, [](const KeepEffect& keep) { return keep.part.allLayers(); }), 14)
        << "7 roles in 2 formats";
    EXPECT_TRUE(std::ranges::is_sorted(std::span(kept.keep).first(first), std::greater{}, &KeepEffect::klSavedPerGib));
    for (const KeepEffect& keep : kept.keep) {
        EXPECT_TRUE(keep.plannedRate.has_value() == kept.formats[keep.format].plannedRate.has_value());
        // In a model so small the launches count too, and how many there are depends on the CPU.
        EXPECT_FALSE(keep.plannedRate && *keep.plannedRate > 1.02 * *kept.formats[keep.format].plannedRate)
            << keepTitle(keep.part) << ": more bytes take no less time";
    }
}

TEST_F(Precision, ResultsComeBackFromJson) {
    const std::string model = randomModel("llama", true);
    const Json metrics = runOf(spec(model, "int4:32", 12));
    const PrecisionResult result = resultOf(metrics);
    const Json again = precisionJson(result);
    for (const char* key : {"formats", "keep", "precision"}) {
        EXPECT_EQ(again[key], metrics[key]) << key;
    }
    ASSERT_FALSE(result.text.candidatePieces.empty());
    EXPECT_TRUE(std::ranges::is_sorted(result.text.candidatePieces));
}

TEST_F(Precision, DamagedJsonIsNoResult) {
    const std::string model = randomModel("llama", true);
    const Json metrics = runOf(spec(model, "int4:32", 12));
    std::size_t cases = 0;
    for (const char* table : {"weights", "effects", "tokens", "text"}) {
        for (const auto& [column, values] : metrics["precision"][table].items()) {
            if (!values.is_array() || column == "candidates") {
                continue;
            }
            for (const Json& damaged : {Json(), Json(3), Json::array({"x"}), Json::object()}) {
                Json changed = metrics;
                changed["precision"][table][column] = damaged;
                EXPECT_FALSE(precisionFromJson(changed)) << table << " " << column << " " << damaged;
                ++cases;
            }
        }
    }
    EXPECT_GT(cases, 80U);
    for (const Json& other : {Json(), Json(1), Json::array(), Json::object(), Json{{"formats", 1}}}) {
        EXPECT_FALSE(precisionFromJson(other));
    }
    Json changed = metrics;
    changed["precision"]["tokens"]["first"][0] = 1e300;
    EXPECT_FALSE(precisionFromJson(changed));
    changed = metrics;
    changed["precision"]["text"]["candidates"] = {1, 2};
    EXPECT_FALSE(precisionFromJson(changed));
}

TEST_F(Precision, WithoutATextOnlyWeightsAreCompared) {
    const std::string model = randomModel("llama", false);
    const Json metrics = runOf(spec(model, "int4:32", 20));
    EXPECT_EQ(metrics["not_scored"], "the model has no tokenizer");
    EXPECT_EQ(metrics["scored_tokens"], 0);
    EXPECT_GT(metrics["formats"][1]["snr_db"].get<double>(), 10);
    EXPECT_TRUE(metrics["formats"][1]["kl"].is_null());
}

TEST_F(Precision, MistakesAreSaidWithTheirOption) {
    const std::string model = randomModel("llama", true);
    const auto problem = [&](const Json& change) {
        Json experiment = spec(model, "int4:32", 20);
        experiment.update(change);
        try {
            runOf(experiment);
        } catch (const base::Error& error) {
            return error.message();
        }
        return std::string();
    };
    EXPECT_THAT(problem({{"formats", "int4:32,int3"}}), HasSubstr("formats: \"int3\" is no format"));
    EXPECT_THAT(problem({{"text_tokens", 1}}), HasSubstr("text_tokens: must be 0, or 2 and more"));
    EXPECT_THAT(problem({{"text_tokens", 0}, {"keep_effects", true}}), HasSubstr("keep_effects: needs a text"));
    EXPECT_THAT(problem({{"model", "synthetic:tiny-llama"}}), HasSubstr("model: precision reads a model's files"));
    EXPECT_THAT(problem({{"text_file", folder_.file("none.txt")}}), HasSubstr("text_file: "));
    std::ofstream(folder_.file("empty.txt")) << "";
    EXPECT_THAT(problem({{"text_file", folder_.file("empty.txt")}}),
                HasSubstr("has 0 tokens, and the first one has nothing before it"));
    EXPECT_THAT(problem({{"backend", "meta"}}), HasSubstr("backend: meta computes no values"));
    std::ofstream(folder_.file("bytes.txt")) << "ab\xff\xfe\xc3 and \xe2\x82";
    EXPECT_EQ(problem({{"text_file", folder_.file("bytes.txt")}}), "");
    const std::string bare = folder_.file("bare");
    fs::copy(model, bare);
    fs::remove(bare + "/tokenizer.json");
    EXPECT_THAT(problem({{"model", bare}, {"text_file", folder_.file("bytes.txt")}}),
                HasSubstr("tokenizer.json: missing"));
}

TEST_F(Precision, ItStopsWhereverItIs) {
    const std::string model = randomModel("llama", true);
    for (const char* word : {"Scoring the text in BF16", "Rounding to INT4, g32: model.layers.1.mlp",
                             "Scoring the text in INT4", "with down, all layers in BF16"}) {
        test::StopAt stop(word);
        WorkloadSinks sinks;
        sinks.progress = &stop;
        Json experiment = spec(model, "int4:32", 20);
        experiment["keep_effects"] = true;
        EXPECT_THROW(runOf(experiment, sinks, stop.token()), base::Cancelled) << word;
    }
}

} // namespace
} // namespace vitrine::engine
