// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What tests of training share.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/training/adapters/adapter.h"
#include "engine/training/parameters/host_floats.h"
#include "engine/training/parameters/trained_state.h"
#include "engine/training/passes/cross_entropy_objective.h"
#include "engine/training/passes/gradient_pass.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine::test {

/// A model, of a fixture or another, on a context of its own.
struct TrainedModel {
    explicit TrainedModel(const std::string& name, kernels::DType compute = kernels::DType::F32,
                          kernels::Backend backend = kernels::Backend::Cpu)
        : TrainedModel(openModel(fixture(name)), compute, backend) {}
    explicit TrainedModel(const ModelSource& source, kernels::DType compute = kernels::DType::F32,
                          kernels::Backend backend = kernels::Backend::Cpu, base::TraceSink* sink = nullptr,
                          const kernels::DeviceTraits* traits = nullptr)
        : context(makeContext(backend, sink, traits)) {
        ModelOptions options;
        options.computeDType = compute;
        options.widen = compute == kernels::DType::F32;
        model = std::make_unique<Model>(*context, source, options, nullptr);
    }

    std::unique_ptr<kernels::Context> context;
    std::unique_ptr<Model> model;
};

/// Each row of input_ids as a document.
inline TrainingBatch batchOf(const std::string& path, std::int64_t length) {
    const std::vector<std::int32_t> ids = readIds(path, "input_ids");
    TrainingBatch batch;
    for (std::size_t begin = 0; begin < ids.size(); begin += static_cast<std::size_t>(length)) {
        batch.addDocument({ids.begin() + static_cast<std::ptrdiff_t>(begin),
                           ids.begin() + static_cast<std::ptrdiff_t>(begin) + length});
    }
    return batch;
}

/// Every parameter that can be trained.
inline std::vector<TrainedTensor> allTensors(const Model& model) {
    std::vector<TrainedTensor> out;
    for (const Parameter& parameter : model.parameters()) {
        if (parameter.trainable) {
            out.push_back({parameter.name, parameter.view.data});
        }
    }
    return out;
}

/// Mean loss, and the gradients of one pass in a state that was zeroed.
class PassRunner {
public:
    PassRunner(TrainedModel& trained, TrainedState& state, const MemoryTechniques& techniques = {},
               const Regularisation& regularisation = {})
        : context_(*trained.context), state_(state), pass_(*trained.model, techniques, regularisation),
          objective_(context_), norm_(context_.memory().general(), base::MemoryCategory::Other, "norm",
                                      kernels::DType::F32, kernels::Shape{1}) {}

    double gradients(const TrainingBatch& batch) {
        state_.zeroGradients();
        objective_.beginStep(std::span(&batch, 1));
        aux_ = pass_.run(batch, state_.gradients(), {0, 1, 7}, objective_);
        return objective_.loss();
    }
    /// The load-balancing loss of the last gradients().
    double aux() const { return aux_; }
    double loss(const TrainingBatch& batch) {
        objective_.beginStep(std::span(&batch, 1));
        pass_.evaluate(batch, 0, objective_);
        return objective_.loss();
    }
    GradientPass& pass() { return pass_; }
    /// The norm of the gradients.
    float update(double rate, std::int64_t step) {
        state_.update(rate, step, norm_.view());
        return downloadFloats(context_, norm_.view()).front();
    }

private:
    kernels::Context& context_;
    TrainedState& state_;
    GradientPass pass_;
    CrossEntropyObjective objective_;
    kernels::Tensor norm_;
    double aux_ = 0;
};

/// The largest difference over the largest absolute value of `expected`.
inline double relativeError(const std::vector<float>& actual, const std::vector<float>& expected) {
    EXPECT_EQ(actual.size(), expected.size());
    double difference = 0;
    double largest = 1e-30;
    for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
        difference = std::max(difference, std::abs(static_cast<double>(actual[i]) - expected[i]));
        largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    }
    return difference / largest;
}

inline std::vector<float> gradientOf(kernels::Context& context, const TrainedState& state,
                                     const TrainedTensor& tensor) {
    return downloadFloats(context, state.gradients().of(tensor.value));
}

inline std::vector<double> numbersOf(const std::string& path, const char* field) {
    return nlohmann::json::parse(std::ifstream(path)).at(field).get<std::vector<double>>();
}

inline TrainingBatch threeDocuments() {
    TrainingBatch batch;
    batch.addDocument({5, 9, 200, 31, 77, 5, 12, 140, 8, 8, 17, 250, 41});
    batch.addDocument({7, 3});
    batch.addDocument({19, 111, 112, 9, 54, 45, 5, 66, 2, 90, 91, 92, 93, 94, 95, 96, 97, 4, 3, 2, 1, 14});
    return batch;
}

/// The gradients of all tensors, one after the other.
inline std::vector<float> gradientsOf(kernels::Context& context, const TrainedState& state) {
    std::vector<float> out;
    for (const TrainedTensor& tensor : state.tensors()) {
        const std::vector<float> part = gradientOf(context, state, tensor);
        out.insert(out.end(), part.begin(), part.end());
    }
    return out;
}

/// `numbers` of a gradient g: its norm, and the sum of g[i] cos(0.37 i + 1).
inline void expectGradient(std::span<const float> gradient, const nlohmann::json& numbers, double tolerance,
                           const std::string& name) {
    double squares = 0;
    double waves = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
        const auto value = static_cast<double>(gradient[i]);
        squares += value * value;
        waves += value * std::cos(0.37 * static_cast<double>(i) + 1);
    }
    const double norm = numbers[0].get<double>();
    EXPECT_NEAR(std::sqrt(squares), norm, tolerance * norm + 1e-7) << name;
    EXPECT_NEAR(waves, numbers[1].get<double>(), tolerance * norm + 1e-7) << name;
}

/// tests/fixtures/gradients/NAME.json: of transformers' loss over threeDocuments(), and for each parameter the norm of
/// its gradient g and the sum of g[i] cos(0.37 i + 1).
inline void expectGradientsOfTransformers(TrainedModel& trained, const std::string& name, double tolerance) {
    const auto expected = nlohmann::json::parse(std::ifstream(fixture("gradients/" + name + ".json")));
    TrainedState state(*trained.context, allTensors(*trained.model), {});
    PassRunner runner(trained, state);
    const double loss = expected.at("loss").get<double>();
    EXPECT_NEAR(runner.gradients(threeDocuments()), loss, tolerance * std::max(1.0, loss / 10));
    EXPECT_EQ(state.tensors().size(), expected.at("gradients").size());
    for (const TrainedTensor& tensor : state.tensors()) {
        expectGradient(gradientOf(*trained.context, state, tensor), expected.at("gradients").at(tensor.name), tolerance,
                       tensor.name);
    }
}

} // namespace vitrine::engine::test
