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

/// Which workloads take an option: bits.
enum WorkloadBits : std::uint32_t {
    kGenerate = 1,
    kLoad = 2,
    kLogits = 4,
    kPlan = 8, ///< the workload is run on Meta
    kTokenize = 16,
    kSynthesize = 32,
    kBench = 64,
};

struct OptionSpec {
    std::string_view key;         ///< JSON key, "max_new_tokens"; the command line writes --max-new-tokens
    OptionType type = OptionType::Text;
    std::string_view defaultText; ///< in command-line form; empty: unset
    double minimum = 0, maximum = 0; ///< for numbers, when minimum < maximum
    std::string_view choices;     ///< "auto|cpu|cuda|meta"
    std::string_view unit;        ///< "tokens", "bytes", ...
    std::string_view group;       ///< form section: "Model", "Sampling", "Memory", "Run"
    std::string_view help;        ///< one line
    std::uint32_t workloads = 0;
};

/// The whole table, in form order.
std::span<const OptionSpec> optionTable();
const OptionSpec* findOption(std::string_view key);

/// "max_new_tokens" from "--max-new-tokens", and back.
std::string optionFlag(std::string_view key);

/// Turns one option's text into its JSON value; throws BadInput that names the option and its range.
nlohmann::json parseOption(const OptionSpec& option, std::string_view text);

/// Checks an experiment: version, workload, keys, types, ranges. An unknown key is an error that names it and the
/// nearest known one. Returns it with every default filled in.
nlohmann::json validateExperiment(const nlohmann::json& experiment, const std::string& name);

/// Keys whose values differ, with both values as text; missing shows as "–".
struct SpecDifference {
    std::string key, a, b;
};
std::vector<SpecDifference> diffExperiments(const nlohmann::json& a, const nlohmann::json& b);

} // namespace vitrine::engine
