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
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/model/parameters.h"
#include "engine/training/adapters/adapter_config.h"
#include "engine/training/adapters/adapter_tensor_name.h"
#include "kernels/core/tensor.h"

namespace vitrine::engine {

/// The files of an adapter's folder.
std::string adapterConfigPath(const std::string& folder);
std::string adapterTensorsPath(const std::string& folder);

/// What an adapter's file has for one linear of the model, or for the embedding.
struct AdapterTarget {
    std::string parameter; ///< Parameter::name
    std::int64_t rank = 0;
    float scale = 1;
    bool embedding = false;
};

/// A parameter of the model that the adapter's file holds whole.
struct AdapterWhole {
    std::string parameter; ///< as the model calls it, "lm_head.weight"
    std::string text;      ///< the tensor's name as PEFT writes it
    const TensorEntry* entry = nullptr;
    /// The module has its own copy (modules_to_save). Otherwise the tensor takes the place of the model's parameter,
    /// and so of all that are tied to it.
    bool saved = false;
    bool copy = false; ///< the tensor's own name says so
};

/// An adapter on disk. Immutable; safe to use from several threads.
class AdapterFile {
public:
    /// Throws BadInput for a folder without an adapter or a broken file, Unsupported for adapters that this program
    /// cannot apply.
    static AdapterFile open(const std::string& folder);

    const AdapterConfig& config() const { return config_; }
    const AdapterNames& names() const { return names_; }
    const std::string& configPath() const { return configPath_; }
    const std::string& folder() const { return folder_; }
    const SafetensorsFile& tensors() const { return *file_; }
    const std::shared_ptr<const SafetensorsFile>& sharedTensors() const { return file_; }
    /// In the order of the file.
    const std::vector<AdapterWhole>& wholes() const { return wholes_; }
    /// The tensor of this name (AdapterTensorName::text()), however the file spells it; null where there is none.
    const TensorEntry* find(const std::string& text) const;
    /// The same with all tensors that are no wholes.
    const std::map<std::string, const TensorEntry*>& parts() const { return parts_; }
    /// Throws BadInput for a tensor that is not of floats.
    std::vector<float> readFloats(const TensorEntry& entry) const;

    /// The linears that the adapter changes beside their weights, in the order of `parameters`, which are all of a
    /// model. Those of DoRA are not among them: they are in the weights (adapter_weights.h). Throws BadInput "FILE:
    /// TENSOR: what" when a tensor is missing, has a shape that does not fit the model, or belongs to no linear.
    std::vector<AdapterTarget> targets(std::span<const Parameter> parameters) const;
    /// A (rank, in) or (experts, rank, in), and B (out, rank) or (experts, out, rank) of a target. Of the embedding
    /// (rank, vocab) and (hidden, rank). Throws BadInput.
    void read(const AdapterTarget& target, std::vector<float>& a, std::vector<float>& b) const;

private:
    AdapterFile(std::string folder, AdapterConfig config, std::shared_ptr<const SafetensorsFile> file);
    void sortTensors();
    void addTensor(const TensorEntry& entry, std::string& adapter);
    /// The tensors of one target.
    struct Pair {
        const TensorEntry* a = nullptr;
        const TensorEntry* b = nullptr;
    };
    /// Without its magnitudes an adapter of DoRA would be passed over.
    void requireMagnitude(const std::string& parameter) const;
    Pair findPair(const Parameter& parameter, std::int64_t rank) const;
    const TensorEntry* findTensor(const AdapterTensorName& name, std::int64_t rows, std::int64_t columns) const;
    AdapterTensorName nameOf(const std::string& parameter, bool embedding, bool first) const;
    void requireUsed(const std::vector<Pair>& used) const;
    [[noreturn]] void refuseUnused(const TensorEntry& entry) const;
    [[noreturn]] void bad(const TensorEntry& entry, const std::string& what) const;

    std::string folder_;
    std::string configPath_;
    AdapterConfig config_;
    AdapterNames names_;
    std::shared_ptr<const SafetensorsFile> file_;
    std::map<std::string, const TensorEntry*> parts_;
    std::vector<AdapterWhole> wholes_;
};

} // namespace vitrine::engine
