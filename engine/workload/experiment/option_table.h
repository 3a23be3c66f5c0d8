// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One table describes every option of every experiment. The command line, the forms of the desktop program, the checks
// of experiments and the comparison of two experiments are made from it. No other place holds a default.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace vitrine::engine {

enum class OptionType : std::uint8_t { Bool, Integer, Real, Text, Bytes, Choice, Path, TokenList, TextList, KeyValues };

/// Sets of options that several workloads share, as bits. A workload names the sets that it takes (workload_table.h).
inline constexpr std::uint32_t kModelOptions = 1;   ///< model, set
inline constexpr std::uint32_t kWeightsOptions = 2; ///< weights
/// Backend, dtype, kernels, budgets, what the GPU's profiler records.
inline constexpr std::uint32_t kDeviceOptions = 4;
inline constexpr std::uint32_t kRunOptions = 8;        ///< seed, profile
inline constexpr std::uint32_t kPromptOptions = 16;    ///< one prompt: text, tokens or a length
inline constexpr std::uint32_t kAnswerOptions = 32;    ///< raw, max_new_tokens
inline constexpr std::uint32_t kTextOptions = 64;      ///< chat format, sampling, pages of the KV cache
inline constexpr std::uint32_t kBatchingOptions = 128; ///< slots, scheduler and pool of a batch engine
/// The option "plan"; every workload that can be planned takes this set.
inline constexpr std::uint32_t kPlanningOptions = 256;
inline constexpr std::uint32_t kRankOptions = 512; ///< tp, ep, devices

/// The highest number of tokens, pages or rows that an option accepts: 2^24.
inline constexpr double kMaxCount = 16777216.0;

/// The largest size that an option accepts: 2^62.
inline constexpr double kMaxBytes = 4611686018427387904.0;

struct OptionSpec {
    std::string_view key; ///< JSON key, "max_new_tokens"; the command line writes --max-new-tokens
    OptionType type = OptionType::Text;
    std::string_view defaultText; ///< the default as on the command line; empty: the option is unset by default
    /// The value when the flag stands alone; empty: the flag needs a value (a Bool is then true).
    std::string_view bareText;
    double minimum = 0, maximum = 0; ///< for numbers and sizes, when minimum < maximum
    std::string_view choices;        ///< "auto|cpu|cuda|meta"
    std::string_view unit;           ///< "tokens", "bytes", ...
    std::string_view group;          ///< form section: "Model", "Sampling", "Memory", "Run"
    std::string_view help;           ///< one line
    std::uint32_t sets = 0;          ///< the sets that it belongs to; 0: a workload takes it by naming its key
    bool planOnly = false;           ///< only plans take it, those of every workload that can be planned
    bool maybeFile = false;          ///< a text that may name a file or folder; every Path does
};

/// The options that no workload owns, in form order.
std::span<const OptionSpec> sharedOptionTable();

/// The whole table in form order: the shared options, and the own options of each registered workload at their places.
/// Registering a workload makes a new table, so pointers to entries are valid until then.
std::span<const OptionSpec> optionTable();
/// The option with this key; null when there is none.
const OptionSpec* findOption(std::string_view key);

/// Whether an experiment of this workload takes the option. `plan` says whether the experiment is a plan. A plan takes
/// every option of its workload, so adding "plan": true to an experiment is enough to price it. An unknown workload
/// takes no option.
bool optionApplies(const OptionSpec& option, std::string_view workload, bool plan);

/// Whether its values may name files or folders: these need not be UTF-8.
inline bool namesFiles(const OptionSpec& option) {
    return option.type == OptionType::Path || option.maybeFile;
}

/// The flag of a key ("--max-new-tokens" for "max_new_tokens"), and the key of a flag.
std::string optionFlag(std::string_view key);

/// Turns the text of one option into its JSON value. Throws BadInput, which names the option and its range.
nlohmann::json parseOption(const OptionSpec& option, std::string_view text);

} // namespace vitrine::engine
