// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapters/adapter_files.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/training/adapters/adapter_saving.h"
#include "engine/training/parameters/parameter_choice.h"
#include "kernels/core/floats.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine::test {
namespace {

/// The parameters of a model without its weights.
struct NamedModel {
    explicit NamedModel(const std::string& name) : context(makeContext(kernels::Backend::Meta)) {
        model = std::make_unique<Model>(*context, openModel(fixture(name)), ModelOptions{}, nullptr);
    }
    const Parameter& parameter(const std::string& name) const {
        return *std::find_if(model->parameters().begin(), model->parameters().end(),
                             [&](const Parameter& entry) { return entry.name == name; });
    }

    std::unique_ptr<kernels::Context> context;
    std::unique_ptr<Model> model;
};

std::string adapterFolder(const std::string& name) {
    const std::string folder = testing::TempDir() + "adapter_files_" + name;
    std::filesystem::remove_all(folder);
    return folder;
}

/// Parts with counted values, so that each value tells its place.
std::vector<AdapterPartValues> countedParts(const NamedModel& model, const std::string& choice, std::int64_t rank) {
    const ParameterChoice chosen(choice, "train");
    std::vector<AdapterPartValues> parts;
    for (const Parameter& parameter : model.model->parameters()) {
        if (!isLinear(parameter) || !chosen.contains(parameter)) {
            continue;
        }
        const kernels::WeightView& view = parameter.view;
        AdapterPartValues part;
        part.parameter = parameter.name;
        part.aShape = kernels::Shape{rank, view.inFeatures()};
        part.bShape = kernels::Shape{view.outFeatures(), rank};
        if (view.shape.rank() == 3) {
            part.aShape = kernels::Shape{view.experts(), rank, view.inFeatures()};
            part.bShape = kernels::Shape{view.experts(), view.outFeatures(), rank};
        }
        part.a.resize(static_cast<std::size_t>(part.aShape.count()));
        part.b.resize(static_cast<std::size_t>(part.bShape.count()));
        std::iota(part.a.begin(), part.a.end(), 1.0F);
        std::iota(part.b.begin(), part.b.end(), 0.5F);
        parts.push_back(std::move(part));
    }
    return parts;
}

std::vector<std::string> namesOf(const std::vector<AdapterPartValues>& parts) {
    std::vector<std::string> names;
    for (const AdapterPartValues& part : parts) {
        names.push_back(part.parameter);
    }
    return names;
}

void writeTensors(const std::string& folder, const std::vector<std::pair<std::string, kernels::Shape>>& tensors,
                  kernels::DType type = kernels::DType::F32) {
    std::vector<TensorSpec> specs;
    for (const auto& [name, shape] : tensors) {
        TensorSpec spec;
        spec.name = name;
        spec.dtype = type;
        spec.shape.assign(shape.dims().begin(), shape.dims().end());
        specs.push_back(spec);
    }
    std::filesystem::create_directories(folder);
    const auto writer = SafetensorsWriter::create(folder + "/adapter_model.safetensors", specs);
    for (const TensorSpec& spec : specs) {
        const std::vector<std::byte> zeros(bytesOf(spec));
        writer->write(zeros.data(), zeros.size());
    }
    writer->finish();
}

void writeAdapterConfig(const std::string& folder, const std::string& text) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/adapter_config.json") << text;
}

std::string targetsError(const std::string& folder, const NamedModel& model) {
    try {
        AdapterFile::open(folder).targets(model.model->parameters());
    } catch (const base::Error& error) {
        return error.message();
    }
    return "no error";
}

TEST(AdapterFiles, ReadsAnAdapterOfPeft) {
    const NamedModel model("llama");
    const auto file = AdapterFile::open(fixture("llama-lora/adapter-end"));
    const std::vector<AdapterTarget> targets = file.targets(model.model->parameters());
    ASSERT_EQ(targets.size(), 7 * model.model->layers().size());
    const std::string path = fixture("llama-lora/adapter-end/adapter_model.safetensors");
    for (const AdapterTarget& target : targets) {
        EXPECT_EQ(target.rank, 4);
        EXPECT_EQ(target.scale, 2);
        std::vector<float> a;
        std::vector<float> b;
        file.read(target, a, b);
        const std::string name =
            "base_model.model." + target.parameter.substr(0, target.parameter.rfind('.')) + ".lora_";
        EXPECT_EQ(a, readTensor<float>(path, name + "A.weight"));
        EXPECT_EQ(b, readTensor<float>(path, name + "B.weight"));
    }
}

