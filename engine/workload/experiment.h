// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// An experiment is one JSON value {"vitrine": 1, "workload": "generate", ...}. One option table describes every key: it
// generates command-line options, GUI forms, validation and the spec diff.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

enum class OptionType : std::uint8_t { Bool, Integer, Real, Text, Bytes, Choice, Path, TokenList, TextList, KeyValues };

/// Which workloads take an option: bits. An experiment names one workload; `"plan": true` prices it on Meta instead of
/// running it.
inline constexpr std::uint32_t kGenerate = 1;
inline constexpr std::uint32_t kLoad = 2;
inline constexpr std::uint32_t kLogits = 4;
inline constexpr std::uint32_t kPlan = 8; ///< alone: only a plan takes it; else: the option changes the price
inline constexpr std::uint32_t kTokenize = 16;
inline constexpr std::uint32_t kSynthesize = 32;
inline constexpr std::uint32_t kBench = 64;
inline constexpr std::uint32_t kAttention = 128;
inline constexpr std::uint32_t kBatch = 256;
inline constexpr std::uint32_t kServe = 512;

struct OptionSpec {
    std::string_view key; ///< JSON key, "max_new_tokens"; the command line writes --max-new-tokens
    OptionType type = OptionType::Text;
    std::string_view defaultText; ///< in command-line form; empty: unset
    std::string_view bareText; ///< what the flag means when it stands without a value; empty: it needs one (Bool: true)
    double minimum = 0, maximum = 0; ///< for numbers, when minimum < maximum
    std::string_view choices;        ///< "auto|cpu|cuda|meta"
    std::string_view unit;           ///< "tokens", "bytes", ...
    std::string_view group;          ///< form section: "Model", "Sampling", "Memory", "Run"
    std::string_view help;           ///< one line
    std::uint32_t workloads = 0;
};

/// The whole table, in form order.
std::span<const OptionSpec> optionTable();
const OptionSpec* findOption(std::string_view key);

/// Names of the workloads that runExperiment knows: "generate", "load", "logits", "tokenize", "synthesize", "bench",
/// "attention", "batch", "serve".
std::span<const std::string_view> workloadNames();
/// Its bit; 0 for an unknown name.
std::uint32_t workloadBit(std::string_view workload);
/// Whether an experiment of this workload takes the option, run (`plan` false) or planned. A plan takes every option of
/// its workload, so that adding "plan": true to a run prices it.
bool optionApplies(const OptionSpec& option, std::string_view workload, bool plan);

/// "max_new_tokens" from "--max-new-tokens", and back.
std::string optionFlag(std::string_view key);

/// Turns one option's text into its JSON value; throws BadInput that names the option and its range.
nlohmann::json parseOption(const OptionSpec& option, std::string_view text);

/// Checks an experiment: version, workload, keys, types, ranges, what must stand together. An unknown key is an error
/// that names it and the nearest known one; so is a known key that the workload does not take. Sizes may be numbers of
/// bytes or texts ("16 GiB"); lists may be written as one text in command-line form. Returns it in canonical form with
/// every default filled in; options without a default stay absent. `name` is the file's name for errors.
nlohmann::json validateExperiment(const nlohmann::json& experiment, const std::string& name);

/// Keys whose values differ, with both values as text; missing shows as "–".
struct SpecDifference {
    std::string key, a, b;
};
std::vector<SpecDifference> diffExperiments(const nlohmann::json& a, const nlohmann::json& b);

} // namespace vitrine::engine
