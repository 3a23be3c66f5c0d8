// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Random models of each family, converted to each format: they load, and compute what dense models with the values of
// their packed weights compute.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "engine/quant/conversion_target.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/convert/model_converter.h"
#include "engine/workload/convert/weight_reader.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/result_fields.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/engine/model/packed_linears.h"
#include "tests/engine/workload/common/stop_at.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using kernels::DType;
using kernels::WeightFormat;
using testing::HasSubstr;
using Json = nlohmann::json;

Json runOf(Json experiment, const WorkloadSinks& sinks = {}, base::StopToken stop = {}) {
    experiment["vitrine"] = 1;
    return runExperiment(Experiment::parse(experiment, "experiment"), sinks, std::move(stop));
}

std::vector<float> logitsOf(const std::string& folder) {
    const auto context = test::makeContext(kernels::Backend::Cpu);
    Model model(*context, openModel(folder), ModelOptions{}, nullptr);
    const std::vector<std::int32_t> tokens{5, 9, 200, 31, 77, 5, 12, 140, 8, 8, 17};
    StepBatch batch;
    batch.sequences = {{0, tokens}};
    batch.logits = StepLogits::All;
    std::vector<float> logits(static_cast<std::size_t>(model.config().vocab) * tokens.size());
    batch.logitsOut = logits.data();
    model.step(batch);
    return logits;
}

float farthest(const std::vector<float>& a, const std::vector<float>& b) {
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::abs(a[i] - b[i]));
    }
    return largest;
}

class Convert : public testing::Test {
protected:
    std::string path(const std::string& name) const { return folder_.file(name); }

    /// A random model of a family, as files.
    std::string randomModel(const std::string& family) const {
        const std::string folder = path(family);
        if (!fs::exists(folder)) {
            Json set = {{"num_hidden_layers", "2"}};
            if (family == "qwen3-moe") {
                set["moe_intermediate_size"] = "64";
            } else if (family != "gpt-oss") {
                set["intermediate_size"] = "128";
            }
            runOf(
                {{"workload", "synthesize"}, {"model", "synthetic:tiny-" + family}, {"set", set}, {"output", folder}});
        }
        return folder;
    }

    ConvertedModel convert(const std::string& from, const std::string& to, const std::string& output,
                           std::optional<std::int64_t> group = std::nullopt, std::vector<std::string> ignored = {},
                           std::uint64_t shardBytes = kShardBytes) {
        return convertModel(openModel(from), {conversionTarget(to, group, std::nullopt), std::move(ignored)}, output,
                            pool_, nullptr, {}, shardBytes);
    }

    /// A dense float32 model with the values of all weights of a model.
    std::string denseTwin(const std::string& model) {
        const ModelSource source = openModel(model);
        WeightReader reader(source, pool_);
        ModelConfig dense = source.config;
        dense.packings.clear();
        test::StoredTensors tensors;
        std::map<std::string, PackableWeight> weights;
        for (const PackableWeight& weight : packableWeights(dense)) {
            weights[weight.name] = weight;
        }
        for (const TensorSpec& spec : expectedTensors(dense)) {
            if (reader.storesAsIs(spec.name)) {
                const Checkpoint::Location& place = reader.location(spec.name);
                test::StoredBytes& bytes = tensors[spec.name];
                bytes = {place.entry->dtype, spec.shape, std::vector<std::uint8_t>(place.entry->bytes)};
                place.file->read(*place.entry, 0, bytes.bytes.data(), place.entry->bytes);
                continue;
            }
            const PackableWeight& weight = weights.at(spec.name);
            std::vector<float> values;
            for (std::int64_t i = 0; i < (weight.shape.size() == 3 ? weight.shape[0] : 1); ++i) {
                std::vector<float> matrix = reader.matrix(weight, i);
                if (weight.shape.size() == 3) { // stored as x @ W
                    const std::vector<float> rows = matrix;
                    const auto out = static_cast<std::size_t>(weight.shape[1]);
                    const auto in = static_cast<std::size_t>(weight.shape[2]);
                    for (std::size_t at = 0; at < rows.size(); ++at) {
                        matrix[at % in * out + at / in] = rows[at];
                    }
                }
                values.insert(values.end(), matrix.begin(), matrix.end());
            }
            tensors[spec.name] = test::storedAs(DType::F32, spec.shape, values);
        }
        ModelSource plain = source;
        Json config = Json::parse(source.configText);
        config.erase("quantization_config");
        plain.configText = config.dump();
        return test::writeStored(plain, tensors, nullptr, model + "-dense");
    }

    test::TempFolder folder_;
    base::ThreadPool pool_{2};
};