/// scale B A of one expert at (row, column).
double changeAt(const AdapterTarget& target, const std::vector<float>& a, const std::vector<float>& b,
                const kernels::WeightView& view, std::int64_t expert, std::int64_t row, std::int64_t column) {
    double sum = 0;
    for (std::int64_t i = 0; i < target.rank; ++i) {
        const std::int64_t bAt = (expert * view.outFeatures() + row) * target.rank + i;
        const std::int64_t aAt = (expert * target.rank + i) * view.inFeatures() + column;
        sum += static_cast<double>(b[static_cast<std::size_t>(bAt)]) * a[static_cast<std::size_t>(aAt)];
    }
    return target.scale * sum;
}

/// deltas.safetensors holds what PEFT adds to the weights when it merges the adapter, (experts, out, in).
TEST(AdapterFiles, AddsWhatPeftAdds) {
    const NamedModel model("gpt-oss-bf16");
    const auto file = AdapterFile::open(fixture("gpt-oss-lora"));
    const std::vector<AdapterTarget> targets = file.targets(model.model->parameters());
    ASSERT_EQ(targets.size(), 4U);
    for (const AdapterTarget& target : targets) {
        std::vector<float> a;
        std::vector<float> b;
        file.read(target, a, b);
        const std::vector<float> wanted =
            readTensor<float>(fixture("gpt-oss-lora/deltas.safetensors"), target.parameter);
        const kernels::WeightView& view = model.parameter(target.parameter).view;
        std::size_t at = 0;
        double worst = 0;
        for (std::int64_t expert = 0; expert < view.experts(); ++expert) {
            for (std::int64_t row = 0; row < view.outFeatures(); ++row) {
                for (std::int64_t column = 0; column < view.inFeatures(); ++column) {
                    worst = std::max(worst, std::abs(changeAt(target, a, b, view, expert, row, column) - wanted[at++]));
                }
            }
        }
        EXPECT_EQ(at, wanted.size());
        EXPECT_LT(worst, 1e-6) << target.parameter;
    }
}

TEST(AdapterFiles, WhatIsWrittenIsReadAgain) {
    for (const auto& [name, choice] :
         std::vector<std::pair<std::string, std::string>>{{"llama", "all-linear"},
                                                          {"gpt-oss-bf16", "attention+experts+router"},
                                                          {"gpt-oss-mxfp4", "experts"},
                                                          {"gpt-oss-bf16", "re:down_proj"},
                                                          {"gpt-oss-bf16", "re:gate_up_proj"},
                                                          {"qwen3-moe", "re:layers\\.1\\."},
                                                          {"qwen3-moe", "all-linear+router+head"}}) {
        const NamedModel model(name);
        const std::vector<AdapterPartValues> parts = countedParts(model, choice, 3);
        AdapterConfig config;
        config.rank = 3;
        config.alpha = 6;
        setTargets(config, model.model->parameters(), namesOf(parts));
        const std::string folder = adapterFolder("again") + "/deep";
        writeAdapter(folder, config, parts);
        const auto file = AdapterFile::open(folder);
        const std::vector<AdapterTarget> targets = file.targets(model.model->parameters());
        ASSERT_EQ(targets.size(), parts.size()) << name << " " << choice;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            std::vector<float> a;
            std::vector<float> b;
            file.read(targets[i], a, b);
            EXPECT_EQ(targets[i].parameter, parts[i].parameter);
            EXPECT_EQ(targets[i].rank, 3);
            EXPECT_EQ(targets[i].scale, 2);
            EXPECT_EQ(a, parts[i].a);
            EXPECT_EQ(b, parts[i].b);
        }
    }
}

TEST(AdapterFiles, ExpertsHavePeftsNamesAndLayout) {
    const NamedModel model("gpt-oss-bf16");
    const std::string module = "model.layers.0.mlp.experts";
    const std::vector<AdapterPartValues> parts = countedParts(model, "experts", 2);
    AdapterConfig config;
    config.rank = 2;
    setTargets(config, model.model->parameters(), namesOf(parts));
    EXPECT_EQ(config.targetParameters, (std::vector<std::string>{"mlp.experts.down_proj", "mlp.experts.gate_up_proj"}));
    const std::string folder = adapterFolder("experts");
    writeAdapter(folder, config, parts);
    const auto file = SafetensorsFile::open(folder + "/adapter_model.safetensors");
    const kernels::WeightView& gateUp = model.parameter(module + ".gate_up_proj").view;
    const kernels::WeightView& down = model.parameter(module + ".down_proj").view;
    const std::int64_t experts = down.experts();
    using Dims = std::vector<std::int64_t>;
    const std::string prefix = "base_model.model." + module;
    EXPECT_EQ(file->find(prefix + ".base_layer.lora_A.weight")->shape, (Dims{experts * 2, gateUp.inFeatures()}));
    EXPECT_EQ(file->find(prefix + ".base_layer.lora_B.weight")->shape, (Dims{gateUp.outFeatures(), experts * 2}));
    EXPECT_EQ(file->find(prefix + ".lora_A.weight")->shape, (Dims{experts * 2, down.inFeatures()}));
    const auto b = readTensor<float>(folder + "/adapter_model.safetensors", prefix + ".lora_B.weight");
    const auto part = std::find_if(parts.begin(), parts.end(),
                                   [&](const auto& entry) { return entry.parameter == module + ".down_proj"; });
    const std::int64_t out = down.outFeatures();
    for (std::int64_t expert = 0; expert < experts; ++expert) {
        for (std::int64_t row = 0; row < out * 2; ++row) {
            EXPECT_EQ(b[static_cast<std::size_t>(row * experts + expert)],
                      part->b[static_cast<std::size_t>(expert * out * 2 + row)]);
        }
    }
}

