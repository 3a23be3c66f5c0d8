// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The price of an experiment: what it would hold at its peak and whether that fits. Pure functions.

#include <QString>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/trace.h"

namespace vitrine::ui {

struct RunPrice {
    std::uint64_t peak = 0, budget = 0;
    std::uint64_t missing = 0; ///< by which the peak exceeds the budget
    bool fits = true;
    base::CategoryBytes peakByCategory{};
    /// Of the answer; cut: those that the model's context of `context` tokens has no room for.
    std::uint64_t newTokens = 0, cutTokens = 0, context = 0;
    QString device;         ///< empty: not said
    double stepSeconds = 0; ///< of a step of training, predicted; 0: not said
    QString peakAt;         ///< "loss chunk 2"; empty: not said
};

/// From the fields of `vitrine plan --json`; nothing where peak or budget is unknown.
std::optional<RunPrice> runPrice(const std::string& metricsJson);

/// The texts of an experiment, those in lists too: whichever of them names a file or folder names an input.
std::vector<std::string> namedTexts(const std::string& experimentJson);

} // namespace vitrine::ui
