// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What would lower the peak of a training step, by the planner: the memory technique that costs the least time, and
// what offload saves. Takes some plans, so it runs on a worker thread.

#include <QString>
#include <cstdint>
#include <optional>
#include <string>

namespace vitrine::ui {

struct StepAdvice {
    QString change;                         ///< "Tiled MLP"; empty: no technique lowers the peak
    std::uint64_t peak = 0;                 ///< planned, as the run is
    std::uint64_t changed = 0;              ///< planned, with the change
    QString place;                          ///< where the peak then is
    bool offloaded = false;                 ///< the run offloads the inputs of its layers
    std::optional<std::uint64_t> otherwise; ///< the planned peak without offload, or with it where the run has none
    std::uint64_t host = 0;                 ///< host memory of the offload
};

/// Nothing where the experiment cannot be planned. `device`: the profile of the one that the run took (runDevice).
/// `tokens` are those of a micro-batch's row, where the experiment does
/// not say it.
std::optional<StepAdvice> stepAdvice(const std::string& specJson, const QString& device, std::int64_t tokens);

/// The experiment to compare a run with: the same without offload and tiled MLP, or with both where it has neither.
struct StepBaseline {
    QString button; ///< "Set up this run without offload and tiled MLP"
    std::string experiment;
};
std::optional<StepBaseline> stepBaseline(const std::string& specJson);

} // namespace vitrine::ui
