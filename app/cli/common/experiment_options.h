// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Command-line options made from the option table of engine/workload, and back into an experiment.

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::app {

/// The options of one workload on one subcommand. Lives as long as the parser.
class ExperimentOptions {
public:
    /// `workload` empty: any (the experiment comes from a file). `skip` names keys that the command reads in its own
    /// way.
    ExperimentOptions(CLI::App& command, std::string workload, bool plan, const std::vector<std::string>& skip = {});
    ~ExperimentOptions() = default;
    ExperimentOptions(const ExperimentOptions&) = delete; // the parser holds its members' addresses
    ExperimentOptions& operator=(const ExperimentOptions&) = delete;

    /// Adds `key` as an argument without a flag.
    void addPositional(const std::string& key, const std::string& shownAs);
    /// Makes the experiment file a positional argument instead of --spec.
    void takeSpecPositional();

    /// Keys (a JSON object) that hold when the experiment so far names no model.
    using ModelFallback = std::function<nlohmann::json(const nlohmann::json& experiment)>;
    void setModelFallback(ModelFallback fallback) { modelFallback_ = std::move(fallback); }

    /// The experiment that the user asked for, checked. Errors name the flag, or the file and the key.
    engine::Experiment experiment() const;

    bool dumpSpec() const { return dumpSpec_; }
    const std::string& sessionFile() const { return sessionFile_; }

private:
    void addTableOption(const std::string& key);
    void applySet(nlohmann::json& experiment) const;
    void applyFlags(nlohmann::json& experiment) const;

    CLI::App& command_;
    std::string workload_;
    bool plan_;
    std::map<std::string, std::vector<std::string>> values_; ///< by key; addresses are stable
    std::map<std::string, CLI::Option*> options_;
    CLI::Option* specOption_ = nullptr;
    std::vector<std::string> set_;
    std::string specFile_;
    std::string sessionFile_;
    ModelFallback modelFallback_;
    bool dumpSpec_ = false;
};

} // namespace vitrine::app
