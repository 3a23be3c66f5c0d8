// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What could be changed in an experiment that ran out of memory so that the whole run fits: which changes, what to ask
// the planner about them, and which of them help. Knows nothing of threads and windows; used by one thread.

#include <QString>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/planning/largest_fit.h"
#include "engine/workload/planner/plan_changes.h"

namespace vitrine::engine {
class Experiment;
} // namespace vitrine::engine

namespace vitrine::ui {

struct FitChange {
    QString title, why;     ///< both empty: the experiment as it was
    std::string experiment; ///< JSON with the change in it; of a search the largest value that fitted
    bool priced = false;    ///< also: the search is done
    QString error;          ///< why it has no price
    bool fits = false;      ///< the whole run
    std::uint64_t peak = 0; ///< most bytes of the device that the whole run reserves; 0: not known
    double seconds = 0;     ///< of a step

    std::vector<engine::OptionEdit> edits; ///< of a change of options; empty: a search, or the experiment as it was
    std::string key;                       ///< of a search: the number of the experiment that is made smaller
    std::int64_t now = 0;                  ///< what it was
    std::optional<engine::FitSearch> search;
};

/// "5.7 MiB spare", "7.1 MiB over": of a change that has a price.
QString fitText(const FitChange& change, std::uint64_t budget);

class FitChanges {
public:
    FitChanges() = default;
    /// Every option that holds memory (engine/workload/planner/plan_changes.h), two of them together where none is
    /// enough alone, and the largest prompt, batch and answer that fit. The first is the experiment as it was: the
    /// others are measured by it. Empty where there is nothing to change.
    FitChanges(const std::string& specJson, std::uint64_t budget);

    /// The experiment to price next; nothing once all is known.
    std::optional<std::string> question() const;
    /// The answer to question(): the fields of `vitrine plan --json`, or an error.
    void answer(const std::string& metricsJson, const QString& error);

    const std::vector<FitChange>& all() const { return all_; }
    /// In the order to show: what fits by the time of a step, then what is not known yet, then what helps and is not
    /// enough, by what is missing, three of them. What does not lower the peak of the run is left out.
    std::vector<FitChange> shown() const;

private:
    void add(const QString& title, const QString& why, const std::string& experiment);
    void addOptions(const engine::Experiment& spec);
    void addPairs();
    void addSearches(const engine::Experiment& spec);

    std::uint64_t budget_ = 0;
    std::size_t next_ = 0;
    bool pairsAdded_ = false;
    std::size_t singlesEnd_ = 0; ///< of all_: behind the changes of one option
    std::vector<FitChange> all_;
};

/// Bytes rounded up to what bytesText() can say, so that the budget that people read and type is never too small.
std::uint64_t readableBudget(std::uint64_t bytes);

} // namespace vitrine::ui
