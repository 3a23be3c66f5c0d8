// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// LoRA adapters (Hu and others 2021) of a model's linears. A linear with an adapter gives
//   y = x W^T + bias + scale (x A^T) B^T,   scale = alpha / rank, or alpha / sqrt(rank) with rank-stabilised scaling.
// Stacks of experts have a pair A, B for each expert.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/training/parameter_choice.h"
#include "engine/training/trained_state.h"
#include "kernels/ops/linear/adapter_view.h"

namespace vitrine::engine {

/// The numbers of one adapter.
struct AdapterOptions {
    std::int64_t rank = 16;
    double alpha = 32;
    bool rankStabilised = false; ///< rsLoRA: alpha / sqrt(rank)

    float scale() const;
};

/// What an adapter adds to one linear.
struct AdapterPart {
    std::string parameter; ///< name of the linear's weight, Parameter::name
    kernels::AdapterView view;
};

/// The adapter of a model. While it lives, the model computes with it. Belongs to the context's thread; the model
/// outlives it.
class Adapter {
public:
    /// For the linears of `choice`. A is uniform in +-1 / sqrt(in) from `seed`, as PEFT begins, and B is 0. Values
    /// have the type that the model computes in. Throws BadInput when `choice` holds no linear, OutOfMemory.
    Adapter(Model& model, const ParameterChoice& choice, const AdapterOptions& options, std::uint64_t seed);
    ~Adapter();
    Adapter(const Adapter&) = delete; // the model has views of it
    Adapter& operator=(const Adapter&) = delete;

    const AdapterOptions& options() const { return options_; }
    const std::vector<AdapterPart>& parts() const { return parts_; }
    /// A and B of all linears, "NAME.lora_A" and "NAME.lora_B".
    std::vector<TrainedTensor> tensors() const;

private:
    void fill(std::uint64_t seed);

    Model& model_;
    AdapterOptions options_;
    std::unique_ptr<kernels::Arena> arena_;
    kernels::Tensor values_; ///< all A and B, each at a multiple of kTrainedPadding
    std::vector<AdapterPart> parts_;
};

} // namespace vitrine::engine
