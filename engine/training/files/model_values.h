// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The values that the weights of a model have with its adapters in them, matrix by matrix in host memory.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/model/op_runner.h"

namespace vitrine::engine {

/// One matrix of a stack; a matrix as it is.
kernels::TensorView matrixOf(const kernels::TensorView& tensor, std::int64_t index);

/// Belongs to the context's thread. The model outlives it.
class ModelValues {
public:
    explicit ModelValues(Model& model);

    /// Throws Internal for a name that the model does not have.
    const Parameter& parameter(const std::string& name) const;
    /// The weight that the model computes with. It has the adapter in it after quantization-aware training.
    const kernels::WeightView& weight(const std::string& name) const;
    /// Whether an adapter is beside it.
    bool adapted(const std::string& name) const { return !adapterOf(name).empty(); }

    /// Of a vector or a matrix (out, in), with its adapter; of a stack that of one expert.
    std::vector<float> values(const std::string& name, std::int64_t expert = 0) const;

private:
    kernels::AdapterView adapterOf(const std::string& name) const;
    std::vector<float> dense(const kernels::WeightView& view, std::int64_t expert) const;
    std::vector<float> expanded(const kernels::WeightView& view, std::int64_t expert) const;
    void addDelta(const kernels::AdapterView& adapter, const Parameter& parameter, std::int64_t expert,
                  std::vector<float>& values) const;

    Model& model_;
    OpRunner runner_;
    std::map<std::string, const Parameter*> parameters_;
};

} // namespace vitrine::engine
