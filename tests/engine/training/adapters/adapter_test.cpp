// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Adapters beside the embedding, against PEFT. Those of linears stand in gradient_pass_test.cpp.

#include "engine/training/adapters/adapter.h"

#include <cmath>
#include <filesystem>

#include "engine/training/adapters/adapter_saving.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/training/training_test_support.h"

namespace vitrine::engine {
namespace {

using test::fixture;
using test::PassRunner;
using test::TrainedModel;

class EmbeddingAdapter : public testing::TestWithParam<const char*> {
protected:
    static AdapterConfig config() {
        AdapterConfig out;
        out.rank = 4;
        out.alpha = 8;
        return out;
    }
    static std::vector<AdapterTarget> targets(const Model& model) {
        const ParameterChoice choice("embedding+head+re:q_proj", "train");
        return adapterTargets(model.parameters(), choice, config());
    }
    /// The adapter with A[i] = 0.05 cos(0.7 i + 1) and B[i] = 0.05 cos(0.7 i + 2), in the order of PEFT's file.
    void writeWaves(const Model& model, const Adapter& adapter) const {
        const auto wave = [](std::vector<float>& values, double phase) {
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] = static_cast<float>(0.05 * std::cos(0.7 * static_cast<double>(i) + phase));
            }
        };
        std::vector<AdapterPartValues> parts = adapter.values();
        std::vector<std::string> names;
        for (AdapterPartValues& part : parts) {
            wave(part.a, 1);
            wave(part.b, 2);
            names.push_back(part.parameter);
        }
        AdapterConfig written = config();
        setTargets(written, model.parameters(), names);
        writeAdapter(folder_.path(), written, parts);
    }

    test::TempFolder folder_;
};

/// tests/fixtures/gradients/embedding-adapter-NAME.json: of PEFT's loss over threeDocuments(), and for each tensor the
/// norm of its gradient g and the sum of g[i] cos(0.37 i + 1).
TEST_P(EmbeddingAdapter, LossAndGradientsAreThoseOfPeft) {
    const std::string name = GetParam();
    TrainedModel trained(name);
    Adapter adapter(*trained.model, targets(*trained.model));
    writeWaves(*trained.model, adapter);
    const AdapterFile file = AdapterFile::open(folder_.path());
    ASSERT_EQ(file.targets(trained.model->parameters()).size(), adapter.parts().size());
    adapter.read(file);
    TrainedState state(*trained.context, adapter.tensors(), {});
    PassRunner runner(trained, state);
    const auto expected =
        nlohmann::json::parse(std::ifstream(fixture("gradients/embedding-adapter-" + name + ".json")));
    const double loss = expected.at("loss").get<double>();
    EXPECT_NEAR(runner.gradients(test::threeDocuments()), loss, 1e-4 * std::max(1.0, loss / 10));
    const std::string path = folder_.path() + "/gradients.safetensors";
    writeAdapterTensors(path,
                        adapter.values([&](const kernels::TensorView& view) { return state.gradients().of(view); }));
    for (const auto& [tensor, numbers] : expected.at("gradients").items()) {
        test::expectGradient(test::readTensor<float>(path, tensor), numbers, 1e-4, tensor);
    }
}

TEST_P(EmbeddingAdapter, BeginsWithTheModelAsItWas) {
    TrainedModel trained(GetParam());
    TrainedState state(*trained.context, test::allTensors(*trained.model), {});
    PassRunner runner(trained, state);
    const double before = runner.loss(test::threeDocuments());
    Adapter adapter(*trained.model, targets(*trained.model));
    adapter.initialise(3);
    EXPECT_EQ(runner.loss(test::threeDocuments()), before);
}

INSTANTIATE_TEST_SUITE_P(, EmbeddingAdapter, testing::Values("llama", "gemma2"));

} // namespace
} // namespace vitrine::engine
