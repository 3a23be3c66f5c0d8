// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The list of a model's parameters against the tensors of its checkpoint.

#include <gtest/gtest.h>
#include <map>
#include <regex>

#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

struct LoadedParameters {
    explicit LoadedParameters(const std::string& name, bool dequantize = false)
        : context(test::makeContext(kernels::Backend::Cpu)), source(openModel(name)),
          model(*context, source, {dequantize, kernels::DType::F32, 7}, nullptr) {}

    const Parameter& parameter(const std::string& name) const {
        for (const Parameter& item : model.parameters()) {
            if (item.name == name) {
                return item;
            }
        }
        throw std::runtime_error("no parameter " + name);
    }

    std::unique_ptr<kernels::Context> context;
    ModelSource source;
    Model model;
};

/// The parameter that holds a tensor of the checkpoint.
std::string parameterOf(const TensorSpec& spec) {
    if (!spec.weight.empty()) {
        return spec.weight;
    }
    std::string name =
        std::regex_replace(spec.name, std::regex(R"(experts\.\d+\.(gate|up)_proj\.weight)"), "experts.gate_up_proj");
    return std::regex_replace(name, std::regex(R"(experts\.\d+\.down_proj\.weight)"), "experts.down_proj");
}

class ParameterList : public ::testing::TestWithParam<std::string> {};

TEST_P(ParameterList, HasEveryTensorOfTheCheckpointOnce) {
    for (const bool dequantize : {false, true}) {
        const LoadedParameters loaded(GetParam(), dequantize);
        std::map<std::string, std::uint64_t> bytes; ///< by parameter
        for (const TensorSpec& spec : expectedTensors(loaded.source.config)) {
            const auto* location =
                loaded.source.synthetic() ? nullptr : findModelTensor(*loaded.source.checkpoint, spec.name);
            bytes[parameterOf(spec)] += location == nullptr ? bytesOf(spec) : location->entry->bytes;
        }
        std::uint64_t sum = 0;
        for (const Parameter& parameter : loaded.model.parameters()) {
            SCOPED_TRACE(parameter.name);
            const auto found = bytes.find(parameter.name);
            ASSERT_NE(found, bytes.end()) << "not of the checkpoint, or there twice";
            if (!dequantize) {
                EXPECT_EQ(parameter.view.bytes(), found->second);
            }
            sum += parameter.view.bytes();
            bytes.erase(found);
        }
        EXPECT_TRUE(bytes.empty()) << bytes.begin()->first << " is in no parameter";
        EXPECT_EQ(sum, loaded.model.loadReport().residentBytes);
    }
}

/// Parameters that every device holds whole.
bool isWhole(ParameterRole role) {
    switch (role) {
    case ParameterRole::Norm:
    case ParameterRole::Router:
    case ParameterRole::RouterCorrection:
    case ParameterRole::QueryDown:
    case ParameterRole::KeyDown:
        return true;
    default:
        return false;
    }
}

