// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// LoRA adapters (Hu and others 2021) of a model's linears. A linear with an adapter gives
//   y = x W^T + bias + scale (x A^T) B^T,   scale = alpha / rank, or alpha / sqrt(rank) with rank-stabilised scaling.
// Stacks of experts have a pair A, B for each expert. The embedding counts as the linear of a one at the token's place:
// its A has a column for each token.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/training/adapters/adapter_saving.h"
#include "engine/training/parameters/parameter_choice.h"
#include "engine/training/parameters/trained_state.h"
#include "kernels/ops/linear/adapter_view.h"

namespace vitrine::engine {

/// What an adapter adds to one linear.
struct AdapterPart {
    std::string parameter;     ///< name of the linear's weight, Parameter::name
    kernels::AdapterView view; ///< of the embedding: `a` is (vocab, rank), see Decoder::embeddingAdapter
    bool embedding = false;
    kernels::WeightView merged; ///< the weight with this in it; empty: the adapter is beside the weight
};

/// The linears of a choice and the embedding if it is in it, with the rank and the scale of a config. Throws BadInput
/// when there are none.
std::vector<AdapterTarget> adapterTargets(std::span<const Parameter> parameters, const ParameterChoice& choice,
                                          const AdapterConfig& config);

/// The adapter of a model. While it lives, the model computes with it. Belongs to the context's thread; the model
/// outlives it.
class Adapter {
public:
    /// All values are 0. They have the type that the model computes in. Throws OutOfMemory.
    Adapter(Model& model, const std::vector<AdapterTarget>& targets);
    ~Adapter();
    Adapter(const Adapter&) = delete; // the model has views of it
    Adapter& operator=(const Adapter&) = delete;

    /// A is uniform in +-1 / sqrt(in), as PEFT begins; B stays 0. Of the embedding, A stays 0 and B is normal.
    void initialise(std::uint64_t seed);
    /// Reads the values of the file whose targets it was made with. Throws BadInput.
    void read(const AdapterFile& file);
    /// What `of` gives for A and B of each part: the values themselves, or tensors of their shapes such as gradients.
    std::vector<AdapterPartValues>
    values(const std::function<kernels::TensorView(const kernels::TensorView&)>& of) const;
    std::vector<AdapterPartValues> values() const;

    /// Adds it to the model's linears, or takes it away for a while.
    void attach(bool attached) const;

    /// From the next attach(true) on the linear of a part has this weight, which has the part in it; empty: its own.
    /// The caller owns its memory and keeps its values up to date.
    void setMerged(std::size_t part, const kernels::WeightView& merged) { parts_[part].merged = merged; }

    const std::vector<AdapterPart>& parts() const { return parts_; }
    /// A and B of all linears, "NAME.lora_A" and "NAME.lora_B".
    std::vector<TrainedTensor> tensors() const;

private:
    Model& model_;
    std::vector<AdapterTarget> targets_;
    std::unique_ptr<kernels::Arena> arena_;
    kernels::Tensor values_; ///< all A and B, each at a multiple of kTrainedPadding
    std::vector<AdapterPart> parts_;
};

/// While it lives, the model computes without the adapter.
class AdapterPause {
public:
    explicit AdapterPause(const Adapter& adapter) : adapter_(adapter) { adapter.attach(false); }
    ~AdapterPause() { adapter_.attach(true); }
    AdapterPause(const AdapterPause&) = delete; // one begin, one end
    AdapterPause& operator=(const AdapterPause&) = delete;

private:
    const Adapter& adapter_;
};

} // namespace vitrine::engine
