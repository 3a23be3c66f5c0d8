// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The table of workloads. A table row states everything that the rest of the program needs to know about a workload, so
// no other file compares names of workloads. A new workload is one file that defines a row, its declaration in
// workloads.h, and one line in
// workload_table.cpp.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "engine/workload/experiment/option_table.h"
#include "engine/workload/experiment/result_fields.h"

namespace vitrine::engine {

class Experiment;
struct Run;

/// An option that names what a workload writes. Its files are checked before anything is made
/// (engine/workload/common/output_files.h).
struct WorkloadOutput {
    std::string_view key;                   ///< of a Path option
    const base::OutputKind* kind = nullptr; ///< of the file; null: it is a folder
    bool ofPlans = false;                   ///< a plan writes it too
    /// Of a folder for what was trained: the option that lets it replace an earlier result, and the one that names what
    /// it goes on from. Empty: the writer itself looks at the folder.
    std::string_view overwrite, resume;
};

/// A shared option whose default is another one in a workload.
struct WorkloadDefault {
    std::string_view key, text;
};

/// One row of the table. A function that is null has a default, which its comment gives. The functions may be called on
/// any thread.
struct Workload {
    std::string_view name;  ///< the name in experiments and commands, "generate"
    std::string_view title; ///< the name in forms, "Generate"

    // Options
    std::uint32_t optionSets = 0;                 ///< sets of shared options that it takes: bits of option_table.h
    std::span<const std::string_view> optionKeys; ///< single options that it takes, shared ones or another workload's
    std::span<const OptionSpec> ownOptions;       ///< options that no other workload has
    std::span<const WorkloadDefault> defaults;    ///< of options that it takes and does not own
    std::span<const WorkloadOutput> outputs;      ///< all that it writes
    std::string_view ownOptionsBefore;            ///< forms show the own options before this one; empty: last
    /// Whether the experiment must name a model. Null: always.
    bool (*needsModel)(const Experiment& experiment) = nullptr;
    /// Checks what this workload demands of its options beyond the checks of every experiment. Throws BadInput "NAME:
    /// KEY: what". Null: no such checks.
    void (*check)(const Experiment& experiment, const std::string& name) = nullptr;
    bool takesAllDTypes = false;   ///< the option dtype may be float16 and float64 too
    bool takesBothWeights = false; ///< the option weights may be "both"
    bool needsPrompt = false;      ///< it answers one prompt, which it must have; forms show when it is missing
    bool searches = false;         ///< its plans can search for the longest context and the largest batch

    // Runs and plans
    /// Runs the experiment and fills run.metrics. Throws the error that ended it.
    void (*run)(const Run& run) = nullptr;
    /// Prices the experiment on Meta: how much memory and time it would take, and whether it fits. Null: the workload
    /// cannot be planned.
    void (*plan)(const Run& run) = nullptr;
    /// One line of help for the command `vitrine plan NAME`; empty: there is no such command.
    std::string_view planHelp;
    std::string_view planExample; ///< a whole command line as an example
    /// Whether the backend "auto" means the CPU even on a machine with a GPU. Null: never.
    bool (*prefersCpu)(const Experiment& experiment) = nullptr;
    /// Whether it turns profiles on and off itself (WorkloadSinks::profiles). Null: never.
    bool (*switchesProfiles)(const Experiment& experiment) = nullptr;
    /// It measures loads or contexts. So what an earlier run kept is freed first, and nothing is kept for the next run.
    bool startsAfresh = false;
    bool servesClients = false; ///< requests come from a RequestFeed, and only its clients get the tokens
    bool manyAnswers = false;   ///< it answers many requests at once, so tokens are not printed as they come

    // Results, words and views
    std::span<const ResultSet> results; ///< the fields that its runs and plans report
    /// The name of a run, which distinguishes it in a list: "causal" or "static, 16 slots, gpt-oss-20b". Null: the
    /// workload's name and the model.
    std::string (*runName)(const Experiment& experiment) = nullptr;
    /// The result as text for people, with a line break at the end; an empty text when the streamed text was the
    /// result. std::nullopt, or a null function: all fields are printed as they are. `metrics` is a JSON object.
    std::optional<std::string> (*resultText)(const Experiment& experiment, const nlohmann::json& metrics) = nullptr;
    std::string_view promptHint; ///< the placeholder of an empty prompt field in forms; empty: the general one
    std::string_view formView;   ///< the view that edits and starts it, "run" or "mask"; empty: none
    int formPlace = 0;           ///< its place in the list of workloads of that view
    std::span<const std::string_view> views; ///< the views that show its runs, "kv-cache"
};

/// All workloads, in the order in which lists show them.
std::span<const Workload* const> workloadTable();
/// The workload of that name; null when there is none.
const Workload* findWorkload(std::string_view name);
/// The workload of a run in a session, whose `runWorkload` is "generate" or "plan generate"; null when there is none.
const Workload* workloadOfRun(std::string_view runWorkload);
bool showsIn(const Workload& workload, std::string_view view);
/// The default of an option as on the command line; empty: the option is unset by default.
std::string_view defaultTextOf(const OptionSpec& option, const Workload& workload);
/// The workloads whose experiments a view edits, in the order of formPlace.
std::vector<const Workload*> workloadsOfForm(std::string_view view);

/// Adds a workload to the table for as long as this object lives. The row and everything that it points to must outlive
/// this object. Not thread-safe: no experiment, form or run may exist when it is made or destroyed. Throws Internal
/// when a name or a key is already taken.
class WorkloadRegistration {
public:
    explicit WorkloadRegistration(const Workload& workload);
    ~WorkloadRegistration();
    WorkloadRegistration(const WorkloadRegistration&) = delete; // the row is registered once
    WorkloadRegistration& operator=(const WorkloadRegistration&) = delete;

private:
    const Workload* workload_;
};

} // namespace vitrine::engine