TEST_P(ParameterList, ShardAxesDivide) {
    const LoadedParameters loaded(GetParam());
    const ModelConfig& config = loaded.source.config;
    const LatentConfig& latent = config.latent;
    for (const Parameter& parameter : loaded.model.parameters()) {
        SCOPED_TRACE(parameter.name);
        EXPECT_EQ(roleOf(parameter.name), parameter.role);
        EXPECT_EQ(isBias(parameter.name), parameter.bias);
        const bool whole = isWhole(parameter.role);
        const bool sumBias =
            parameter.bias && (parameter.role == ParameterRole::AttentionOut || parameter.role == ParameterRole::Down);
        const bool expertBias = parameter.bias && parameter.role == ParameterRole::ExpertDown;
        const ShardState state =
            whole ? ShardState::Mirrored : (sumBias || expertBias ? ShardState::Partial : ShardState::Divided);
        ASSERT_EQ(parameter.shard.state, state);
        if (whole || sumBias) {
            ASSERT_TRUE(parameter.shard.axes.empty());
            continue;
        }
        ASSERT_LT(parameter.shard.axis(), parameter.view.shape.rank());
        const std::int64_t size = parameter.view.shape[parameter.shard.axis()];
        for (const ShardAxis& axis : parameter.shard.axes) {
            EXPECT_EQ(parameter.view.shape[axis.axis] % (axis.unitSize * axis.blocks), 0);
        }
        switch (parameter.role) {
        case ParameterRole::Query:
            EXPECT_EQ(size, latent.used() ? config.heads * latent.queryDim() : config.queryWidth());
            break;
        case ParameterRole::AttentionOut:
            EXPECT_EQ(size, latent.used() ? config.heads * latent.valueDim : config.queryWidth());
            break;
        case ParameterRole::LatentUp:
            EXPECT_EQ(size, config.heads * latent.upDim());
            break;
        case ParameterRole::SharedGate:
        case ParameterRole::SharedUp:
        case ParameterRole::SharedDown:
            EXPECT_EQ(size, config.sharedIntermediate);
            break;
        case ParameterRole::Key:
        case ParameterRole::Value:
            EXPECT_EQ(size, config.kvWidth());
            break;
        case ParameterRole::Sinks:
            EXPECT_EQ(size, config.heads);
            break;
        case ParameterRole::Gate:
        case ParameterRole::Up:
        case ParameterRole::Down:
            EXPECT_EQ(size, config.intermediate);
            break;
        case ParameterRole::ExpertGateUp:
        case ParameterRole::ExpertDown:
            EXPECT_EQ(size, config.experts);
            break;
        default:
            EXPECT_EQ(size, config.vocab);
            break;
        }
        EXPECT_EQ(size % 2, 0) << "two devices cannot share it";
    }
}

TEST_P(ParameterList, ViewsWhatTheLayersRead) {
    const LoadedParameters loaded(GetParam());
    const std::vector<LayerConfig>& layers = loaded.source.config.layers;
    ASSERT_EQ(loaded.model.layers().size(), layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const DecoderLayer& layer = loaded.model.layers()[i];
        const std::string prefix = fmt::format("model.layers.{}.", i);
        const char* name = loaded.source.config.latent.queryRank > 0 ? "q_b_proj" : "q_proj";
        const Parameter& query = loaded.parameter(fmt::format("{}self_attn.{}.weight", prefix, name));
        EXPECT_EQ(query.layer, static_cast<std::int32_t>(i));
        EXPECT_EQ(query.view.data.data, layer.q.weight.data.data);
        const std::string down = layer.config.moe ? "mlp.experts.down_proj" : "mlp.down_proj.weight";
        EXPECT_EQ(loaded.parameter(prefix + down).view.data.data, layer.down.weight.data.data);
        EXPECT_EQ(layer.config.window, layers[i].window);
        EXPECT_FALSE(layer.attentionMask.empty());
    }
}

TEST(Parameters, PackedWeightsAreNotTrainable) {
    const std::string name = "model.layers.0.mlp.experts.gate_up_proj";
    const LoadedParameters packed(test::fixture("gpt-oss-mxfp4"));
    EXPECT_FALSE(packed.parameter(name).trainable);
    EXPECT_EQ(packed.parameter(name).view.format, kernels::WeightFormat::Mxfp4);
    EXPECT_TRUE(packed.parameter(name + "_bias").trainable);
    EXPECT_TRUE(packed.parameter(name + "_bias").bias);
    const LoadedParameters expanded(test::fixture("gpt-oss-mxfp4"), true);
    EXPECT_TRUE(expanded.parameter(name).trainable);
    EXPECT_EQ(expanded.parameter(name).view.shape, packed.parameter(name).view.shape);
}

std::vector<std::string> parameterModels() {
    std::vector<std::string> out;
    for (const std::string& name : test::modelFixtures()) {
        out.push_back(test::fixture(name));
    }
    for (const char* family : {"gpt-oss", "llama", "qwen3-moe", "gemma2"}) {
        out.push_back(std::string("synthetic:tiny-") + family);
    }
    return out;
}

std::string parameterModelName(const ::testing::TestParamInfo<std::string>& info) {
    std::string name = info.param.substr(info.param.find_last_of("/:") + 1);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Every, ParameterList, ::testing::ValuesIn(parameterModels()), parameterModelName);

} // namespace
} // namespace vitrine::engine