TEST(AdapterFiles, TargetsAreShortWhereAllLayersHaveThem) {
    const NamedModel model("qwen3-moe");
    const auto all = model.model->parameters();
    AdapterConfig config;
    setTargets(config, all, namesOf(countedParts(model, "attention+router+head", 1)));
    EXPECT_EQ(config.targetModules, (std::vector<std::string>{"k_proj", "lm_head", "o_proj", "q_proj", "v_proj"}));
    EXPECT_EQ(config.targetParameters, std::vector<std::string>{"mlp.gate.weight"});
    setTargets(config, all, {"model.layers.1.self_attn.q_proj.weight", "model.layers.2.mlp.experts.down_proj"});
    EXPECT_EQ(config.targetModules, std::vector<std::string>{"model.layers.1.self_attn.q_proj"});
    EXPECT_EQ(config.targetParameters, std::vector<std::string>{"model.layers.2.mlp.experts.down_proj"});
}

TEST(AdapterFiles, AllLinearTakesRoutersWhereTheFileHasThem) {
    const NamedModel model("qwen3-moe");
    for (const std::string choice : {"attention", "attention+router"}) {
        const std::vector<AdapterPartValues> parts = countedParts(model, choice, 2);
        AdapterConfig config;
        config.rank = 2;
        config.targetRegex = "all-linear";
        const std::string folder = adapterFolder("linear");
        writeAdapter(folder, config, parts);
        EXPECT_EQ(AdapterFile::open(folder).targets(model.model->parameters()).size(), parts.size()) << choice;
    }
}

TEST(AdapterFiles, RanksAndAlphasOfPatternsCount) {
    const NamedModel model("llama");
    const std::string folder = adapterFolder("patterns");
    const std::string name = "base_model.model.model.layers.0.self_attn.q_proj.lora_";
    const kernels::WeightView& view = model.parameter("model.layers.0.self_attn.q_proj.weight").view;
    writeTensors(folder,
                 {{name + "A.weight", kernels::Shape{9, view.inFeatures()}},
                  {name + "B.weight", kernels::Shape{view.outFeatures(), 9}}},
                 kernels::DType::BF16);
    writeAdapterConfig(folder, R"({"r": 2, "target_modules": "model.layers.0.self_attn.q_proj", "use_rslora": true,
                               "rank_pattern": {"q_proj": 9}, "alpha_pattern": {"layers.0.self_attn.q_proj": 12}})");
    const std::vector<AdapterTarget> targets = AdapterFile::open(folder).targets(model.model->parameters());
    ASSERT_EQ(targets.size(), 1U);
    EXPECT_EQ(targets[0].rank, 9);
    EXPECT_EQ(targets[0].scale, 4);
}

TEST(AdapterFiles, NarrowFloatsAreWidened) {
    const NamedModel model("llama");
    const kernels::WeightView& view = model.parameter("model.layers.0.self_attn.q_proj.weight").view;
    const std::string name = "base_model.model.model.layers.0.self_attn.q_proj.lora_";
    for (const kernels::DType type : {kernels::DType::BF16, kernels::DType::F16}) {
        const std::string folder = adapterFolder("narrow");
        std::filesystem::create_directories(folder);
        std::vector<TensorSpec> specs(2);
        specs[0].name = name + "A.weight";
        specs[0].shape = {1, view.inFeatures()};
        specs[1].name = name + "B.weight";
        specs[1].shape = {view.outFeatures(), 1};
        const auto half = type == kernels::DType::F16 ? kernels::floatToF16 : kernels::floatToBf16;
        for (TensorSpec& spec : specs) {
            spec.dtype = type;
        }
        const auto writer = SafetensorsWriter::create(folder + "/adapter_model.safetensors", specs);
        for (const TensorSpec& spec : specs) {
            const std::vector<std::uint16_t> values(bytesOf(spec) / 2, half(-1.5F));
            writer->write(values.data(), bytesOf(spec));
        }
        writer->finish();
        writeAdapterConfig(folder, R"({"r": 1, "target_modules": ["model.layers.0.self_attn.q_proj"]})");
        const auto file = AdapterFile::open(folder);
        std::vector<float> a;
        std::vector<float> b;
        file.read(file.targets(model.model->parameters()).at(0), a, b);
        EXPECT_EQ(a, std::vector<float>(static_cast<std::size_t>(view.inFeatures()), -1.5F));
        EXPECT_EQ(b, std::vector<float>(static_cast<std::size_t>(view.outFeatures()), -1.5F));
    }
}

