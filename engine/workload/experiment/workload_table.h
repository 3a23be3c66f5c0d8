// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The table of workloads. A row says all that the rest of the program needs to know of a workload, so that no other
// file asks for its name: a new workload is one file that makes a row, its declaration in workloads.h, and a line in
// workload_table.cpp.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workload/experiment/option_table.h"

namespace vitrine::engine {

class Experiment;
struct Run;

/// One row. Functions that are null have a default, which stands beside them. They may be called on any thread.
struct Workload {
    std::string_view name;  ///< as experiments and commands write it, "generate"
    std::string_view title; ///< what forms call it, "Generate"

    // Options
    std::uint32_t optionSets = 0;                 ///< shared sets that it takes: bits of option_table.h
    std::span<const std::string_view> optionKeys; ///< single shared options that it takes
    std::span<const OptionSpec> ownOptions;       ///< that no other workload has
    std::string_view ownOptionsBefore;            ///< where forms show them: before this option; empty: last
    /// Whether the experiment must name a model. Null: always.
    bool (*needsModel)(const Experiment& experiment) = nullptr;
    /// What must stand together beyond what every workload asks for. Throws BadInput "NAME: KEY: what". Null: nothing.
    void (*check)(const Experiment& experiment, const std::string& name) = nullptr;
    bool takesAllDTypes = false;   ///< float16 and float64 too
    bool takesBothWeights = false; ///< weights may be "both"
    bool needsPrompt = false;      ///< one prompt is its input and what it answers; forms show a missing one
    bool searches = false;         ///< its plans find the longest context and the largest batch

    // Runs and plans
    /// Fills run.metrics and throws what went wrong.
    void (*run)(const Run& run) = nullptr;
    /// The same on Meta: what it would need and take, and whether it fits. Null: it cannot be planned.
    void (*plan)(const Run& run) = nullptr;
    std::string_view planHelp; ///< what the command `vitrine plan NAME` does, one line; empty: there is no such command
    std::string_view planExample; ///< a whole command line of it
    /// Whether the backend "auto" is the CPU even where a GPU is. Null: never.
    bool (*prefersCpu)(const Experiment& experiment) = nullptr;
    /// Whether it turns profiles on and off itself (WorkloadSinks::profiles). Null: never.
    bool (*switchesProfiles)(const Experiment& experiment) = nullptr;
    /// It measures loads or contexts: what an earlier run kept is freed first, and it keeps nothing itself.
    bool startsAfresh = false;
    bool servesClients = false; ///< requests come from a RequestFeed, and tokens are told to its clients only
    bool manyAnswers = false;   ///< it answers many requests at once, so their tokens are not printed as they come

    // Words and views
    /// What tells its runs apart in a list, "causal" or "static, 16 slots, gpt-oss-20b". Null: its name and the model.
    std::string (*runName)(const Experiment& experiment) = nullptr;
    /// Its result in the words of a person, with a line break at the end; empty where the streamed text was the result.
    /// Nothing, or a null function: all fields as they are. `metrics` is an object.
    std::optional<std::string> (*resultText)(const Experiment& experiment, const nlohmann::json& metrics) = nullptr;
    std::string_view promptHint;             ///< what forms say in an empty prompt; empty: that it is what runs
    std::string_view formView;               ///< view that edits and starts it, "run" or "mask"; empty: none
    int formPlace = 0;                       ///< its place among the workloads of that view
    std::span<const std::string_view> views; ///< views that show its runs, "kv-cache"
};

/// All workloads, in the order in which they are told.
std::span<const Workload* const> workloadTable();
/// Null: there is none of that name.
const Workload* findWorkload(std::string_view name);
/// Of a run as sessions name it: "generate", and "plan generate" too.
const Workload* workloadOfRun(std::string_view runWorkload);
bool showsIn(const Workload& workload, std::string_view view);
/// The workloads whose experiments a view edits, in their places.
std::vector<const Workload*> workloadsOfForm(std::string_view view);

/// A workload that a program or a test adds, for as long as this lives. Both row and what it points to must outlive it.
/// Not thread-safe: no experiment, form or run may be there. Throws Internal where a name or key is taken.
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
