// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// An experiment names one workload and the values of its options. Its JSON form {"vitrine": 1, "workload": "generate",
// ...} is parsed and checked once, where the experiment enters the program: command line, file, worker pipe, session,
// form.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/workload/experiment/option_table.h"

namespace vitrine::engine {

struct Workload;

/// The value of one option: of Bool, Integer, Real, Bytes, of Text, Choice and Path, of TokenList, TextList, KeyValues.
using OptionValue = std::variant<bool, std::int64_t, double, std::uint64_t, std::string, std::vector<std::int32_t>,
                                 std::vector<std::string>, std::map<std::string, std::string>>;

/// A checked experiment. A value: copies are independent; const functions may be called on any thread.
///
/// What was not given has the option table's default, also where the workload does not take the option: what workloads
/// share asks for all options. Options without a default may be unset. Each accessor throws Internal for a key that the
/// table does not have and for one of another type.
class Experiment {
public:
    /// Checks version, workload, keys, types, ranges and what must stand together. An unknown key is an error that
    /// names it and the nearest known one; so is a known key that the workload does not take. Sizes may be numbers of
    /// bytes or texts ("16 GiB"); lists may be written as one text in command-line form. `name` is the file's name for
    /// errors. Throws BadInput "NAME: KEY: what".
    static Experiment parse(const nlohmann::json& value, const std::string& name);

    const Workload& workload() const { return *workload_; }
    /// It is priced on Meta instead of run.
    bool isPlan() const;
    /// The same as a plan. Throws BadInput where the workload cannot be planned.
    Experiment asPlan() const;
    /// The same for another workload, as far as that takes the options. Nothing is checked.
    Experiment as(const Workload& workload) const;

    /// Whether the option has a value: given, or by the default of an option that the workload takes.
    bool has(std::string_view key) const;
    bool flag(std::string_view key) const;            ///< of Bool
    std::string text(std::string_view key) const;     ///< of Text, Choice, Path; empty where unset
    std::int64_t integer(std::string_view key) const; ///< throws Internal where unset
    double real(std::string_view key) const;          ///< throws Internal where unset
    std::uint64_t bytes(std::string_view key) const;  ///< throws Internal where unset
    std::optional<std::int64_t> maybeInteger(std::string_view key) const;
    std::optional<double> maybeReal(std::string_view key) const;
    std::optional<std::uint64_t> maybeBytes(std::string_view key) const;
    std::vector<std::int32_t> tokens(std::string_view key) const;         ///< of TokenList; empty where unset
    std::vector<std::string> texts(std::string_view key) const;           ///< of TextList; empty where unset
    std::map<std::string, std::string> pairs(std::string_view key) const; ///< of KeyValues; empty where unset

    /// Sets an option that the workload takes, for the program's own purposes: ranges are not checked. Throws Internal
    /// for an option that it does not take and for a value of another type.
    void set(std::string_view key, const OptionValue& value);

    /// The canonical form, with every default of the workload's options.
    nlohmann::json toJson() const;
    bool operator==(const Experiment& other) const = default;

private:
    Experiment() = default;
    template <class T> std::optional<T> valueOf(std::string_view key) const;
    template <class T> T valueOrInternal(std::string_view key) const;

    const Workload* workload_ = nullptr; ///< never null
    std::map<std::string, OptionValue, std::less<>> values_;
};

/// Keys whose values differ in two experiments as sessions keep them, with both values as text; missing shows as "–".
/// They may come from another version: nothing is checked.
struct SpecDifference {
    std::string key, a, b;
};
std::vector<SpecDifference> diffExperiments(const nlohmann::json& a, const nlohmann::json& b);

} // namespace vitrine::engine
