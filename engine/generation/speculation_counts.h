// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What came of the drafts of a run, and what they bought.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace vitrine::engine {

/// The usual time of many steps: the median of the last ones, and of fewer than eight the fastest. The first steps of
/// each kind wait for kernels or capture a graph, and a mean would count them.
class UsualTime {
public:
    void add(double seconds);
    std::optional<double> seconds() const; ///< empty: no step was added

private:
    std::array<float, 255> times_{};
    std::size_t added_ = 0;
};

struct SpeculationCounts {
    std::int64_t rows = 0;    ///< tokens that plain decoding would have given in the same steps: one for each request
    std::int64_t drafted = 0; ///< tokens that were checked
    std::int64_t accepted = 0;
    double draftSeconds = 0;        ///< time of the drafter
    std::int64_t plainSteps = 0;    ///< decode steps that checked nothing
    std::int64_t checkSteps = 0;    ///< decode steps that checked drafts
    UsualTime plainTime, checkTime; ///< of one of them

    /// The share of drafted tokens that were right; 0 without drafts.
    double acceptanceRate() const;
    /// Tokens that one request gets in one decode step; 1 without speculation.
    double tokensPerStep() const;
    /// Decode steps that plain decoding would have had beyond those of the run.
    double savedSteps() const;
    /// An estimate of how many times as long plain decoding would have taken: its steps at the usual time of a plain
    /// step, over the steps of the run at the usual times of their kinds and the time of the drafter. Empty where the
    /// run had fewer than three plain steps, of which the first ones are slow, or took no time.
    std::optional<double> gain() const;
};

} // namespace vitrine::engine
