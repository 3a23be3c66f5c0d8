// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What linears of a model are given while it reads texts, for engine/quant/compensated_rounding.h. The model computes
// layer by layer with the weights that it has, so each layer sees what it would see without rounding.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/training/passes/batch_inputs.h"

namespace vitrine::engine {

/// Holds the activations of all tokens between two layers, and those inside one layer. Belongs to the thread of the
/// model's context, which runs on the host. The model outlives it.
class Calibration {
public:
    /// Throws BadInput when a document has a token outside the vocabulary.
    Calibration(Model& model, const std::vector<std::vector<std::int32_t>>& documents);
    ~Calibration() = default;
    Calibration(const Calibration&) = delete; // batches hold the address of the runner
    Calibration& operator=(const Calibration&) = delete;

    /// The factor for the weight `name` of layer `layer`. Null when it had no input: an expert that no token chose, or
    /// no linear of a layer. REQUIRES layers in their order. Throws Cancelled.
    const std::vector<float>* factorOf(std::int32_t layer, const std::string& name);

private:
    /// Rows (rows, in) that one or several linears are given.
    struct Rows {
        std::vector<float> values;
        std::int64_t in = 0;
    };

    void runLayer(std::int32_t layer);
    void addAttention(const DecoderLayer& layer, const LayerTokens& tokens, kernels::Tensor& x);
    void addMlp(const DecoderLayer& layer, kernels::Tensor& x);
    void add(const std::string& inputs, const kernels::TensorView& rows);
    kernels::Tensor activated(const kernels::TensorView& gateUp, kernels::GateLayout layout) const;

    Model& model_;
    OpRunner runner_;
    std::vector<std::unique_ptr<BatchInputs>> batches_;
    std::vector<kernels::Tensor> hidden_;           ///< of each batch: the input of the layer after `layer_`
    std::int32_t layer_ = -1;                       ///< whose rows are there
    std::map<std::string, Rows, std::less<>> rows_; ///< by what is given: "q", "o", "gate", "down", "gate.7"
    std::string factorInputs_;                      ///< of the factor that is there
    std::vector<float> factor_;
};

} // namespace vitrine::engine
