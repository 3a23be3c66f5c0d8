// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The sets of techniques that the planner puts beside each other, and the switches that turn a technique on or off.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {

/// One option with another value.
struct OptionEdit {
    std::string key;
    OptionValue value;

    bool operator==(const OptionEdit& other) const = default;
};

/// The experiment with these values.
Experiment edited(Experiment experiment, const std::vector<OptionEdit>& edits);

/// The experiment as the planner prices it: a plan on Meta of arbitrary tokens, which reads no data and writes no file.
/// `context` tokens are those of a training row or of a prompt. Throws BadInput when the workload cannot be planned.
Experiment plannedExperiment(const Experiment& experiment, std::int64_t context);
/// Options that say what is read, asked and judged: what arbitrary tokens take the place of.
std::span<const std::string_view> inputOptions();
/// The same experiment with another context.
Experiment withContext(const Experiment& planned, std::int64_t context);
/// The tokens of a row or prompt that an experiment asks for; nothing where files say it.
std::optional<std::int64_t> contextOf(const Experiment& experiment);

struct PlanSetSpec {
    std::string name; ///< "+ tiled MLP"; of other workloads the type of the KV cache, "int8"
    std::vector<OptionEdit> edits;
};

/// Fine-tuning: one memory technique more from set to set. Workloads with a KV cache: one set for each type of it.
/// Others: one set without edits.
std::vector<PlanSetSpec> planSets(const Experiment& experiment);

struct PlanSwitchSpec {
    std::string name; ///< "Tiled MLP"
    OptionEdit on, off;
};
/// The techniques that the workload can turn on and off.
std::vector<PlanSwitchSpec> planSwitches(const Experiment& experiment);
bool isOn(const Experiment& experiment, const PlanSwitchSpec& one);
/// Options of several values that the planner offers beside the switches: of reinforcement learning what is trained,
/// and in what format answers are sampled.
std::span<const std::string_view> planChoices(const Experiment& experiment);

/// Whether the workload takes the option.
bool takesOption(const Experiment& experiment, std::string_view key);

} // namespace vitrine::engine
