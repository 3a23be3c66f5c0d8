// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The names of tensors in an adapter's file. PEFT writes
// "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight". State dicts that were saved without PEFT's
// save_pretrained have the adapter's name in them ("lora_A.default.weight"), and names of wrappers; other programs
// leave the prefix out. All these are read.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vitrine::engine {

struct AdapterTensorName {
    enum class Part : std::uint8_t {
        A,
        B,
        EmbeddingA,
        EmbeddingB,
        Magnitude, ///< of DoRA
        BiasOfB,   ///< of lora_bias
        Rows,      ///< of trainable_token_indices: rows that replace those of the embedding
        Whole,  ///< a parameter of the model: of a module that is stored whole, a bias, or a weight of the base model
        Unused, ///< what a module was before training; nothing reads it
    };

    std::string module; ///< "model.layers.0.mlp.experts"
    int inner = 0;      ///< how many wrappers of the same module lie around this one
    Part part = Part::A;
    std::string leaf;    ///< of Whole: the parameter's name in its module, "weight"
    std::string adapter; ///< the adapter's name where the tensor's name has it, "default"
    bool saved = false;  ///< of Whole: the name says that the module has its own copy (modules_to_save)

    /// Nothing for a name without a module.
    static std::optional<AdapterTensorName> parse(std::string_view name);
    /// As PEFT writes it, without `adapter`. Equal for all spellings of a name.
    std::string text() const;
    /// Of Whole and Rows: the name of the parameter in the model, "lm_head.weight".
    std::string parameter() const;
};

/// A stack of experts is a parameter of its module. Other linears are modules that have a parameter "weight".
bool isStackName(std::string_view parameter);
/// The module that holds a parameter.
std::string moduleOfParameter(const std::string& parameter);
/// The stack of the same module that PEFT wraps after this one; empty where there is none. The parameters of a module
/// come in their order, so gate_up_proj is wrapped first.
std::string outerParameter(const std::string& parameter);
/// The name of A, or of B, of a linear or of the embedding. `outerIsAdapted`: whether outerParameter() is adapted too.
AdapterTensorName loraName(const std::string& parameter, bool outerIsAdapted, bool embedding, bool first);

} // namespace vitrine::engine
