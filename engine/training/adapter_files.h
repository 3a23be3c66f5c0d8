// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// LoRA adapters in PEFT's layout: a folder with adapter_config.json and adapter_model.safetensors.
//
// A linear "model.layers.0.self_attn.q_proj.weight" has the tensors
//   base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight (rank, in) and ...lora_B.weight (out, rank).
// PEFT wraps a module once for each of its parameters that target_parameters names, in the order of the module. So the
// last one has "...mlp.experts.lora_A.weight", and the one before it "...mlp.experts.base_layer.lora_A.weight". A stack
// of experts has A (experts * rank, in), and B (out, rank * experts) in which the expert is the faster index.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/model/parameters.h"
#include "engine/training/adapter_config.h"
#include "kernels/core/tensor.h"

namespace vitrine::engine {

/// The name of a tensor in an adapter's file.
struct AdapterTensorName {
    enum class Part : std::uint8_t { A, B, EmbeddingA, EmbeddingB, Magnitude };

    std::string module; ///< "model.layers.0.mlp.experts"
    int inner = 0;      ///< how many wrappers of the same module lie around this one
    Part part = Part::A;

    /// Nothing for a name that is none of an adapter's.
    static std::optional<AdapterTensorName> parse(std::string_view name);
    std::string text() const;
};

/// What an adapter's file has for one linear of the model, or for the embedding.
struct AdapterTarget {
    std::string parameter; ///< Parameter::name
    std::int64_t rank = 0;
    float scale = 1;
    bool embedding = false;
};

/// An adapter on disk. Immutable; safe to use from several threads.
class AdapterFile {
public:
    /// Throws BadInput for a folder without an adapter or a broken file, Unsupported for adapters that this program
    /// cannot apply (DoRA, modules that are stored whole).
    static AdapterFile open(const std::string& folder);

    const AdapterConfig& config() const { return config_; }

    /// The linears that the adapter changes, in the order of `parameters`, which are all of a model. Throws BadInput
    /// "FILE: TENSOR: what" when a tensor is missing, has a shape that does not fit the model, or belongs to no linear.
    std::vector<AdapterTarget> targets(std::span<const Parameter> parameters) const;
    /// A (rank, in) or (experts, rank, in), and B (out, rank) or (experts, out, rank) of a target. Of the embedding
    /// (rank, vocab) and (hidden, rank). Throws BadInput.
    void read(const AdapterTarget& target, std::vector<float>& a, std::vector<float>& b) const;

private:
    AdapterFile(AdapterConfig config, std::string configPath, std::shared_ptr<const SafetensorsFile> file);
    /// The tensors of one target.
    struct Pair {
        const TensorEntry* a = nullptr;
        const TensorEntry* b = nullptr;
    };
    Pair findPair(const Parameter& parameter, std::int64_t rank) const;
    const TensorEntry* findTensor(const AdapterTensorName& name, std::int64_t rows, std::int64_t columns) const;
    AdapterTensorName nameOf(const std::string& parameter) const;
    void requireUsed(const std::vector<Pair>& used) const;
    std::vector<float> readFloats(const TensorEntry& entry) const;

    AdapterConfig config_;
    std::string configPath_;
    AdapterNames names_;
    std::shared_ptr<const SafetensorsFile> file_;
};

/// The values of an adapter's part for one linear.
struct AdapterPartValues {
    std::string parameter; ///< Parameter::name
    kernels::Shape aShape; ///< (rank, in) or (experts, rank, in)
    kernels::Shape bShape; ///< (out, rank) or (experts, out, rank)
    std::vector<float> a;
    std::vector<float> b;
    bool embedding = false; ///< A is (rank, vocab), B (hidden, rank)
};

/// Sets the target_modules and target_parameters of `config` so that they name the linears `adapted` (Parameter::name)
/// and no others of `parameters`, which are all of the model. A name is short, "q_proj", where all linears with it are
/// adapted; else it is whole.
void setTargets(AdapterConfig& config, std::span<const Parameter> parameters, const std::vector<std::string>& adapted);

/// Writes the tensors alone, under the names of PEFT's file. Throws BadInput when the file cannot be written.
void writeAdapterTensors(const std::string& path, const std::vector<AdapterPartValues>& parts,
                         const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

/// Writes both files, each of which appears when it is complete; makes the folder where there is none. The values are
/// stored as float32. REQUIRES that `config` names the parts as its targets (see setTargets) and has their ranks.
/// Throws BadInput when a file cannot be written.
void writeAdapter(const std::string& folder, const AdapterConfig& config, const std::vector<AdapterPartValues>& parts);

} // namespace vitrine::engine
