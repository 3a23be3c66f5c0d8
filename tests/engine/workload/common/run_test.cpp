// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Whole experiments through runExperiment: the fields that scripts rely on, and what a failed run leaves.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/resource_path.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/engine/workload/common/stop_at.h"
#include "tests/engine/workload/common/sum_of_bytes.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class WorkloadRun : public ::testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / fmt::format("vitrine-workload-{}", ::getpid());
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    static Json run(Json experiment, const WorkloadSinks& sinks = {}, base::StopToken stop = {},
                    Json* partial = nullptr) {
        experiment["vitrine"] = 1;
        return runExperiment(Experiment::parse(experiment, "experiment"), sinks, std::move(stop), partial);
    }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }

    fs::path folder_;
};

TEST_F(WorkloadRun, GenerateReportsWhatScriptsReadAndStreamsEveryToken) {
    std::vector<std::int32_t> streamed;
    WorkloadSinks sinks;
    sinks.token = [&](const StreamedToken& token) { streamed.push_back(token.id); };
    const Json out = run({{"workload", "generate"},
                          {"model", test::fixture("gpt-oss-mxfp4")},
                          {"tokens", {4, 5, 6}},
                          {"max_new_tokens", 12},
                          {"repeat", 2}},
                         sinks);
    EXPECT_EQ(out["backend"], "cpu");
    EXPECT_EQ(out["time_base"], "monotonic");
    EXPECT_EQ(out["prompt_tokens"], 3);
    EXPECT_EQ(out["ids"].size(), 12U);
    EXPECT_EQ(out["ids"].get<std::vector<std::int32_t>>(), streamed) << "repetitions do not stream";
    EXPECT_EQ(out["repeats"]["prefill_seconds"].size(), 2U);
    EXPECT_EQ(out["repeats"]["decode_tokens_per_second"].size(), 2U);
    EXPECT_FALSE(out.contains("prefilled_tokens")) << "only of a prompt that was not read whole";
    EXPECT_TRUE(out["text"].is_null());
    EXPECT_EQ(out["finish_reason"], "length");
    EXPECT_GT(out["prefill_seconds"], 0.0);
    EXPECT_GT(out["decode_tokens_per_second"], 0.0);
    EXPECT_EQ(test::sumOfBytes(out["peak_by_category"]), out["peak_bytes"]);
    // 14 tokens are kept: 2 full layers, 2 sliding layers of window 8; 2 heads of 16, float32.
    EXPECT_EQ(out["kv_bytes"], 2 * 2 * 16 * 4 * (2 * 14 + 2 * 7));
}