struct Target {
    const char* to;
    std::optional<std::int64_t> group;
};

TEST_F(Convert, EachFamilyInEachFormatComputesWhatItsValuesSay) {
    for (const char* family : {"llama", "mistral", "qwen2", "qwen3", "qwen3-moe", "gemma2", "gpt-oss"}) {
        const std::string model = randomModel(family);
        for (const Target& target : {Target{"int4", 32}, Target{"int8", {}}, Target{"gptq", 32}, Target{"awq", 32},
                                     Target{"nf4", {}}, Target{"fp8", -1}, Target{"mxfp4", {}}, Target{"bf16", {}}}) {
            const std::string to = target.to;
            const bool stacks = std::string_view(family) == "gpt-oss";
            if (to != "bf16" && (to == "mxfp4") != stacks) {
                continue; // AFormatThatTheFamilyHasNoLayoutForIsRefused
            }
            SCOPED_TRACE(fmt::format("{} to {}", family, to));
            const std::string output = path(fmt::format("{}-{}", family, to));
            const ConvertedModel converted = convert(model, to, output, target.group);
            const ModelConfig config = openModel(output).config;
            EXPECT_EQ(config.packings.empty(), to == "bf16");
            for (const ConvertedWeight& weight : converted.weights) {
                EXPECT_EQ(weight.after != WeightFormat::Dense, config.packing(weight.name) != nullptr) << weight.name;
                const bool packedBefore = stacks && weight.part == ModelPart::Experts;
                EXPECT_EQ(weight.before != WeightFormat::Dense, packedBefore) << weight.name;
                if (weight.after != WeightFormat::Dense) {
                    EXPECT_GT(*weight.error.cosine(), 0.98) << weight.name;
                    EXPECT_LT(weight.bytesAfter, weight.bytesBefore * (packedBefore ? 1.01 : 0.6)) << weight.name;
                } else {
                    EXPECT_EQ(weight.error.squaredError, 0) << weight.name;
                }
            }
            EXPECT_LT(farthest(logitsOf(output), logitsOf(denseTwin(output))), 1e-4F);
        }
    }
}

TEST_F(Convert, PackedModelsAreUnpackedFirst) {
    const std::string model = randomModel("gpt-oss");
    convert(model, "mxfp4", path("packed"));
    convert(path("packed"), "bf16", path("unpacked"));
    // Every value of MXFP4 is one of BF16; products of both add in other orders.
    EXPECT_LT(farthest(logitsOf(path("packed")), logitsOf(path("unpacked"))), 1e-5F);
    const ConvertedModel again = convert(path("unpacked"), "mxfp4", path("again"));
    EXPECT_EQ(test::readBytes(path("packed") + "/model.safetensors"),
              test::readBytes(path("again") + "/model.safetensors"));
    for (const ConvertedWeight& weight : again.weights) {
        EXPECT_EQ(weight.error.squaredError, 0) << weight.name;
    }
    const std::string llama = randomModel("llama");
    convert(llama, "awq", path("awq"), 32);
    const ConvertedModel change = convert(path("awq"), "int8", path("int8"));
    EXPECT_EQ(change.weights.front().before, WeightFormat::Int4);
    EXPECT_EQ(change.weights.front().after, WeightFormat::Int8);
    EXPECT_LT(farthest(logitsOf(path("int8")), logitsOf(denseTwin(path("int8")))), 1e-4F);
}

TEST_F(Convert, StackedExpertsArePackedOneByOne) {
    // transformers saves the experts of newer models in stacks.
    const ModelSource source = openModel(randomModel("qwen3-moe"));
    WeightReader reader(source, pool_);
    test::StoredTensors tensors;
    std::map<std::string, std::vector<float>> stacks;
    ModelConfig fused = source.config;
    fused.fusedExperts = true;
    for (const TensorSpec& spec : expectedTensors(fused)) {
        std::vector<float> values;
        if (spec.name.ends_with("_proj") && spec.part == ModelPart::Experts) {
            const std::string prefix = spec.name.substr(0, spec.name.find_last_of('.') + 1);
            for (std::int64_t expert = 0; expert < source.config.experts; ++expert) {
                for (const char* half : {"gate_proj", "up_proj", "down_proj"}) {
                    if ((half[0] == 'd') == spec.name.ends_with("down_proj")) {
                        const std::string name = fmt::format("{}{}.{}.weight", prefix, expert, half);
                        const PackableWeight weight{name, reader.location(name).entry->shape, ModelPart::Experts};
                        const std::vector<float> matrix = reader.matrix(weight, 0);
                        values.insert(values.end(), matrix.begin(), matrix.end());
                    }
                }
            }
        } else {
            const PackableWeight weight{spec.name, {1, kernels::Shape(spec.shape).count()}, spec.part};
            values = reader.matrix(weight, 0);
        }
        tensors[spec.name] = test::storedAs(DType::F32, spec.shape, values);
    }
    const std::string stacked = test::writeStored(source, tensors, nullptr, path("stacked"));
    ASSERT_TRUE(openModel(stacked).config.fusedExperts);
    convert(stacked, "int4", path("from-stacks"), 32, {"re:.*layers.0.mlp.experts.1.*"});
    const ModelConfig config = openModel(path("from-stacks")).config;
    EXPECT_EQ(config.packing("model.layers.0.mlp.experts.1.up_proj.weight"), nullptr);
    EXPECT_NE(config.packing("model.layers.0.mlp.experts.2.up_proj.weight"), nullptr);
}

