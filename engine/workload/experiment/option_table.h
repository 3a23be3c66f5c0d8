// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One table describes every option of every experiment. It generates command-line options, GUI forms, validation and
// the difference of two experiments, and it alone holds the defaults.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace vitrine::engine {

enum class OptionType : std::uint8_t { Bool, Integer, Real, Text, Bytes, Choice, Path, TokenList, TextList, KeyValues };

/// Options that several workloads take together: bits. A workload names the sets that it takes (workload_table.h).
inline constexpr std::uint32_t kModelOptions = 1;   ///< model, set
inline constexpr std::uint32_t kWeightsOptions = 2; ///< weights
inline constexpr std::uint32_t kDeviceOptions =
    4;                                          ///< backend, dtype, kernels, budgets, what the GPU's profiler records
inline constexpr std::uint32_t kRunOptions = 8; ///< seed, profile
inline constexpr std::uint32_t kPromptOptions = 16;    ///< one prompt: text, tokens or a length
inline constexpr std::uint32_t kAnswerOptions = 32;    ///< raw, max_new_tokens
inline constexpr std::uint32_t kTextOptions = 64;      ///< chat format, sampling, pages of the KV cache
inline constexpr std::uint32_t kBatchingOptions = 128; ///< slots, scheduler and pool of a batch engine
inline constexpr std::uint32_t kPlanningOptions = 256; ///< plan; every workload that can be planned takes it

/// The most tokens, pages or rows that an option counts: 2^24.
inline constexpr double kMaxCount = 16777216.0;

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
    std::uint32_t sets = 0;          ///< the sets that it belongs to; 0: workloads name its key
    bool planOnly = false;           ///< only plans take it, of every workload that can be planned
};

/// The options that no workload owns, in form order.
std::span<const OptionSpec> sharedOptionTable();

/// The whole table in form order: the shared options, and at their places those of each registered workload.
/// Registering a workload makes a new table: addresses of its entries hold until then.
std::span<const OptionSpec> optionTable();
/// Null: there is no such option.
const OptionSpec* findOption(std::string_view key);

/// Whether an experiment of this workload takes the option, run (`plan` false) or planned. A plan takes every option of
/// its workload, so that adding "plan": true to a run prices it. An unknown workload takes none.
bool optionApplies(const OptionSpec& option, std::string_view workload, bool plan);

/// "max_new_tokens" from "--max-new-tokens", and back.
std::string optionFlag(std::string_view key);

/// Turns one option's text into its JSON value; throws BadInput that names the option and its range.
nlohmann::json parseOption(const OptionSpec& option, std::string_view text);

} // namespace vitrine::engine