TEST_F(WorkloadRun, ExpertsInNf4AreRefusedAsTheyAreStored) {
    Json experiment = {{"workload", "generate"},
                       {"model", "synthetic:tiny-qwen3-moe"},
                       {"set",
                        {{"moe_intermediate_size", "64"},
                         {"quantization_config", R"({"quant_method": "bitsandbytes", "load_in_4bit": true,
                                                     "bnb_4bit_quant_type": "nf4"})"}}},
                       {"tokens", {4, 5}},
                       {"max_new_tokens", 1}};
    try {
        run(experiment);
        ADD_FAILURE();
    } catch (const base::Unsupported& error) {
        EXPECT_THAT(error.message(), testing::HasSubstr("experts in NF4 are not multiplied as they are stored"));
    }
    experiment["weights"] = "dequantized";
    EXPECT_EQ(run(experiment)["ids"].size(), 1U);
}

TEST_F(WorkloadRun, GenerateSaysThatTheModelsContextEndedIt) {
    const Json cut = run({{"workload", "generate"},
                          {"model", "synthetic:tiny-llama"},
                          {"set", {{"max_position_embeddings", "8"}}},
                          {"tokens", {4, 5, 6}},
                          {"ignore_eos", true},
                          {"max_new_tokens", 12}});
    EXPECT_EQ(cut["finish_reason"], "context");
    EXPECT_EQ(cut["generated_tokens"], 5);
    EXPECT_EQ(cut["kv_cache"]["context_limit"], 8);
    EXPECT_FALSE(cut.contains("finish_reasons"));
    const Json both = run({{"workload", "generate"},
                           {"model", "synthetic:tiny-llama"},
                           {"tokens", {4, 5, 6}},
                           {"ignore_eos", true},
                           {"batch", 2},
                           {"max_new_tokens", 3}});
    EXPECT_EQ(both["finish_reasons"], Json({{"length", 2}}));
}

TEST_F(WorkloadRun, GenerateSaysWhatATokenReadsByPart) {
    const Json out = run({{"workload", "generate"},
                          {"model", "synthetic:gpt-oss-20b"},
                          {"backend", "meta"},
                          {"device_profile", "h200"},
                          {"prompt_length", 1023},
                          {"max_new_tokens", 3}});
    const Json& roofline = out["roofline"];
    EXPECT_DOUBLE_EQ(roofline["bandwidth"].get<double>(), 4.25e12);
    EXPECT_EQ(roofline["bandwidth_source"], "device profile");
    EXPECT_DOUBLE_EQ(roofline["sequences"].get<double>(), 1.0);
    EXPECT_DOUBLE_EQ(roofline["context_tokens"].get<double>(), 1024.5); // two steps, of 1,024 and 1,025 tokens
    const Json& parts = roofline["parts"];
    // 24 layers of 4 experts of 3 x 2880 x 2880 weights in 4.25 bits, with biases in BF16.
    EXPECT_NEAR(parts["experts"].get<double>(), 24.0 * 4 * (3 * 2880 * 2880 * 4.25 / 8 + 3 * 2880 * 2), 1e3);
    EXPECT_EQ(parts["head"], 201088 * 2880 * 2.0);
    EXPECT_DOUBLE_EQ(parts["kv_cache"].get<double>(), 2 * 8 * 64 * 2 * (12 * 1024.5 + 12 * 127));
    double bytes = 0;
    for (const auto& [name, part] : parts.items()) {
        bytes += part.get<double>();
    }
    EXPECT_NEAR(roofline["bytes_per_token"].get<double>(), bytes, 1);
    EXPECT_NEAR(roofline["floor_seconds_per_token"].get<double>(), bytes / 4.25e12, 1e-12);
    EXPECT_NEAR(roofline["seconds_per_token"].get<double>() * out["decode_tokens_per_second"].get<double>(), 1, 1e-9);
    EXPECT_NEAR(roofline["ratio"].get<double>() * roofline["seconds_per_token"].get<double>(), bytes / 4.25e12, 1e-12);
}

TEST_F(WorkloadRun, SequencesThatDecodeTogetherShareTheWeights) {
    const Json alone = {{"workload", "generate"},
                        {"model", test::fixture("gpt-oss-mxfp4")},
                        {"tokens", {4, 5, 6}},
                        {"max_new_tokens", 6},
                        {"ignore_eos", true}};
    Json together = alone;
    together["batch"] = 4;
    const Json one = run(alone)["roofline"], four = run(together)["roofline"];
    EXPECT_DOUBLE_EQ(four["sequences"].get<double>(), 4.0);
    EXPECT_DOUBLE_EQ(four["parts"]["head"].get<double>() * 4, one["parts"]["head"].get<double>());
    EXPECT_DOUBLE_EQ(four["parts"]["kv_cache"].get<double>(), one["parts"]["kv_cache"].get<double>());
    // The same prompt four times: all take the same experts, and that is counted.
    EXPECT_TRUE(four["experts_counted"].get<bool>());
    EXPECT_DOUBLE_EQ(four["experts_hit"].get<double>(), one["experts_hit"].get<double>());
    EXPECT_EQ(one["bandwidth_source"], "assumed: too short a run to measure after");
    // One token comes from the prefill: nothing was decoded.
    Json first = alone;
    first["max_new_tokens"] = 1;
    EXPECT_FALSE(run(first).contains("roofline"));
}

TEST_F(WorkloadRun, ModelsWithoutExpertsReadLayers) {
    const Json parts = run({{"workload", "generate"},
                            {"model", "synthetic:tiny-llama"},
                            {"tokens", {1, 2}},
                            {"max_new_tokens", 4}})["roofline"]["parts"];
    EXPECT_TRUE(parts.contains("layers"));
    EXPECT_FALSE(parts.contains("experts"));
    EXPECT_FALSE(parts.contains("attention"));
}

TEST_F(WorkloadRun, ABatchListsItsRequestsAndATokensFileIsABatch) {
    const Json copies = run({{"workload", "generate"},
                             {"model", "synthetic:tiny-qwen3"},
                             {"tokens", {4, 5, 6}},
                             {"batch", 3},
                             {"max_new_tokens", 4}});
    ASSERT_EQ(copies["requests"].size(), 3U);
    EXPECT_EQ(copies["requests"][0]["ids"], copies["requests"][2]["ids"]);
    EXPECT_EQ(copies["generated_tokens"], 12);
    const Json rows = run({{"workload", "generate"},
                           {"model", test::fixture("llama")},
                           {"tokens_file", test::fixture("llama") + "/expected.safetensors"},
                           {"max_new_tokens", 2}});
    EXPECT_EQ(rows["requests"].size(), 2U);
}

TEST_F(WorkloadRun, ChatAndRawTextGiveText) {
    const std::string model = base::resourcePath("models/vitrine-demo");
    std::string streamed;
    WorkloadSinks sinks;
    sinks.token = [&](const StreamedToken& token) { streamed += token.text; };
    const Json chat = run({{"workload", "generate"},
                           {"model", model},
                           {"prompt", "Hello"},
                           {"date", "2026-01-02"},
                           {"max_new_tokens", 9}},
                          sinks);
    EXPECT_GT(chat["prompt_tokens"], 20) << "harmony writes a system message";
    std::string text = chat["text"];
    if (chat.contains("channels")) {
        text.clear();
        for (const auto& [channel, part] : chat["channels"].items()) {
            text += part.get<std::string>();
        }
    }
    EXPECT_EQ(text.size(), streamed.size());
    const Json raw =
        run({{"workload", "generate"}, {"model", model}, {"prompt", "Hello"}, {"raw", true}, {"max_new_tokens", 5}});
    EXPECT_LT(raw["prompt_tokens"], 6);
    EXPECT_TRUE(raw["text"].is_string());
}

TEST_F(WorkloadRun, ATemperatureTooSmallToDivideByIsGreedy) {
    const Json base = {
        {"workload", "generate"}, {"model", "synthetic:tiny-llama"}, {"tokens", {1, 2, 3}}, {"max_new_tokens", 4}};
    Json cold = base;
    cold["temperature"] = 1e-40;
    EXPECT_EQ(run(cold)["ids"], run(base)["ids"]);
}

TEST_F(WorkloadRun, LogitsWritesTheTensorAndSynthesizeWritesTheSameModel) {
    const Json written =
        run({{"workload", "synthesize"}, {"model", "synthetic:tiny-gpt-oss"}, {"seed", 9}, {"output", path("model")}});
    EXPECT_GT(written["bytes"], 100000);
    std::vector<std::vector<float>> results;
    for (const auto& [model, weights] :
         std::vector<std::pair<std::string, std::string>>{{path("model"), "quantized"},
                                                          {"synthetic:tiny-gpt-oss", "quantized"},
                                                          {"synthetic:tiny-gpt-oss", "dequantized"}}) {
        const Json out = run({{"workload", "logits"},
                              {"model", model},
                              {"weights", weights},
                              {"seed", 9},
                              {"prefill_chunk", 10},
                              {"tokens_file", test::fixture("gpt-oss-mxfp4") + "/expected.safetensors"},
                              {"output", path("logits.safetensors")}});
        EXPECT_EQ(out["shape"][0], 2);
        EXPECT_EQ(out["shape"][1], 24);
        results.push_back(test::readTensor<float>(path("logits.safetensors"), "logits"));
    }
    ASSERT_EQ(results[0].size(), results[1].size());
    EXPECT_EQ(results[0], results[1]) << "a model in memory and its files are equal";
    for (std::size_t i = 0; i < results[0].size(); ++i) {
        ASSERT_NEAR(results[1][i], results[2][i], 1e-3) << "expanded weights";
    }
}

TEST_F(WorkloadRun, Bfloat16StaysNearFloat32AndThreadsDoNotMatter) {
    const auto logits = [&](const Json& more) {
        Json experiment = {{"workload", "logits"},
                           {"model", test::fixture("qwen3-moe")},
                           {"tokens_file", test::fixture("qwen3-moe") + "/expected.safetensors"},
                           {"output", path("l.safetensors")}};
        experiment.update(more);
        run(experiment);
        return test::readTensor<float>(path("l.safetensors"), "logits");
    };
    const auto one = logits({{"threads", 1}});
    EXPECT_EQ(one, logits({{"threads", 3}}));
    double squares = 0;
    double errors = 0;
    double cacheErrors = 0;
    const auto half = logits({{"dtype", "bfloat16"}});
    const auto halfCache = logits({{"kv_dtype", "bfloat16"}});
    for (std::size_t i = 0; i < one.size(); ++i) {
        squares += one[i] * one[i];
        errors += (half[i] - one[i]) * (half[i] - one[i]);
        cacheErrors += (halfCache[i] - one[i]) * (halfCache[i] - one[i]);
    }
    EXPECT_GT(errors, 0) << "bfloat16 rounds";
    EXPECT_LT(std::sqrt(errors / squares), 0.05);
    EXPECT_GT(cacheErrors, 0);
    EXPECT_LT(std::sqrt(cacheErrors / squares), 0.02);
}

TEST_F(WorkloadRun, LoadComparesBothWaysAndReportsStages) {
    test::RecordingSink trace;
    WorkloadSinks sinks;
    sinks.trace = &trace;
    const Json out = run({{"workload", "load"}, {"model", test::fixture("gpt-oss-mxfp4")}, {"weights", "both"}}, sinks);
    ASSERT_EQ(out["variants"].size(), 2U);
    EXPECT_EQ(out["variants"][0]["weights"], "quantized");
    EXPECT_GT(out["variants"][1]["resident_bytes"], out["variants"][0]["resident_bytes"]);
    EXPECT_EQ(out["variants"][1]["bytes_read"], out["variants"][0]["bytes_read"]);
    EXPECT_GT(out["variants"][0]["gb_per_second"], 0.0);
    EXPECT_THAT(trace.lanes(), ::testing::Contains("Read"));
    EXPECT_THAT(trace.lanes(), ::testing::Contains("Expand"));
}

TEST_F(WorkloadRun, ALoadWithAPromptSaysHowCloseTheAnswersAre) {
    const Json out = run({{"workload", "load"},
                          {"model", test::fixture("gpt-oss-mxfp4")},
                          {"weights", "both"},
                          {"tokens", {4, 5, 6, 7}},
                          {"max_new_tokens", 8}});
    for (const Json& variant : out["variants"]) {
        EXPECT_EQ(variant["after_load"]["prompt_tokens"], 4);
        EXPECT_GT(variant["after_load"]["decode_tokens_per_second"], 0.0);
        EXPECT_GT(variant["after_load"]["prefill_tokens_per_second"], 0.0);
    }
    const Json& agreement = out["agreement"];
    EXPECT_EQ(agreement["tokens"], 8);
    EXPECT_EQ(agreement["tokens_equal"], 8);
    EXPECT_EQ(agreement["logit_positions"], 4);
    EXPECT_GT(agreement["logit_spread"], 0.0);
    EXPECT_LE(agreement["largest_logit_difference"].get<double>(), 2e-3 * agreement["logit_spread"].get<double>());
    EXPECT_FALSE(agreement.contains("first_difference"));

    const Json plain = run({{"workload", "load"}, {"model", test::fixture("gpt-oss-mxfp4")}, {"weights", "both"}});
    EXPECT_FALSE(plain.contains("agreement"));
    EXPECT_EQ(plain["variants"][1]["peak_bytes"], out["variants"][1]["peak_bytes"]) << "answers are not part of a load";

    const Json planned = planExperiment(Experiment::parse({{"vitrine", 1},
                                                           {"workload", "load"},
                                                           {"model", "synthetic:gpt-oss-20b"},
                                                           {"weights", "both"},
                                                           {"prompt_length", 8192}},
                                                          "experiment"),
                                        {}, {});
    EXPECT_FALSE(planned.contains("agreement")) << "Meta has no values";
    EXPECT_GT(planned["variants"][0]["after_load"]["decode_tokens_per_second_batch_16"],
              planned["variants"][0]["after_load"]["decode_tokens_per_second"]);
    EXPECT_GT(planned["variants"][0]["after_load"]["decode_tokens_per_second"],
              planned["variants"][1]["after_load"]["decode_tokens_per_second"]);
}

TEST_F(WorkloadRun, SimdIsWhatWasAsked) {
    const Json experiment = {
        {"workload", "generate"}, {"model", "synthetic:tiny-llama"}, {"tokens", {1, 2, 3}}, {"max_new_tokens", 4}};
    const Json best = run(experiment);
    for (const auto level : {kernels::SimdLevel::Scalar, kernels::SimdLevel::Avx2, kernels::SimdLevel::Avx512}) {
        Json asked = experiment;
        asked["simd"] = kernels::simdName(level);
        if (level > kernels::CpuContext(1).simd()) {
            EXPECT_THROW(run(asked), base::BadInput);
            continue;
        }
        const Json out = run(asked);
        EXPECT_EQ(out["simd"], asked["simd"]);
        EXPECT_EQ(out["ids"], best["ids"]);
    }
    EXPECT_EQ(best["simd"], kernels::simdName(kernels::CpuContext(1).simd()));
}

TEST_F(WorkloadRun, TokenizeGoesThereAndBack) {
    std::ofstream(path("rows.jsonl")) << "{\"text\": \"Hello world\"}\n\n{\"text\": \"\"}\n";
    const std::string tokenizer = base::resourcePath("models/vitrine-demo/tokenizer.json");
    const Json out = run({{"workload", "tokenize"}, {"tokenizer", tokenizer}, {"jsonl", path("rows.jsonl")}});
    ASSERT_EQ(out["rows"].size(), 2U);
    EXPECT_EQ(out["rows"][0]["decoded"], "Hello world");
    EXPECT_FALSE(out["rows"][0]["ids"].empty());
    EXPECT_TRUE(out["rows"][1]["ids"].empty());
    for (const std::string& noRows : {std::string("/dev/zero"), folder_.string()}) {
        EXPECT_THROW(run({{"workload", "tokenize"}, {"tokenizer", tokenizer}, {"jsonl", noRows}}), base::BadInput)
            << noRows;
    }
}

TEST_F(WorkloadRun, APromptThatWasNotReadWholeSaysHowFarItWasRead) {
    test::StopAt stop("Reading the prompt");
    WorkloadSinks sinks;
    sinks.progress = &stop;
    Json partial;
    EXPECT_THROW(run({{"workload", "generate"},
                      {"model", "synthetic:tiny-llama"},
                      {"prompt_length", 40},
                      {"prefill_chunk", 16},
                      {"max_new_tokens", 2}},
                     sinks, stop.token(), &partial),
                 base::Cancelled);
    EXPECT_EQ(partial["prompt_tokens"], 40);
    EXPECT_EQ(partial["prefilled_tokens"], 16);
}

TEST_F(WorkloadRun, FailuresKeepWhatIsKnown) {
    base::StopSource stop;
    WorkloadSinks sinks;
    sinks.token = [&](const StreamedToken& token) {
        if (token.index == 5) {
            stop.request_stop();
        }
    };
    Json partial;
    EXPECT_THROW(
        run({{"workload", "generate"}, {"model", "synthetic:tiny-llama"}, {"tokens", {1}}, {"max_new_tokens", 500}},
            sinks, stop.get_token(), &partial),
        base::Cancelled);
    EXPECT_EQ(partial["ids"].size(), 6U);
    EXPECT_EQ(partial["finish_reason"], "cancelled");
    EXPECT_GT(partial["peak_bytes"], 0);
    EXPECT_THROW(run({{"workload", "generate"},
                      {"model", "synthetic:tiny-llama"},
                      {"prompt_length", 4000},
                      {"prefill_chunk", 4000},
                      {"vram_budget", "6 MiB"}},
                     {}, {}, &partial),
                 base::OutOfMemory);
    EXPECT_GT(partial["peak_by_category"]["weights"], 0);
    EXPECT_EQ(partial["finish_reason"], "out_of_memory");
}

TEST_F(WorkloadRun, SmallBudgetsAreEnoughForSmallModels) {
    const Json base = {{"model", "synthetic:tiny-gpt-oss"}, {"backend", "cpu"}};
    Json generate = base;
    generate.update(
        {{"workload", "generate"}, {"prompt_length", 5}, {"max_new_tokens", 50}, {"vram_budget", "512KiB"}});
    const Json answer = run(generate);
    EXPECT_EQ(answer["ids"].size(), 50U);
    EXPECT_LE(answer["peak_reserved_bytes"], 512U << 10);
    Json batch = base;
    batch.update({{"workload", "batch"},
                  {"trace", "uniform"},
                  {"requests", 10},
                  {"token_budget", 256},
                  {"vram_budget", "8MiB"}});
    const Json served = run(batch);
    EXPECT_EQ(served["finished_requests"], 10);
    EXPECT_LE(served["peak_reserved_bytes"], 8U << 20);
}

TEST_F(WorkloadRun, MistakesAreNamed) {
    const auto messageOf = [](const Json& experiment) -> std::string {
        try {
            run(experiment);
        } catch (const base::Error& error) {
            return error.message();
        }
        return "";
    };
    const Json base = {{"workload", "generate"}, {"model", "synthetic:tiny-llama"}};
    const auto with = [&](const Json& more) {
        Json out = base;
        out.update(more);
        return messageOf(out);
    };
    EXPECT_THAT(with({{"tokens", {1, 512}}}), HasSubstr("512 is outside"));
    EXPECT_THAT(with({{"prompt", "hi"}}), HasSubstr("tokenizer.json"));
    EXPECT_THAT(with({{"tokens", {1}}, {"backend", "cuda"}}), HasSubstr("backend"));
    EXPECT_THAT(with({{"tokens", {1}}, {"stop", {"x"}}}), HasSubstr("stop"));
    EXPECT_THAT(with({{"prompt_length", 5000}}), HasSubstr("context"));
    EXPECT_THAT(with({{"tokens", {1}}, {"top_p", 0}}), HasSubstr("top_p"));
    EXPECT_THAT(with({{"tokens", {1}}, {"top_p", 1e-60}}), HasSubstr("top_p"));
    std::ofstream(path("chat.json")) << R"([{"role": "user", "content": "x"}, {"content": "x"}])";
    EXPECT_THAT(messageOf({{"workload", "generate"},
                           {"model", base::resourcePath("models/vitrine-demo")},
                           {"chat", path("chat.json")}}),
                HasSubstr("chat.json: [1].role: is missing"));
    const std::vector<TensorSpec> entries = {{"input_ids", kernels::DType::I32, {1, 2}}};
    const std::array<std::int32_t, 2> ids = {1, 512};
    const auto writer = SafetensorsWriter::create(path("ids.safetensors"), entries);
    writer->write(ids.data(), sizeof ids);
    writer->finish();
    const std::string outside = "ids.safetensors: input_ids: id 512 is outside";
    EXPECT_THAT(with({{"tokens_file", path("ids.safetensors")}}), HasSubstr(outside));
    EXPECT_THAT(messageOf({{"workload", "logits"},
                           {"model", "synthetic:tiny-llama"},
                           {"tokens_file", path("ids.safetensors")},
                           {"output", path("logits.safetensors")}}),
                HasSubstr(outside));
    const auto inside = SafetensorsWriter::create(path("two.safetensors"), entries);
    const std::array<std::int32_t, 2> two = {1, 2};
    inside->write(two.data(), sizeof two);
    inside->finish();
    const auto logitsWithin = [&](const char* context) {
        return messageOf({{"workload", "logits"},
                          {"model", "synthetic:tiny-llama"},
                          {"set", {{"max_position_embeddings", context}}},
                          {"tokens_file", path("two.safetensors")},
                          {"output", path("logits.safetensors")}});
    };
    EXPECT_THAT(logitsWithin("1"), HasSubstr("two.safetensors: input_ids: rows of 2 tokens are longer than the model's "
                                             "context of 1 (max_position_embeddings)"));
    EXPECT_EQ(logitsWithin("2"), "");
    EXPECT_THAT(with({{"tokens_file", test::fixture("llama") + "/model.safetensors"}}), HasSubstr("input_ids"));
}

} // namespace
} // namespace vitrine::engine