TEST_F(Convert, TheSameModelGivesTheSameBytesInAnyNumberOfFiles) {
    const std::string model = randomModel("qwen3-moe");
    const ConvertedModel once = convert(model, "gptq", path("once"), 32);
    convert(model, "gptq", path("twice"), 32);
    for (const std::string& file : once.files) {
        EXPECT_EQ(test::readBytes(path("once/" + file)), test::readBytes(path("twice/" + file))) << file;
    }
    const ConvertedModel shards = convert(model, "gptq", path("shards"), 32, {}, 100'000);
    EXPECT_THAT(shards.files, testing::Contains(std::string("model.safetensors.index.json")));
    EXPECT_GT(shards.files.size(), 5U);
    EXPECT_EQ(logitsOf(path("shards")), logitsOf(path("once")));
}

TEST_F(Convert, ReportsEachWeightAndEachRole) {
    const std::string model = randomModel("qwen3-moe");
    std::ofstream(model + "/tokenizer_config.json") << "{}";
    const Json out = runOf({{"workload", "convert"},
                            {"model", model},
                            {"to", "int4"},
                            {"group_size", 32},
                            {"symmetric", false},
                            {"ignore", {"re:.*k_proj"}},
                            {"output", path("out")}});
    EXPECT_TRUE(fs::exists(path("out/tokenizer_config.json")));
    for (const auto& [key, value] : out.items()) {
        EXPECT_NE(findResult(key), nullptr) << key << " is not declared";
    }
    std::size_t packed = 0;
    for (const Json& row : out["tensors"]) {
        const bool kept = row["name"].get<std::string>().ends_with("k_proj.weight") || row["role"] == "router";
        EXPECT_EQ(row["format"], kept ? "dense" : "int4") << row;
        EXPECT_EQ(row["mse"].get<double>() == 0, kept) << row;
        EXPECT_EQ(row["snr_db"].is_null(), kept) << row;
        packed += kept ? 0 : 1;
    }
    EXPECT_EQ(packed, 2U * (3 + 8 * 3));
    EXPECT_EQ(out["roles"].size(), 3U);
    for (const Json& role : out["roles"]) {
        if (role["name"] == "experts") {
            EXPECT_EQ(role["elements"], 2 * 8 * 3 * 64 * 64);
            EXPECT_EQ(role["bytes_before"], 2 * 8 * 3 * 64 * 64 * 2);
            EXPECT_EQ(role["bytes_after"], 2 * 8 * 3 * (64 * 64 / 2 + 64 * 2 * 2 + 64 * 2 / 2));
            EXPECT_GT(role["snr_db"], 15);
        }
    }
}

TEST_F(Convert, AFormatThatTheFamilyHasNoLayoutForIsRefused) {
    const std::string model = randomModel("llama");
    EXPECT_THROW(convert(model, "mxfp4", path("out")), base::Unsupported);
    EXPECT_THROW(convert(randomModel("gpt-oss"), "int4", path("out"), 32), base::Unsupported);
    EXPECT_THROW(convert(model, "int4", path("out"), 128), base::BadInput) << "64 inputs are no group of 128";
    EXPECT_THROW(convert(model, "int4", path("out"), 32, {"re:.*"}), base::Unsupported);
    EXPECT_FALSE(fs::exists(path("out")));
    for (const Json& wrong : {Json{{"to", "bf16"}, {"group_size", 32}}, Json{{"to", "nf4"}, {"symmetric", false}},
                              Json{{"to", "int4"}, {"group_size", 12}}, Json{{"to", "fp8"}, {"group_size", 64}}}) {
        Json spec = {{"workload", "convert"}, {"model", model}, {"output", path("out")}};
        spec.update(wrong);
        EXPECT_THROW(runOf(spec), base::BadInput) << wrong;
    }
}

TEST_F(Convert, NamesThatMeanNoModuleAreNamed) {
    const std::string model = randomModel("llama");
    Json spec = {{"workload", "convert"}, {"model", model},   {"output", path("out")},
                 {"to", "int4"},          {"group_size", 32}, {"ignore", {"re:("}}};
    EXPECT_THROW(runOf(spec), base::BadInput);
    EXPECT_FALSE(fs::exists(path("out")));
    spec["ignore"] = {"self_attn", "lm_head", "no_such_module"};
    std::string warnings;
    base::setLogSink([&](base::LogLevel, std::string_view text) { warnings += std::string(text) + "\n"; });
    runOf(spec);
    base::setLogSink({});
    EXPECT_EQ(warnings, "--ignore no_such_module matches no tensor of " + model + "\n");
}

TEST_F(Convert, CalibratedWeightsChangeTheModelLess) {
    for (const char* family : {"llama", "qwen3-moe"}) {
        SCOPED_TRACE(family);
        const std::string model = randomModel(family);
        std::ofstream texts(path("texts.jsonl"));
        for (int row = 0; row < 24; ++row) {
            Json tokens = {5, 9, 200, 31, 77, 5, 12, 140, 8, 8, 17};
            for (int i = 0; i < 20; ++i) {
                tokens.push_back((row * 37 + i * i * 11) % 512);
            }
            texts << Json{{"tokens", tokens}} << "\n";
        }
        texts.close();
        const auto distance = [&](const Json& more, const char* name) {
            Json spec = {{"workload", "convert"}, {"model", model},     {"to", "int4"},
                         {"group_size", 32},      {"symmetric", false}, {"output", path(std::string(family) + name)}};
            spec.update(more);
            runOf(spec);
            const std::vector<float> before = logitsOf(model);
            const std::vector<float> after = logitsOf(path(std::string(family) + name));
            double sum = 0;
            for (std::size_t i = 0; i < before.size(); ++i) {
                sum += std::pow(double{before[i]} - after[i], 2);
            }
            return sum;
        };
        const double nearest = distance(Json::object(), "nearest");
        EXPECT_LT(distance({{"calibrate", path("texts.jsonl")}}, "calibrated"), nearest * 0.9);
    }
    EXPECT_THROW(runOf({{"workload", "convert"},
                        {"model", randomModel("llama")},
                        {"to", "fp8"},
                        {"calibrate", path("texts.jsonl")},
                        {"output", path("out")}}),
                 base::BadInput);
}

TEST_F(Convert, AnOrderThatNamesNoGroupIsRefusedWhereverItIsRead) {
    const std::string model = path("ordered");
    convert(randomModel("llama"), "gptq", model, 32);
    Json config = Json::parse(test::readBytes(model + "/config.json"));
    config["quantization_config"]["desc_act"] = true;
    std::ofstream(model + "/config.json") << config.dump();
    EXPECT_NO_THROW(logitsOf(model));
    const TensorEntry entry = *openModel(model).checkpoint->find("model.layers.1.mlp.up_proj.g_idx")->entry;
    std::fstream file(model + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(entry.offset + 4));
    file.write("\xff\xff\xff\x7f", 4);
    file.close();
    EXPECT_THROW(logitsOf(model), base::BadInput);
    EXPECT_THROW(convert(model, "int8", path("out")), base::BadInput);
}

TEST_F(Convert, WhatIsStoppedOrFailsLeavesNothing) {
    const std::string model = randomModel("llama");
    test::StopAt stop("layers.1.mlp");
    EXPECT_THROW(convertModel(openModel(model), {conversionTarget("int4", 32, true), {}}, path("out"), pool_, &stop,
                              stop.token(), 50'000),
                 base::Cancelled);
    EXPECT_FALSE(fs::exists(path("out")));
    // A value that is no number, in the last weight.
    const ModelSource source = openModel(model);
    const Checkpoint::Location& place = *source.checkpoint->find("model.layers.1.mlp.down_proj.weight");
    std::fstream file(place.file->path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(place.entry->offset));
    file.write("\xff\xff", 2);
    file.close();
    try {
        convert(model, "int4", path("out"), 32);
        FAIL();
    } catch (const base::BadInput& error) {
        EXPECT_THAT(error.message(), HasSubstr("model.layers.1.mlp.down_proj.weight: a value is not finite"));
    }
    EXPECT_FALSE(fs::exists(path("out")));
    fs::create_directories(path("taken"));
    std::ofstream(path("taken/config.json")) << "{}";
    EXPECT_THROW(convert(model, "bf16", path("taken")), base::BadInput);
    EXPECT_EQ(test::readBytes(path("taken/config.json")), "{}");
}

} // namespace
} // namespace vitrine::engine