TEST(AdapterFiles, WhatDoesNotFitIsNamed) {
    const NamedModel model("llama");
    const kernels::WeightView& view = model.parameter("model.layers.0.self_attn.q_proj.weight").view;
    const std::string module = "base_model.model.model.layers.0.self_attn.q_proj";
    const std::pair<std::string, kernels::Shape> a = {module + ".lora_A.weight", kernels::Shape{2, view.inFeatures()}};
    const std::pair<std::string, kernels::Shape> b = {module + ".lora_B.weight", kernels::Shape{view.outFeatures(), 2}};
    const std::string one = R"({"r": 2, "target_modules": ["model.layers.0.self_attn.q_proj"]})";
    struct Case {
        std::string config;
        std::vector<std::pair<std::string, kernels::Shape>> tensors;
        std::string message;
    };
    const std::vector<Case> table = {
        {one, {a, b}, "no error"},
        {one, {a}, ".lora_B.weight: missing"},
        {one, {b}, ".lora_A.weight: missing"},
        {R"({"r": 3, "target_modules": ["model.layers.0.self_attn.q_proj"]})", {a, b}, "must have the shape (3, "},
        {one, {a, {b.first, kernels::Shape{view.outFeatures() + 1, 2}}}, "lora_B.weight: must have the shape"},
        {R"({"r": 2, "target_modules": ["q_proj"]})", {a, b}, "layers.1.self_attn.q_proj.lora_A.weight: missing"},
        {R"({"r": 2, "target_modules": ["nothing"]})", {a, b}, "the model has no linear"},
        {R"({"r": 2, "target_modules": ["nothing"]})", {}, "names no linear of the model"},
        {one, {a, b, {module + ".lora_magnitude_vector", kernels::Shape{4}}}, "adapter_config.json has no use_dora"},
        {R"({"r": 2, "target_modules": ["model.layers.0.self_attn.q_proj"], "use_dora": true})",
         {a, b},
         "lora_magnitude_vector: missing, though adapter_config.json has use_dora"},
        {one,
         {a, b, {"base_model.model.model.embed_tokens.lora_embedding_A", kernels::Shape{4}}},
         "no linear \"model.embed_tokens\""},
        {one,
         {a, b, {"base_model.model.model.layers.0.self_attn.q_proj.lora_B.bias", kernels::Shape{4}}},
         "biases of B"},
        {one,
         {a, b, {"base_model.model.model.layers.9.mlp.up_proj.lora_A.weight", kernels::Shape{4}}},
         "the model has no linear \"model.layers.9.mlp.up_proj\""},
    };
    for (const Case& entry : table) {
        const std::string folder = adapterFolder("bad");
        writeTensors(folder, entry.tensors);
        writeAdapterConfig(folder, entry.config);
        EXPECT_NE(targetsError(folder, model).find(entry.message), std::string::npos)
            << entry.message << " is not in: " << targetsError(folder, model);
    }
}

TEST(AdapterFiles, FoldersWithoutAnAdapterAreNamed) {
    const std::string folder = adapterFolder("none");
    EXPECT_THROW(AdapterFile::open(folder), base::BadInput);
    writeAdapterConfig(folder, R"({"target_modules": ["q_proj"]})");
    EXPECT_THROW(AdapterFile::open(folder), base::BadInput);
    writeTensors(folder, {});
    EXPECT_NO_THROW(AdapterFile::open(folder));
    writeAdapterConfig(folder, R"({"target_modules": ["q_proj"]})");
    std::ofstream(folder + "/adapter_model.safetensors") << "no safetensors";
    EXPECT_THROW(AdapterFile::open(folder), base::BadInput);
}

TEST(AdapterFiles, WritingChecksShapesAndTargets) {
    const NamedModel model("llama");
    std::vector<AdapterPartValues> parts = countedParts(model, "attention", 2);
    AdapterConfig config;
    config.rank = 2;
    EXPECT_THROW(writeAdapter(adapterFolder("write"), config, parts), base::Internal);
    setTargets(config, model.model->parameters(), namesOf(parts));
    config.rank = 3;
    EXPECT_THROW(writeAdapter(adapterFolder("write"), config, parts), base::Internal);
    config.rank = 2;
    parts[0].a.pop_back();
    EXPECT_THROW(writeAdapter(adapterFolder("write"), config, parts), base::Internal);
    EXPECT_THROW(writeAdapter("/dev/null/x", config, {}), base::BadInput);
}

} // namespace
} // namespace vitrine::engine::test
