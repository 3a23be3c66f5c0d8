// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What could be changed in an experiment that ran out of memory so that it fits. Pure functions.

#include <QString>
#include <cstdint>
#include <string>
#include <vector>

namespace vitrine::ui {

struct FitChange {
    QString title, why;     ///< both empty: the experiment as it was
    std::string experiment; ///< JSON with the change in it
    bool priced = false;
    QString error; ///< why it has no price
    std::uint64_t peak = 0;
    double seconds = 0; ///< of a step
};

/// The changes worth pricing for an experiment: fewer tokens, quantized weights, smaller cache and compute types. The
/// first one is the experiment as it was: the others are measured by its step time. Empty where there is nothing to
/// change.
std::vector<FitChange> fitChanges(const std::string& specJson);

/// Takes over a price: the fields of `vitrine plan --json`, or an error.
void setPrice(FitChange& change, const std::string& metricsJson, const QString& error);

} // namespace vitrine::ui
