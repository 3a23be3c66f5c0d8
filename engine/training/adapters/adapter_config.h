// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// adapter_config.json of a LoRA adapter, as PEFT writes it, and PEFT's rules for the names in it.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tokenizer/regex.h"

namespace vitrine::engine {

/// The fields that decide what an adapter adds to a model. What becomes of other keys stands in adapter_keys.h.
struct AdapterConfig {
    std::int64_t rank = 8;                  ///< r
    double alpha = 8;                       ///< lora_alpha
    double dropout = 0;                     ///< lora_dropout; it counts only while the adapter is trained
    bool rsLora = false;                    ///< use_rslora: the scale is alpha / sqrt(rank)
    bool dora = false;                      ///< use_dora
    std::vector<std::string> targetModules; ///< target_modules as a list
    /// target_modules as a text: a regular expression for whole names, or "all-linear".
    std::string targetRegex;
    std::vector<std::string> targetParameters;       ///< target_parameters: weights that no linear module holds
    std::map<std::string, std::int64_t> rankPattern; ///< ranks of modules whose names end with this expression
    std::map<std::string, double> alphaPattern;      ///< the same for alpha
    std::string baseModel;                           ///< base_model_name_or_path
    std::vector<std::string> excludeModules;         ///< exclude_modules as a list
    std::string excludeRegex;                        ///< exclude_modules as a text
    std::vector<std::string> modulesToSave;          ///< modules_to_save: they are stored whole
    std::string bias = "none";        ///< "none", "all" or "lora_only": which biases are trained, and so in the file
    bool tiesWeights = false;         ///< ensure_weight_tying: what is done to the embedding is done to a tied head too
    std::vector<std::int64_t> layers; ///< layers_to_transform; empty: all
    std::vector<std::string> layersPattern; ///< layers_pattern: what holds the layers
    /// trainable_token_indices: rows of embeddings, by the end of the module's name.
    std::map<std::string, std::vector<std::int64_t>> trainedRows;
    std::string initLoraWeights = "true"; ///< init_lora_weights: "true", "false" or the name of a method

    std::vector<std::string> unknownKeys; ///< keys of the file that nothing uses
    std::string origin;                   ///< the JSON that it was read from: text() keeps keys that have no field here

    /// `file` begins the messages. Throws BadInput "FILE: FIELD: what", Unsupported for a value that would change the
    /// arithmetic in a way that this program does not know.
    static AdapterConfig parse(std::string_view text, const std::string& file);
    /// The same from a file.
    static AdapterConfig read(const std::string& path);
    /// JSON that parse() and PEFT read.
    std::string text() const;

    /// What B A is multiplied with.
    double scaling(std::int64_t moduleRank, double moduleAlpha) const;
};

/// Which modules and parameters a config names. Names are those of transformers, "model.layers.0.self_attn.q_proj".
/// Immutable; safe to use from several threads.
class AdapterNames {
public:
    /// `file` begins the messages. Throws BadInput for a broken regular expression.
    AdapterNames(const AdapterConfig& config, const std::string& file);

    /// Whether target_modules names this linear module: its whole name, or the end of its name after a full stop.
    /// `apart` says that "all-linear" leaves it out: the output head, and routers that are parameters to PEFT.
    bool targetsModule(const std::string& name, bool apart) const;
    /// Whether modules_to_save names this module.
    bool saves(const std::string& module) const;
    /// Whether target_parameters names this parameter, "model.layers.0.mlp.experts.down_proj".
    bool targetsParameter(const std::string& name) const;
    std::int64_t rankOf(const std::string& name) const;
    double alphaOf(const std::string& name) const;

private:
    template <class T> using Patterns = std::vector<std::pair<Regex, T>>;
    using Names = std::set<std::string, std::less<>>;

    bool excludes(const std::string& name) const;
    bool savesPartOf(const std::string& name) const;
    bool hasLayerOf(const std::string& name) const;

    Names modules_;
    Names parameters_;
    Names excluded_;
    std::optional<Regex> moduleRegex_; ///< empty where target_modules is a list, or "all-linear"
    std::optional<Regex> excludedRegex_;
    std::vector<std::string> saved_;
    bool allLinear_;
    std::set<std::string> layers_; ///< as they stand in names; empty: all
    std::vector<Regex> layerPatterns_;
    std::int64_t rank_;
    double alpha_;
    Patterns<std::int64_t> ranks_;
    Patterns<double> alphas_;
};

} // namespace vitrine::engine
