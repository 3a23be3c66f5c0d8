// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Adapters that change the weights of their base model, against PEFT.

#include "engine/training/adapters/adapter_weights.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/training/adapters/adapter.h"
#include "engine/training/adapters/adapter_saving.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

using test::fixture;
using test::TrainedModel;

struct WeightsCase {
    const char* folder;
    const char* base;
    /// Rounding: what DoRA makes gets the type of the base, and PEFT keeps it in float32.
    float tolerance;

    friend std::ostream& operator<<(std::ostream& out, const WeightsCase& value) { return out << value.folder; }
};

/// The base model with an adapter, attached.
struct AdaptedModel {
    explicit AdaptedModel(const std::string& folder, const std::string& base,
                          kernels::Backend backend = kernels::Backend::Cpu, base::TraceSink* sink = nullptr,
                          const kernels::DeviceTraits* traits = nullptr)
        : file(AdapterFile::open(folder)), context(test::makeContext(backend, sink, traits)) {
        ModelOptions options;
        options.computeDType = kernels::DType::F32;
        model = std::make_unique<Model>(*context, withAdapterWeights(openModel(base), file), options, nullptr);
        const std::vector<AdapterTarget> targets = file.targets(model->parameters());
        if (!targets.empty()) {
            adapter = std::make_unique<Adapter>(*model, targets);
            adapter->read(file);
        }
    }

    AdapterFile file;
    std::unique_ptr<kernels::Context> context;
    std::unique_ptr<Model> model;
    std::unique_ptr<Adapter> adapter;
};

class AdapterWeights : public testing::TestWithParam<WeightsCase> {
protected:
    static std::string folder() { return fixture("adapters/") + GetParam().folder; }
};

TEST_P(AdapterWeights, LogitsAreThoseOfPeft) {
    AdaptedModel adapted(folder(), fixture(GetParam().base));
    const std::string path = folder() + "/expected.safetensors";
    const auto expected = test::readTensor<float>(path, "logits");
    const std::vector<float> logits = test::stepLogits(*adapted.model, test::readIds(path, "input_ids"));
    ASSERT_EQ(logits.size(), expected.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
        ASSERT_NEAR(logits[i], expected[i], GetParam().tolerance) << i;
    }
}

TEST_P(AdapterWeights, PlansAllocateWhatLoadsDo) {
    const kernels::DeviceTraits traits = test::testTraits();
    test::RecordingSink real;
    test::RecordingSink planned;
    const AdaptedModel loaded(folder(), fixture(GetParam().base), kernels::Backend::Cpu, &real, &traits);
    const AdaptedModel counted(folder(), fixture(GetParam().base), kernels::Backend::Meta, &planned, &traits);
    EXPECT_FALSE(real.lines().empty());
    EXPECT_EQ(real.lines(), planned.lines());
}

TEST_P(AdapterWeights, SavingAgainKeepsWhatIsStoredWhole) {
    AdaptedModel adapted(folder(), fixture(GetParam().base));
    if (adapted.adapter == nullptr) {
        GTEST_SKIP() << "adapters of DoRA are not trained, and so not saved";
    }
    const test::TempFolder again;
    writeAdapter(again.path(), adapted.file.config(), adapted.adapter->values(), &adapted.file);
    const AdapterFile file = AdapterFile::open(again.path());
    EXPECT_EQ(file.tensors().tensors().size(), adapted.file.tensors().tensors().size());
    AdaptedModel other(again.path(), fixture(GetParam().base));
    const std::vector<std::int32_t> tokens = {7, 3, 150};
    EXPECT_EQ(test::stepLogits(*other.model, tokens), test::stepLogits(*adapted.model, tokens));
}

INSTANTIATE_TEST_SUITE_P(, AdapterWeights,
                         testing::Values(WeightsCase{"embedding-of-tied", "qwen3-tied", 1e-4F},
                                         WeightsCase{"saved-head-of-tied", "qwen3-tied", 1e-4F},
                                         WeightsCase{"dora-and-rows", "llama", 0.02F}));

/// The message for an adapter of q_proj with one more tensor.
std::string weightsError(const std::string& tensor, const std::vector<std::int64_t>& shape,
                         const std::string& keys = "") {
    const test::TempFolder folder;
    std::ofstream(folder.path() + "/adapter_config.json") << R"({"r": 2, "target_modules": ["q_proj"])" << keys << "}";
    TensorSpec spec;
    spec.name = tensor;
    spec.dtype = kernels::DType::F32;
    spec.shape = shape;
    const auto writer = SafetensorsWriter::create(folder.path() + "/adapter_model.safetensors", {spec});
    const std::vector<std::byte> zeros(bytesOf(spec));
    writer->write(zeros.data(), zeros.size());
    writer->finish();
    try {
        withAdapterWeights(openModel(fixture("llama")), AdapterFile::open(folder.path()));
    } catch (const base::Error& error) {
        return error.message();
    }
    return "no error";
}

TEST(AdapterWeightsErrors, NameTheTensorAndWhatToDo) {
    const auto expectError = [](const std::string& error, const std::string& part) {
        EXPECT_NE(error.find(part), std::string::npos) << error;
    };
    expectError(weightsError("base_model.model.lm_head.weight", {512, 64}), "no error");
    expectError(weightsError("base_model.model.lm_head.weight", {514, 64}),
                "the embedding has 512 rows and the head 514");
    expectError(weightsError("base_model.model.lm_head.weight", {512, 65}), "must have the shape (512, 64)");
    expectError(weightsError("base_model.model.model.layers.0.self_attn.q_proj.lora_C.weight", {2, 2}),
                "the model has no parameter");
    expectError(weightsError("base_model.model.lm_head.weight", {512, 64}, R"(, "modules_to_save": ["embed_tokens"])"),
                "embed_tokens.weight: missing, though modules_to_save");
    expectError(weightsError("base_model.model.lm_head.weight", {512, 64}, R"(, "trainable_token_indices": [1])"),
                "trainable_tokens_delta: missing");
}

} // namespace
} // namespace vitrine::engine
