// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// An experiment names one workload and the values of its options. Its JSON form is {"vitrine": 1, "workload":
// "generate", ...}. It is parsed and checked once, at the place where the experiment enters the program: command line,
// file, pipe of a worker process, session or form.

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

/// The value of one option. In the order of the alternatives, the option types are: Bool; Integer; Real; Bytes; Text,
/// Choice and Path; TokenList; TextList; KeyValues.
using OptionValue = std::variant<bool, std::int64_t, double, std::uint64_t, std::string, std::vector<std::int32_t>,
                                 std::vector<std::string>, std::map<std::string, std::string>>;

/// A checked experiment. Copies are independent of each other. Const functions may be called on any thread.
///
/// An option that was not given has the default of the option table. This holds even for options that the workload does
/// not take, because code that several workloads share asks for them. An option without a default is unset. Each
/// accessor throws Internal for a key that is not in the option table, and for a key of another type.
class Experiment {
public:
    /// Checks the version, the workload, keys, types, ranges, and options that need or exclude each other. An unknown
    /// key is an error, which names the key and the nearest known one. A key that the workload does not take is an
    /// error too. A size is a number of bytes or a text such as "16 GiB". A list may be one text as on the command
    /// line. `name` stands first in error messages, for example the name of the file. Throws BadInput "NAME: KEY:
    /// what".
    static Experiment parse(const nlohmann::json& value, const std::string& name);

    /// The experiment of a session or of a draft, which may come from another version of the program or be unfinished:
    /// what this version does not know or take is left out, and what must stand together is not checked. Nothing when
    /// the text is no experiment of a known workload.
    static std::optional<Experiment> read(std::string_view json);

    const Workload& workload() const { return *workload_; }
    /// Whether the experiment is a plan, which is priced on Meta instead of run.
    bool isPlan() const;
    /// The same experiment as a plan. Throws BadInput when the workload cannot be planned.
    Experiment asPlan() const;
    /// The same experiment for another workload, without the options that this workload does not take. Checks nothing.
    Experiment as(const Workload& workload) const;

    /// Whether the option has a value: one that was given, or the default when the workload takes the option.
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

    /// Sets an option of the workload. Only the program itself uses it, so ranges are not checked. Throws Internal for
    /// an option that the workload does not take and for a value of another type.
    void set(std::string_view key, const OptionValue& value);

    /// Takes the value away: the option has its default again, or none.
    void unset(std::string_view key);

    /// The canonical JSON form, which states the defaults of the workload's options too.
    nlohmann::json toJson() const;
    /// The same as one line of text. What is no UTF-8 in it is replaced.
    std::string jsonText() const;
    /// The value of an option as people write it, "16 GiB" or "1,2,3"; empty where it is unset.
    std::string valueText(std::string_view key) const;
    bool operator==(const Experiment& other) const = default;

private:
    Experiment() = default;
    void addDefaults(); ///< of the options that the workload takes and that have no value
    template <class T> std::optional<T> valueOf(std::string_view key) const;
    template <class T> T valueOrInternal(std::string_view key) const;

    const Workload* workload_ = nullptr; ///< never null
    std::map<std::string, OptionValue, std::less<>> values_;
};

/// A key whose values differ in two experiments, with both values as text. A missing value is "–".
struct SpecDifference {
    std::string key, a, b;
};
/// Compares two experiments in the JSON form that sessions keep. They may come from another version of the program, so
/// they are not checked.
std::vector<SpecDifference> diffExperiments(const nlohmann::json& a, const nlohmann::json& b);

} // namespace vitrine::engine
